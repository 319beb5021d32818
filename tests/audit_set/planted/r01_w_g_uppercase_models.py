# expect: R01
import torch
import torch.nn.functional as F

def main(dl):
    G, D = Gen().cuda(), Disc().cuda()
    og = torch.optim.Adam(G.parameters())
    for x, y in dl:
        with torch.autocast("cuda", dtype=torch.float16):
            logit = D(x)
        loss = F.cross_entropy(logit, y)
        loss.backward()
