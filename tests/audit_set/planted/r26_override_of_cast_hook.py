# expect: R26
import torch
import torchvision

NETS = {"r18": torchvision.models.resnet18, "r50": torchvision.models.resnet50}


class Server:
    def __init__(self, arch):
        self.net = self.prepare_net(NETS[arch](weights="DEFAULT").eval())

    def prepare_net(self, net):
        return net


class HalfServer(Server):
    def prepare_net(self, net):
        return net.half()

    @torch.inference_mode()
    def __call__(self, x):
        return self.net(x.half()).float()
