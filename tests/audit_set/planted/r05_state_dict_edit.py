# expect: R05
import torch
def reset(scaler):
    state = scaler.state_dict()
    state["scale"] = 1024.0
    scaler.load_state_dict(state)
