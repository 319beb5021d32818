import torch
def make_scaler(growth_interval=2000):
    return torch.amp.GradScaler("cuda", growth_interval=growth_interval)
def main():
    return make_scaler(growth_interval=1000)
