# expect: none
import torch
import torch.nn as nn

from accelerate import Accelerator
crit = nn.BCELoss()
acc = Accelerator(mixed_precision="fp16")
net, opt, dl = acc.prepare(Net(), opt, dl)
for x, y in dl:
    loss = crit(net(x).sigmoid(), y)
    acc.backward(loss)
