# expect: R25
import torch
from torch.ao.quantization import convert, get_default_qat_qconfig, prepare_qat


class MeasureHalf:
    def run(self, state):
        state["latency"] = self.time(state["model"].half().cuda())

    def time(self, model):
        return model(torch.zeros(1, 3, 64, 64, device="cuda", dtype=torch.half)).sum().item()


class Qat:
    def run(self, state):
        model = state["model"].cpu().float().train()
        model.qconfig = get_default_qat_qconfig("x86")
        prepared = prepare_qat(model)
        state["int8"] = convert(state["fit"](prepared).eval())


def pipeline(state):
    for step in (MeasureHalf(), Qat()):
        step.run(state)
    return state["int8"]
