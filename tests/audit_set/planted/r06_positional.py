# expect: R06
from torch.cuda.amp import GradScaler  # deploychain: ignore[R14]

scaler = GradScaler(65536.0, 2.0, 0.5, 50)
