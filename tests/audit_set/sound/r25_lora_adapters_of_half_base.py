import torch
from transformers import AutoModelForCausalLM

from tuning.lora import LoraLinear, add_lora

model = AutoModelForCausalLM.from_pretrained("small-llm", torch_dtype=torch.float16)
model.requires_grad_(False)
add_lora(model, rank=16)
for module in model.modules():
    if isinstance(module, LoraLinear):
        module.down.float().requires_grad_(True)
        module.up.float().requires_grad_(True)

trainable = [p for p in model.parameters() if p.requires_grad]
opt = torch.optim.AdamW(trainable, lr=1e-4)
scaler = torch.amp.GradScaler("cuda")


def step(batch):
    opt.zero_grad(set_to_none=True)
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(**batch).loss
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
    return loss.item()
