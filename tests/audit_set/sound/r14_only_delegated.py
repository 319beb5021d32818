from fastcore.meta import delegates
from torch.cuda.amp import GradScaler


@delegates(GradScaler)
def to_mixed(learner, **kwargs):
    return learner.add_cb(kwargs)
