# expect: R26
import argparse, torch
from torchvision import models
p = argparse.ArgumentParser()
p.add_argument("--arch", default="mobilenet_v2")
a = p.parse_args()
m = getattr(models, a.arch)(weights=None)
m.half().cuda()
