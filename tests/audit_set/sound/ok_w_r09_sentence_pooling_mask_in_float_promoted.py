# expect: none
import torch

from transformers import AutoModel
model = AutoModel.from_pretrained("x", torch_dtype=torch.float16).to("cuda")
def mean_pool(out, mask):
    m = mask.unsqueeze(-1).expand(out.size()).float()
    return torch.sum(out * m, 1) / torch.clamp(m.sum(1), min=1e-9)
def encode(batch):
    h = model(**batch).last_hidden_state
    return mean_pool(h, batch["attention_mask"])
