# expect: R25
import torch
model = MyNet().cuda().half()
optimizer = torch.optim.SGD(model.float().parameters(), lr=0.1)
