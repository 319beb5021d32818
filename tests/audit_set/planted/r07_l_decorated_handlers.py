# expect: R07
import torch
HANDLERS = {'after_backward': [], 'after_step': []}
def on(event):
    def register(fn):
        HANDLERS[event].append(fn)
        return fn
    return register
@on('after_backward')
def clip(t): torch.nn.utils.clip_grad_norm_(t.model.parameters(), 0.5)
@on('after_step')
def log(t): print(t.scaler.get_scale())
class Loop:
    def __init__(self, model, opt):
        self.model, self.opt, self.loss = model.cuda(), opt, torch.nn.CrossEntropyLoss()
        self.scaler = torch.amp.GradScaler("cuda")
    def emit(self, event):
        for fn in HANDLERS[event]:
            fn(self)
    def step(self, x, y):
        self.opt.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = self.loss(self.model(x), y)
        self.scaler.scale(loss).backward()
        self.emit('after_backward')
        self.scaler.step(self.opt)
        self.scaler.update()
        self.emit('after_step')
