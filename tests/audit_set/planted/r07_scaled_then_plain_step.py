# expect: R07, R28
import torch
import torch.nn.functional as F
from torch.amp import GradScaler
from muon import Muon
from lm import LanguageModel, settings


def fit(net, corpus, epochs):
    net.train().cuda()
    scaler = GradScaler("cuda")
    opt = Muon([dict(params=net.parameters(), lr=2e-3)])
    for epoch in range(epochs):
        for idx, tokens in enumerate(corpus):
            tokens = tokens.cuda()
            opt.zero_grad()
            with torch.autocast("cuda"):
                logits, aux = net(tokens[:, :-1])
                loss = F.cross_entropy(logits.reshape(-1, settings.vocab), tokens[:, 1:].reshape(-1))
                loss += 5e-4 * aux
            scaler.scale(loss).backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            if idx % 100 == 0:
                print(loss.item())
