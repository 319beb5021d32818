import torch
from torch import nn


class Speller(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.out = nn.Linear(dim, vocab)

    @torch.autocast("cuda", dtype=torch.float16)
    def forward(self, ids):
        return self.out(self.emb(ids)).float()


class Fitter:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.scaler = torch.amp.GradScaler()
        self.criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

    def step(self, ids, labels):
        logits = self.model(ids)
        loss = self.criterion(logits.flatten(0, 1), labels.flatten())
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
