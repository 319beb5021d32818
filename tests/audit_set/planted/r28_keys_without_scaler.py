# expect: R28
import torch
from collections import namedtuple

State = namedtuple("State", "model optimizer scheduler scaler")
KEYS = ("model", "optimizer", "scheduler")


def build(args):
    model = torch.nn.Linear(64, 8).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    return State(model, optimizer, scheduler, torch.amp.GradScaler("cuda"))


def save(state, epoch, path):
    torch.save({"epoch": epoch, **{k: getattr(state, k).state_dict() for k in KEYS}}, path)


def load(state, path):
    ckpt = torch.load(path, weights_only=True)
    for k in KEYS:
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
