# expect: R05
from accelerate import Accelerator
from accelerate.utils import GradScalerKwargs
kw = GradScalerKwargs(init_scale=1.0)
acc = Accelerator(mixed_precision="fp16", kwargs_handlers=[kw])
