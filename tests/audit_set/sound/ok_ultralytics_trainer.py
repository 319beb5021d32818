import torch
from torch import nn, optim


class BaseTrainer:
    def __init__(self, args, model, train_loader, device):
        self.args, self.model, self.train_loader, self.device = args, model, train_loader, device
        self.amp = torch.tensor(self.args.amp).to(device)

    def _setup_train(self):
        self.scaler = torch.amp.GradScaler("cuda", enabled=bool(self.amp))
        self.accumulate = max(round(self.args.nbs / self.args.batch), 1)
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.01, momentum=0.937, nesterov=True)
        self.scheduler = optim.lr_scheduler.LambdaLR(self.optimizer, lr_lambda=lambda x: 1 - x / 100)

    def _do_train(self):
        self._setup_train()
        last_opt_step = -1
        self.optimizer.zero_grad()
        for epoch in range(self.args.epochs):
            self.scheduler.step()
            self.model.train()
            for i, batch in enumerate(self.train_loader):
                ni = i + len(self.train_loader) * epoch
                with torch.amp.autocast("cuda", enabled=bool(self.amp)):
                    batch = self.preprocess_batch(batch)
                    loss, self.loss_items = self.model(batch)
                    self.loss = loss.sum()
                self.scaler.scale(self.loss).backward()
                if ni - last_opt_step >= self.accumulate:
                    self.optimizer_step()
                    last_opt_step = ni

    def preprocess_batch(self, batch):
        batch["img"] = batch["img"].to(self.device, non_blocking=True).float() / 255
        return batch

    def optimizer_step(self):
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), max_norm=10.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
