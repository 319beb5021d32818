# expect: R12
import torch
import torch.nn as nn
import torch.nn.functional as F

from transformers import Trainer, TrainingArguments
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 1)
    def forward(self, x, labels=None):
        p = torch.sigmoid(self.fc(x))
        return {"loss": F.binary_cross_entropy(p, labels), "logits": p}
t = Trainer(model=Net(), args=TrainingArguments("o", bf16=True), train_dataset=ds)
t.train()
