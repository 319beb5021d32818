# expect: R01
import torch
import torch.nn.functional as F
import torch.amp as amp


def run(model, loader, optimizer, scaler, device):
    model.train()
    for batch in loader:
        image, depth, seg = (t.to(device) for t in batch)
        with amp.autocast(device_type="cuda", dtype=torch.float16):
            pred_depth, pred_seg = model(image)
        loss_depth = F.l1_loss(pred_depth, depth.half())
        loss_seg = F.cross_entropy(pred_seg, seg, ignore_index=255)
        loss = loss_depth + 0.4 * loss_seg
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
