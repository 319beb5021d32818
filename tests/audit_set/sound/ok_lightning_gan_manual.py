import pytorch_lightning as pl
import torch
import torch.nn.functional as F


class GAN(pl.LightningModule):
    def __init__(self, G, D):
        super().__init__()
        self.G, self.D = G, D
        self.automatic_optimization = False

    def adversarial_loss(self, y_hat, y):
        return F.binary_cross_entropy_with_logits(y_hat, y)

    def training_step(self, batch):
        g_opt, d_opt = self.optimizers()
        X, _ = batch
        n = X.shape[0]
        real = torch.ones((n, 1), device=self.device)
        fake = torch.zeros((n, 1), device=self.device)
        g_X = self.G(torch.randn(n, 64, device=self.device))
        err_d = self.adversarial_loss(self.D(X), real) + self.adversarial_loss(self.D(g_X.detach()), fake)
        d_opt.zero_grad()
        self.manual_backward(err_d)
        d_opt.step()
        err_g = self.adversarial_loss(self.D(g_X), real)
        g_opt.zero_grad()
        self.manual_backward(err_g)
        g_opt.step()
        self.log_dict({"g_loss": err_g, "d_loss": err_d}, prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.G.parameters(), lr=1e-5), torch.optim.Adam(self.D.parameters(), lr=1e-5)


pl.Trainer(precision="16-mixed").fit(GAN(None, None))
