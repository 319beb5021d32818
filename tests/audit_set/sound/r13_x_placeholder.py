import torch
def refuse(self, mat2):
    raise RuntimeError("this torch is too old")
lib = torch.library.Library("aten", "FRAGMENT")
lib.define("_new_mm(Tensor self, Tensor mat2) -> Tensor")
lib.impl("_new_mm", refuse, "CompositeExplicitAutograd")
def reference(h, w):
    with torch.autocast("cuda", enabled=False):
        return h.float() @ w.float()
