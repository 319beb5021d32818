# expect: R06
import torch
from transformers import TrainingArguments
from accelerate.utils import GradScalerKwargs
args = TrainingArguments("out", fp16=True, max_steps=1500)
kw = GradScalerKwargs(growth_interval=6000)
