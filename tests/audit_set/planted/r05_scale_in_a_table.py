# expect: R05
import torch
LIMITS = {"scale_min": 2 ** 14, "grad_max": 10.0}
def collect(scaler):
    return {"scale": scaler.get_scale()}
def check(scaler, log):
    stats = collect(scaler)
    if stats["scale"] < LIMITS["scale_min"]:
        log("scale too small")
