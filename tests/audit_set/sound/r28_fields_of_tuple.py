import torch
from collections import namedtuple

State = namedtuple("State", "model optimizer scaler")


def build(args):
    model = torch.nn.Linear(64, 8).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    return State(model, optimizer, torch.amp.GradScaler("cuda"))


def save(state, epoch, path):
    torch.save({"epoch": epoch, **{k: v.state_dict() for k, v in state._asdict().items()}}, path)


def load(state, path):
    ckpt = torch.load(path, weights_only=True)
    for k in State._fields:
        getattr(state, k).load_state_dict(ckpt[k])
    return ckpt["epoch"]


def train(args, loader):
    state = build(args)
    start = load(state, args.resume) if args.resume else 0
    for epoch in range(start, args.epochs):
        for x, y in loader:
            state.optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                loss = torch.nn.functional.cross_entropy(state.model(x.cuda()), y.cuda())
            state.scaler.scale(loss).backward()
            state.scaler.step(state.optimizer)
            state.scaler.update()
        save(state, epoch, args.out)
