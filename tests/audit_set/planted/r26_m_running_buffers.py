# expect: R26
import torch
for name, buf in model.named_buffers():
    if "running" in name:
        buf.data = buf.data.half()
