import math
import os
from contextlib import nullcontext

import torch
from torch.distributed import destroy_process_group, init_process_group
from torch.nn.parallel import DistributedDataParallel as DDP

grad_clip = 1.0
decay_lr = True
gradient_accumulation_steps = 40
dtype = "bfloat16" if torch.cuda.is_available() and torch.cuda.is_bf16_supported() else "float16"
ddp = int(os.environ.get("RANK", -1)) != -1
device = "cuda"
device_type = "cuda" if "cuda" in device else "cpu"
ptdtype = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[dtype]
ctx = nullcontext() if device_type == "cpu" else torch.amp.autocast(device_type=device_type, dtype=ptdtype)


def get_lr(it):
    return 6e-4 * min(1.0, it / 2000) if it < 2000 else 6e-5 + 0.5 * (1 + math.cos(it / 1e5))


def main(model, get_batch, max_iters, checkpoint=None):
    if ddp:
        init_process_group("nccl")
    model.to(device)
    scaler = torch.amp.GradScaler("cuda", enabled=(dtype == "float16"))
    optimizer = model.configure_optimizers(1e-1, 6e-4, (0.9, 0.95), device_type)
    model = torch.compile(model)
    if ddp:
        model = DDP(model, device_ids=[int(os.environ["LOCAL_RANK"])])
    X, Y = get_batch("train")
    iter_num = 0
    while True:
        lr = get_lr(iter_num) if decay_lr else 6e-4
        for group in optimizer.param_groups:
            group["lr"] = lr
        for micro_step in range(gradient_accumulation_steps):
            if ddp:
                model.require_backward_grad_sync = micro_step == gradient_accumulation_steps - 1
            with ctx:
                logits, loss = model(X, Y)
                loss = loss / gradient_accumulation_steps
            X, Y = get_batch("train")
            scaler.scale(loss).backward()
        if grad_clip != 0.0:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        iter_num += 1
        if iter_num > max_iters:
            break
    if ddp:
        destroy_process_group()
