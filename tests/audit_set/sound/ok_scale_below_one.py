# expect: none
import torch


def guard(scaler: torch.amp.GradScaler, logger, step):
    scale = scaler.get_scale()
    logger.log({"loss_scale": scale}, step=step)
    if scale < 1.0:
        raise FloatingPointError("loss scale below 1: the gradients are not finite")
