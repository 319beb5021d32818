import torch
from transformers import AutoModelForCausalLM
def main(loader):
    model = AutoModelForCausalLM.from_pretrained("m", torch_dtype=torch.float16).cuda()
    for p in model.parameters():
        p.data = p.data.to(torch.float32)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-5)
    scaler = torch.amp.GradScaler("cuda")
    for b in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(**b).loss
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
