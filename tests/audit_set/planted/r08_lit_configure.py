# expect: R08
import lightning as L, torch
class Lit(L.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.encoder = net
        self.encoder.half()
    def training_step(self, b, i): return self.encoder(b).float().mean()
    def configure_optimizers(self):
        params = [p for p in self.encoder.parameters() if p.requires_grad]
        opt = torch.optim.AdamW(params, lr=1e-4)
        return {"optimizer": opt}
