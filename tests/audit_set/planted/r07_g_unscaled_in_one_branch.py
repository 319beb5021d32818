# expect: R07
import torch
class NativeScaler:
    def __init__(self): self._scaler = torch.amp.GradScaler("cuda")
    def __call__(self, loss, optimizer, clip_grad=None, parameters=None, update_grad=True):
        self._scaler.scale(loss).backward()
        norm = None
        if update_grad:
            if clip_grad is not None:
                norm = torch.nn.utils.clip_grad_norm_(parameters, clip_grad)
            else:
                self._scaler.unscale_(optimizer)
                norm = torch.norm(torch.stack([p.grad.norm() for p in parameters]))
            self._scaler.step(optimizer)
            self._scaler.update()
        return norm
    def state_dict(self): return self._scaler.state_dict()
