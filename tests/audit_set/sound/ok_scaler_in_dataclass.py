# expect: none
from dataclasses import dataclass
import torch
@dataclass
class State:
    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
def step(state: State, batch):
    state.optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cuda", dtype=torch.float16):
        loss = state.model(batch)
    state.scaler.scale(loss).backward()
    state.scaler.unscale_(state.optimizer)
    grad_norm = torch.nn.utils.clip_grad_norm_(state.model.parameters(), 1.0)
    state.scaler.step(state.optimizer)
    state.scaler.update()
    return loss, grad_norm
def loop(state, loader):
    for batch in loader:
        step(state, batch)
