# expect: R17
from fairscale.nn import FullyShardedDataParallel as Sharded
from fairscale.optim.grad_scaler import GradScaler


class Wrapper(Sharded):
    def original(self):
        return self.module


class Accelerator:
    def wrap(self, model):
        return Wrapper(model, flatten_parameters=True)

    def scaler(self):
        return GradScaler()
