# expect: R02
import torch
import pytorch_lightning as pl
class Lit(pl.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.automatic_optimization = False
        self.scaler = torch.amp.GradScaler("cuda")
    def configure_optimizers(self):
        return torch.optim.Adam(self.net.parameters())
    def training_step(self, batch, batch_idx):
        opt = self.optimizers(use_pl_optimizer=False)
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.mse_loss(self.net(batch[0]), batch[1])
        self.manual_backward(loss)
        self.scaler.step(opt)
        self.scaler.update()
