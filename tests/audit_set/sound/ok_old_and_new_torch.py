# expect: none
try:
    from torch.amp import GradScaler, autocast
except ImportError:  # torch < 2.3
    from torch.cuda.amp import GradScaler, autocast

scaler = GradScaler()


def forward(model, x):
    with autocast("cuda"):
        return model(x)
