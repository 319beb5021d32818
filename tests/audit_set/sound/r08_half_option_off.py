import torch
def load_model(factory, half=False):
    m = factory().cuda()
    if half:
        m = m.half()
    return m
def finetune(factory, loader):
    model = load_model(factory)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-5)
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        opt.zero_grad(); loss.backward(); opt.step()
def serve(factory, x):
    return load_model(factory, half=True)(x.half())
