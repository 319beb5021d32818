# expect: R12
import torch
import torch.nn as nn

from ignite.engine import create_supervised_trainer
tr = create_supervised_trainer(net, opt, nn.BCELoss(), device="cuda", amp_mode="amp", scaler=True)
