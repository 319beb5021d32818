# expect: R14
import torch
from dataclasses import dataclass, field
@dataclass
class State:
    scaler: object = field(default_factory=torch.cuda.amp.GradScaler)
