# expect: R05
import math, torch
def healthy(scaler):
    e = math.log2(scaler.get_scale())
    return 14 <= e <= 18
