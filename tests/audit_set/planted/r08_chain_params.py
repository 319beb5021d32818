# expect: R08
import itertools, torch
from net import Enc, Dec
def main(loader):
    enc, dec = Enc().cuda().half(), Dec().cuda().half()
    opt = torch.optim.Adam(itertools.chain(enc.parameters(), dec.parameters()), lr=1e-3)
    for x, y in loader:
        opt.zero_grad()
        loss = torch.nn.functional.cross_entropy(dec(enc(x)).float(), y)
        loss.backward()
        opt.step()
