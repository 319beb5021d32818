# expect: none
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

base = AutoModelForCausalLM.from_pretrained("facebook/opt-1.3b", torch_dtype=torch.float16)
model = get_peft_model(base, LoraConfig(r=8))
trainer = Trainer(model=model, args=TrainingArguments("out", fp16=True))
