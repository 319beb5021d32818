import torch
from peft import LoraConfig, get_peft_model
def upcast(model):
    for p in model.parameters():
        if p.requires_grad:
            p.data = p.data.to(torch.float32)
def main(base, loader):
    model = get_peft_model(base, LoraConfig(r=8))
    model = model.half().cuda()
    upcast(model)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for b in loader:
        loss = model(**b).loss
        loss.backward(); opt.step(); opt.zero_grad()
