# expect: R13
import torch
class _Base(torch.autograd.Function):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g.mm(w), g.t().mm(x)
class Lin(_Base):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x.mm(w.t())
class Layer(torch.nn.Module):
    def forward(self, x):
        return Lin.apply(x, self.w)
def fit(net, x, scaler, opt):
    with torch.autocast("cuda", torch.float16):
        loss = net(x).mean()
    scaler.scale(loss).backward()
    scaler.step(opt)
