# expect: R09
import torch
import torch.nn as nn

import lightning as L
class Lit(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
    def forward(self, x):
        h = self.fc(x)
        return h / (h.norm(dim=-1, keepdim=True) + 1e-8)
    def predict_step(self, batch, i):
        return self(batch)
trainer = L.Trainer(precision="16-true")
trainer.predict(Lit(), loader)
