import torch


class Trainer:
    def __init__(self, exp, args):
        self.exp, self.args = exp, args
        self.amp_training = args.fp16
        self.scaler = torch.amp.GradScaler("cuda", enabled=args.fp16)
        self.data_type = torch.float16 if args.fp16 else torch.float32

    def train(self):
        self.before_train()
        try:
            for self.epoch in range(self.exp.max_epoch):
                for self.iter in range(self.max_iter):
                    self.train_one_iter()
        finally:
            self.after_train()

    def before_train(self):
        self.model = self.exp.get_model()
        self.optimizer = self.exp.get_optimizer(self.args.batch_size)

    def after_train(self):
        pass

    def train_one_iter(self):
        inps, targets = self.prefetcher.next()
        inps = inps.to(self.data_type)
        targets = targets.to(self.data_type)
        targets.requires_grad = False
        with torch.amp.autocast("cuda", enabled=self.amp_training):
            outputs = self.model(inps, targets)
        loss = outputs["total_loss"]
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        lr = self.lr_scheduler.update_lr(self.epoch * self.max_iter + self.iter + 1)
        for param_group in self.optimizer.param_groups:
            param_group["lr"] = lr
