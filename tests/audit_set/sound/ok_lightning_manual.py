# expect: none
import lightning as L
import torch


class GAN(L.LightningModule):
    def __init__(self, gen, disc):
        super().__init__()
        self.gen, self.disc = gen, disc
        self.automatic_optimization = False

    def training_step(self, batch, batch_idx):
        opt_g, opt_d = self.optimizers()
        loss = -self.disc(self.gen(batch)).mean()
        opt_g.zero_grad()
        self.manual_backward(loss)
        self.clip_gradients(opt_g, gradient_clip_val=1.0, gradient_clip_algorithm="norm")
        opt_g.step()


trainer = L.Trainer(precision="16-mixed")
