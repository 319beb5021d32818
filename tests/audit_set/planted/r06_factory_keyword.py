# expect: R06
import torch
def make_scaler(init_scale=65536.0, growth_interval=2000):
    return torch.amp.GradScaler("cuda", init_scale=init_scale, growth_interval=growth_interval)
def main():
    return make_scaler(growth_interval=10)
