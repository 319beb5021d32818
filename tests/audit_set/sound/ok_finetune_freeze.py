# expect: none
import torch
def main(backbone, head, loader):
    backbone.requires_grad_(False)
    optimizer = torch.optim.AdamW(head.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            with torch.no_grad():
                feats = backbone(x)
            loss = torch.nn.functional.cross_entropy(head(feats), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
