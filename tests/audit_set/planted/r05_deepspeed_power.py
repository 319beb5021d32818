# expect: R05
import deepspeed
DS = {"train_batch_size": 32, "fp16": {"enabled": True, "loss_scale": 0, "initial_scale_power": 1, "hysteresis": 2}}
def main(model):
    return deepspeed.initialize(model=model, config=DS)
