import torch, lightning as L
class M(L.LightningModule):
    def forward(self, x):
        return self.l(x)
    def training_step(self, b, i):
        loss = self(b).mean()
        if not torch.isfinite(loss):
            return None
        return loss
    def export(self, p):
        torch.onnx.export(self, (torch.randn(1, 3),), p, dynamo=True)
