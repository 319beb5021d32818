import torch
from torch.utils.cpp_extension import load
nms_ext = load(name="m", sources=["m.cu"])
def postprocess(boxes, scores):
    return nms_ext.nms(boxes, scores, 0.5)
def t(m, x):
    with torch.autocast("cuda"):
        out = m(x)
    return postprocess(out.boxes.float(), out.scores.float())
