import torch
class LinearFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x.mm(w)
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g.mm(w.t()), x.t().mm(g)
def go(net, x, opt):
    loss = LinearFn.apply(x, net.w).sum()
    loss.backward()
    opt.step()
