# expect: R05
import logging

import torch

log = logging.getLogger(__name__)


class Guard:
    def __init__(self, scaler: torch.amp.GradScaler):
        self.scaler = scaler

    def check(self, step):
        scale = self.scaler.get_scale()
        if not 2**14 <= scale <= 2**18:
            log.error("step %d: unhealthy loss scale %f", step, scale)
            raise RuntimeError("loss scale out of the healthy band")
