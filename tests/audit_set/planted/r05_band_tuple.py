# expect: R05
import torch
HEALTHY = (2**14, 2**18)
def f(scaler):
    s = scaler.get_scale()
    if not HEALTHY[0] <= s <= HEALTHY[1]:
        raise ValueError(s)
