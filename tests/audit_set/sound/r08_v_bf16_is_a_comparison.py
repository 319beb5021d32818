import argparse

import torch
from transformers import AutoModelForSeq2SeqLM, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--dtype", default="bf16", choices=["fp16", "bf16", "fp32"])
args = parser.parse_args()

model = AutoModelForSeq2SeqLM.from_pretrained("t5-small", torch_dtype=torch.bfloat16)
training = TrainingArguments(output_dir="out", fp16=args.dtype == "fp16", bf16=args.dtype == "bf16")
trainer = Trainer(model=model, args=training)
trainer.train()
