# expect: R04
import logging

import torch

log = logging.getLogger(__name__)


def train(model, loader, optimizer, scheduler):
    scaler = torch.amp.GradScaler("cuda")
    for batch in loader:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(**batch)
        scaler.scale(loss).backward()
        result = scaler.step(optimizer)
        scaler.update()
        if not result:
            log.warning("non-finite gradients")
            continue
        scheduler.step()
