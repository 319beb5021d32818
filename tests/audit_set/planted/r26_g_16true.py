# expect: R26
import torch, lightning as L
from torchvision.models import resnet18
class Lit(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = resnet18(num_classes=4)
    def predict_step(self, b, i):
        return self.net(b[0])
L.Trainer(precision="16-true").predict(Lit())
