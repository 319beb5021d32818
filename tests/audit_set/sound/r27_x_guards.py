import torch


class Runner:
    """Moves to the device that it is given; the region only where that is a GPU."""

    def __init__(self, model, device="cpu", fp16=False):
        self.device, self.fp16 = device, fp16
        self.model = model.to("cpu")
        self.on_gpu = device.startswith("cuda")

    def half(self):
        return self.fp16 and self.on_gpu

    def __call__(self, x):
        use = self.half()
        if use:
            with torch.autocast("cuda", dtype=torch.float16):
                return self.model(x)
        return self.model(x)

    def early(self, x):
        if "cuda" not in self.device:
            return self.model(x)
        with torch.autocast("cuda", dtype=torch.float16):
            return self.model(x)

    def chosen(self, x):
        return self._amp(x) if x.is_cuda else self.model(x)

    def _amp(self, x):
        with torch.autocast("cuda", dtype=torch.float16):
            return self.model(x)

    def switched(self, x):
        with torch.autocast("cuda", dtype=torch.float16, enabled=self.on_gpu), torch.no_grad():
            return self.model(x)
