# expect: R17
import torch
import torch.distributed as dist


class SyncScale:
    def after_step(self, state):
        dist.all_reduce(state.scaler._scale, op=dist.ReduceOp.MAX)


class State:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.scaler = torch.amp.GradScaler("cuda")


def train(model, loader):
    state = State(torch.nn.parallel.DistributedDataParallel(model.cuda()))
    callbacks = [SyncScale()]
    for x, y in loader:
        state.optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(state.model(x.cuda()), y.cuda())
        state.scaler.scale(loss).backward()
        state.scaler.step(state.optimizer)
        state.scaler.update()
        for cb in callbacks:
            cb.after_step(state)
