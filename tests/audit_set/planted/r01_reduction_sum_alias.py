# expect: R01
import torch as th
from torch import nn

amp_ctx = th.autocast(device_type="cuda", dtype=th.float16)
loss_layer = nn.NLLLoss(reduction="sum")


def forward_backward(net, inputs, labels, scaler, opt):
    opt.zero_grad()
    with amp_ctx:
        out = net(inputs)
        scores = out.view(-1, out.size(-1))
    total = loss_layer(scores, labels.view(-1))
    scaler.scale(total).backward()
    scaler.step(opt)
    scaler.update()
