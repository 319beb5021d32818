import torch
def pack(path, out):
    sd = torch.load(path, map_location="cpu")["state_dict"]
    stats = {k for k in sd if "running_" in k}
    small = {k: v if k in stats else v.half() for k, v in sd.items()}
    print(sum("running_mean" in k for k in sd))
    torch.save(small, out)
