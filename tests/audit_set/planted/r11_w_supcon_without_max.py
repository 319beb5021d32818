# expect: R11
import torch

def supcon(feat, mask, t):
    logits = feat @ feat.t() / t
    exp_logits = torch.exp(logits) * mask
    log_prob = logits - torch.log(exp_logits.sum(1, keepdim=True))
    return -(mask * log_prob).sum(1).mean()
def train(m, x, scaler, mask):
    with torch.autocast("cuda", dtype=torch.float16):
        scaler.scale(supcon(m(x), mask, 0.07)).backward()
