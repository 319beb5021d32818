# expect: R28
import torch


class Run:
    def __init__(self, model, steps):
        self.model = model.cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, 3e-4, total_steps=steps)
        self.scaler = torch.amp.GradScaler("cuda")
        self.step_no = 0

    def checkpoint(self, path):
        state = {k: v.state_dict() for k, v in vars(self).items() if k in ("model", "optimizer", "scheduler")}
        state["step_no"] = self.step_no
        torch.save(state, path)

    def restore(self, path):
        state = torch.load(path, map_location="cpu", weights_only=True)
        self.step_no = state.pop("step_no")
        for k, v in state.items():
            getattr(self, k).load_state_dict(v)

    def train_step(self, x, y):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(self.model(x), y)
        self.scaler.scale(loss).backward()
        before = self.scaler.get_scale()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        if self.scaler.get_scale() >= before:
            self.scheduler.step()
        self.step_no += 1
