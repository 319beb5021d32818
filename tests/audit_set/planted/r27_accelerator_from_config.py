# expect: R27
from dataclasses import dataclass

from accelerate import Accelerator


@dataclass
class RunConfig:
    mixed_precision: str = "fp16"
    cpu: bool = True


def main(cfg: RunConfig, model, optimizer, loader):
    accelerator = Accelerator(mixed_precision=cfg.mixed_precision, cpu=cfg.cpu)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for x, y in loader:
        loss = model(x, y)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
