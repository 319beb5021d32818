import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM
def main(loader):
    base = AutoModelForCausalLM.from_pretrained("opt", torch_dtype=torch.float16)
    model = get_peft_model(base, LoraConfig(r=8)).cuda()
    opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    scaler = torch.amp.GradScaler("cuda")
    for b in loader:
        with torch.autocast("cuda"):
            loss = model(**b).loss
        scaler.scale(loss).backward(); scaler.step(opt); scaler.update(); opt.zero_grad()
