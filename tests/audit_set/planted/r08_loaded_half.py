# expect: R08
import torch
from transformers import AutoModelForSequenceClassification
def main(loader):
    model = AutoModelForSequenceClassification.from_pretrained("x", torch_dtype=torch.float16).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
    scaler = torch.cuda.amp.GradScaler()  # deploychain: ignore[R14]
    for b in loader:
        optimizer.zero_grad()
        loss = model(**b).loss
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
