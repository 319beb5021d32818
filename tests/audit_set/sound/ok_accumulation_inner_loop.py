# expect: none
import torch


def train(model, get_batch, optimizer, scaler, max_iters, micro_steps, grad_clip):
    X, Y = get_batch()
    for it in range(max_iters):
        for micro in range(micro_steps):
            with torch.autocast("cuda", dtype=torch.float16):
                logits, loss = model(X, Y)
                loss = loss / micro_steps
            X, Y = get_batch()
            scaler.scale(loss).backward()
        if grad_clip != 0.0:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
