# expect: R05
import argparse
from dataclasses import dataclass

import torch


@dataclass
class TrainConfig:
    lr: float = 3e-4
    safe_scale: float = 256.0
    bad_loss: float = 20.0


class State:
    def __init__(self, model, cfg):
        self.model = model
        self.cfg = cfg
        self.opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
        self.scaler = torch.amp.GradScaler("cuda")


def train(state, loader):
    for x, y in loader:
        state.opt.zero_grad(set_to_none=True)
        with torch.amp.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(state.model(x), y)
        state.scaler.scale(loss).backward()
        state.scaler.step(state.opt)
        if loss.item() > state.cfg.bad_loss:
            state.scaler.update(new_scale=state.cfg.safe_scale)
        else:
            state.scaler.update()


def main(model, loader):
    train(State(model, TrainConfig()), loader)
