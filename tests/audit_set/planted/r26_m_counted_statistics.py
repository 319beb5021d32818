# expect: R26
import torch
from models import build_model
def pack(path, out):
    ckpt = torch.load(path, map_location="cpu")
    sd = {k.replace("module.", ""): v.half() for k, v in ckpt["state_dict"].items()}
    print("batch norms:", sum("running_mean" in k for k in sd))
    torch.save(sd, out)
