# expect: R08
import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("facebook/opt-125m", torch_dtype=torch.float16)
args = TrainingArguments(output_dir="out", fp16=True, per_device_train_batch_size=8)
trainer = Trainer(model=model, args=args, train_dataset=None)
trainer.train()
