# expect: R27
import torch


class Runner:
    def __init__(self, model, fp16=True, device="cpu"):
        self.device, self.fp16 = device, fp16
        self.model = model.to(self.device)

    def __call__(self, x):
        x = x.to(self.device)
        if self.fp16:
            with torch.autocast("cuda", dtype=torch.float16):
                return self.model(x)
        return self.model(x)
