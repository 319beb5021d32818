# expect: R28
import torch
from ignite.engine import Engine, Events
from ignite.handlers import Checkpoint, DiskSaver
def main(m, opt, loader):
    scaler = torch.amp.GradScaler("cuda")
    def up(engine, b):
        opt.zero_grad()
        scaler.scale(m(b)).backward()
        scaler.step(opt)
        scaler.update()
    trainer = Engine(up)
    to_save = {"model": m, "optimizer": opt, "trainer": trainer}
    trainer.add_event_handler(Events.EPOCH_COMPLETED, Checkpoint(to_save, DiskSaver("ck")))
