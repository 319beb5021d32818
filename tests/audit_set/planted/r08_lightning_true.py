# expect: R08
import lightning as L, torch
class Lit(L.LightningModule):
    def __init__(self, net): super().__init__(); self.net = net
    def training_step(self, b, i): return self.net(b).mean()
    def configure_optimizers(self): return torch.optim.AdamW(self.parameters(), lr=1e-4)
trainer = L.Trainer(precision="16-true", max_epochs=3)
