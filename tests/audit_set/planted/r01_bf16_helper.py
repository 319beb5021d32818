# expect: R01
import torch
import torch.nn.functional as F


@torch.autocast("cuda", dtype=torch.bfloat16)
def run_forward(model, tokens):
    return model(tokens)


def train(model, loader, optimizer):
    for tokens, targets in loader:
        logits = run_forward(model, tokens.cuda())
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.cuda().view(-1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
