import torch
class Solve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        x = torch.linalg.solve(a, b)
        ctx.save_for_backward(a, x)
        return x
    @staticmethod
    def backward(ctx, g):
        a, x = ctx.saved_tensors
        gb = torch.linalg.solve(a.mT, g)
        return -gb @ x.mT, gb
class L(torch.nn.Module):
    def forward(self, a, b):
        with torch.autocast("cuda", enabled=False):
            return Solve.apply(a.float(), b.float())
def run(net, x):
    with torch.autocast("cuda", dtype=torch.float16):
        return net(x)
