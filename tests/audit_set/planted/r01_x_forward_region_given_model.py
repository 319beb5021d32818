# expect: R01
import torch
from torch import nn


class Speller(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.lstm = nn.LSTM(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, ids):
        with torch.autocast("cuda", dtype=torch.float16):
            h, _ = self.lstm(self.emb(ids))
            return self.out(h)


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
