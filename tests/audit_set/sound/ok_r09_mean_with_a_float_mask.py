import torch
import torch.nn.functional as F
from transformers import AutoModel, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("e5")
encoder = AutoModel.from_pretrained("e5").half().cuda().eval()


def mean(hidden, mask):
    mask = mask[..., None].float()
    return (hidden * mask).sum(dim=1) / mask.sum(dim=1)


@torch.inference_mode()
def embed(texts):
    enc = tokenizer(texts, padding=True, return_tensors="pt").to("cuda")
    pooled = mean(encoder(**enc).last_hidden_state, enc["attention_mask"])
    return F.normalize(pooled, dim=1, eps=1e-12)
