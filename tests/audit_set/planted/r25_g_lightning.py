# expect: R25
import torch, lightning as L
class C(L.Callback):
    def on_validation_start(self, trainer, pl_module):
        pl_module.half()
    def on_validation_end(self, trainer, pl_module):
        pl_module.float()
