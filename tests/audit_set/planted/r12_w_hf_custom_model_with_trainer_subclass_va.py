# expect: R12
import torch
import torch.nn as nn

from transformers import PreTrainedModel, Trainer, TrainingArguments
class Multi(PreTrainedModel):
    def __init__(self, c):
        super().__init__(c)
        self.head = nn.Linear(4, 4)
        self.loss_fct = nn.BCELoss()
    def forward(self, x, labels=None):
        p = torch.sigmoid(self.head(x))
        loss = self.loss_fct(p, labels.float())
        return loss, p
def main():
    model = Multi.from_pretrained("x")
    args = TrainingArguments("out", fp16=True)
    trainer = Trainer(model=model, args=args, train_dataset=ds)
    trainer.train()
