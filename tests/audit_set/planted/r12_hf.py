# expect: R12
import torch
from torch import nn
from transformers import Trainer, TrainingArguments
class MyTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kw):
        out = model(**inputs)
        return nn.functional.binary_cross_entropy(out.logits.sigmoid(), inputs["labels"])
args = TrainingArguments("o", fp16=True)
