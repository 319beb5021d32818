# expect: R17
import torch
def unskip(scaler: torch.amp.GradScaler, opt):
    for v in scaler._per_optimizer_states[id(opt)]["found_inf_per_device"].values():
        v.zero_()
