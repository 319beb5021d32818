# expect: R09
import torch
import torch.nn.functional as F
from transformers import AutoModel, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("e5")
encoder = AutoModel.from_pretrained("e5").half().cuda().eval()


def mean(hidden, mask):
    hidden = hidden.masked_fill(~mask[..., None].bool(), 0.0)
    return hidden.sum(dim=1) / mask.sum(dim=1)[..., None]


@torch.inference_mode()
def embed(texts):
    enc = tokenizer(texts, padding=True, return_tensors="pt").to("cuda")
    pooled = mean(encoder(**enc).last_hidden_state, enc["attention_mask"])
    return F.normalize(pooled, dim=1, eps=1e-12)
