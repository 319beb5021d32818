# expect: R09
import torch

import argparse
from transformers import AutoModel
DT = {"fp16": torch.float16, "fp32": torch.float32}
def main():
    p = argparse.ArgumentParser()
    p.add_argument("--precision", default="fp16")
    a = p.parse_args()
    model = AutoModel.from_pretrained("bge", torch_dtype=DT[a.precision]).cuda()
    h = model(**tok).last_hidden_state[:, 0]
    h = h / h.norm(dim=-1, keepdim=True).clamp(min=1e-12)
