import torch


class DynamicLossScaler:
    def __init__(self, init_scale=2.0**15, scale_factor=2.0, scale_window=2000, tolerance=0.0):
        self.loss_scale = init_scale
        self.scale_factor, self.scale_window, self.tolerance = scale_factor, scale_window, tolerance
        self._iter = 0

    def scale(self, outputs):
        return self.loss_scale * outputs

    def update(self):
        if self._iter % self.scale_window == 0:
            self.loss_scale *= self.scale_factor
        self._iter += 1

    def check_overflow(self, grad_norm):
        if grad_norm == float("inf") or grad_norm != grad_norm:
            self.loss_scale /= self.scale_factor
            raise OverflowError("setting loss scale to: " + str(self.loss_scale))


class FP16Optimizer:
    def __init__(self, cfg, params, fp32_optimizer, fp32_params):
        self.fp16_params = params
        self.fp32_optimizer = fp32_optimizer
        self.fp32_params = fp32_params
        self.scaler = DynamicLossScaler(init_scale=cfg.fp16_init_scale)

    def backward(self, loss):
        loss = self.scaler.scale(loss)
        loss.backward()

    def unscale(self):
        for p in self.fp32_params:
            p.grad.data.mul_(1.0 / self.scaler.loss_scale)

    def clip_grad_norm(self, max_norm):
        self.unscale()
        norm = torch.nn.utils.clip_grad_norm_(self.fp32_params, max_norm)
        self.scaler.check_overflow(norm)
        return norm

    def step(self):
        self.fp32_optimizer.step()
        self.scaler.update()
        for p, p32 in zip(self.fp16_params, self.fp32_params):
            p.data.copy_(p32.data)

    def zero_grad(self):
        for p in self.fp16_params:
            p.grad = None
