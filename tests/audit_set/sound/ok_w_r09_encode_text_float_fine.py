# expect: none
import torch

import open_clip
def main(paths):
    model, _, prep = open_clip.create_model_and_transforms("ViT-B-32", pretrained="x")
    model = model.cuda().half().eval()
    with torch.no_grad():
        f = model.encode_image(batch.cuda().half()).float()
        f = f / (f.norm(dim=-1, keepdim=True) + 1e-8)
