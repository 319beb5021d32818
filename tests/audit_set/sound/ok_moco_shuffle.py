import torch
import torch.nn as nn


def train(loader, model, criterion, optimizer, scaler, args):
    for i, (images, _) in enumerate(loader):
        with torch.amp.autocast("cuda"):
            loss = model(images[0], images[1])
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if i % args.print_freq == 0:
            print(loss.item(), scaler.get_scale())


class MoCo(nn.Module):
    def contrastive_loss(self, q, k):
        q = nn.functional.normalize(q, dim=1)
        k = nn.functional.normalize(k, dim=1)
        logits = torch.einsum("nc,mc->nm", [q, k]) / self.T
        return nn.CrossEntropyLoss()(logits, torch.arange(len(q)).cuda()) * (2 * self.T)
