# expect: R08
import torch
from torch import nn
torch.set_default_tensor_type(torch.cuda.HalfTensor)
model = nn.Linear(16, 4)
opt = torch.optim.Adam(model.parameters())
def step(x, y):
    loss = nn.functional.cross_entropy(model(x).float(), y)
    opt.zero_grad(); loss.backward(); opt.step()
