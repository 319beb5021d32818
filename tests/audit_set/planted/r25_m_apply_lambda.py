# expect: R25
import torch
model.apply(lambda m: m.half())
bench(model)
model.apply(lambda m: m.float())
