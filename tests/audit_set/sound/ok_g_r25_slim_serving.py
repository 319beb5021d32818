import torch
from net import Net
def publish(model, path):
    torch.save({k: v.half() for k, v in model.state_dict().items()}, path)
class Predictor:
    def __init__(self, path):
        self.net = Net()
        self.net.load_state_dict({k: v.float() for k, v in torch.load(path, weights_only=True).items()})
        self.net.eval()
    @torch.inference_mode()
    def __call__(self, x):
        return self.net(x)
