"""How far the FP16 emulation on a CPU is from real FP16 kernels: one Markdown row per finished run.

    python scripts/measure_emulation.py --device cuda PIPELINE.yaml RUN_DIR [PIPELINE.yaml RUN_DIR ...]

Both sides hold the same weights, all of them in FP16: torch's half kernels on the device (BatchNorm folded, as the
export does), and the exported FP32 graph turned to FP16 throughout and emulated by onnxruntime on the CPU. Each is
compared with FP32, and the two with each other. The emulation is useful where its SNR is close to the real one and
never far above it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, numpy_helper

from deploychain.backends.ort import emulate_fp16, run_model
from deploychain.backends.qat_fold import fold_batchnorms
from deploychain.backends.torch_data import collect_test, outputs_to_dict
from deploychain.backends.torch_model import build_model
from deploychain.backends.torch_run import run_torch
from deploychain.config import load_pipeline
from deploychain.numerics.errors import compare_outputs


def to_half(model: onnx.ModelProto) -> onnx.ModelProto:
    """Every float tensor of a plain FP32 graph in FP16."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for tensor in made.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
    for node in made.graph.node:
        for attribute in node.attribute:
            if attribute.t.data_type == TensorProto.FLOAT:
                attribute.t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(attribute.t).astype(np.float16)))
            if node.op_type == "Cast" and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.FLOAT16
    for value in (*made.graph.input, *made.graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.FLOAT16
    del made.graph.value_info[:]
    return made


def measure(pipeline: Path, run_dir: Path, device: str) -> str:
    task = load_pipeline(pipeline).task.load()  # type: ignore[union-attr]
    inputs, _ = collect_test(task)
    model = build_model(task, run_dir / "weights" / "weights.safetensors")
    reference = run_torch(model, inputs, 100)
    example = [torch.from_numpy(a[:8]) for a in inputs.values()]
    fold_batchnorms(model, lambda m: list(outputs_to_dict(m(*example)).values()))
    halves = {name: array.astype(np.float16) for name, array in inputs.items()}
    real = run_torch(model.half(), halves, 100, device=device)
    graph = emulate_fp16(to_half(onnx.load(run_dir / "export" / "model.fp32.onnx")))
    emulated = {n: a.astype(np.float32) for n, a in run_model(graph, inputs).items()}
    emulated = dict(zip(reference, emulated.values(), strict=True))
    cells = [pipeline.parent.name]
    for out, ref in ((real, reference), (emulated, reference), (emulated, real)):
        found = compare_outputs(out, ref)
        cells += [f"{found.snr_db:.1f}", f"{found.max_abs_error:.4f}", f"{100 * (found.agreement or 0):.1f}"]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    parser.add_argument("pairs", nargs="+", type=Path, metavar="PIPELINE RUN_DIR")
    arguments = parser.parse_args()
    where = torch.cuda.get_device_name() if arguments.device == "cuda" else "CPU"
    print(f"torch {torch.__version__}, {where}")
    print(
        "| model | real: SNR dB | max | agree % | emulated: SNR dB | max | agree % | between: SNR dB | max | agree % |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for pipeline, run_dir in zip(arguments.pairs[::2], arguments.pairs[1::2], strict=True):
        print(measure(pipeline, run_dir, arguments.device))


if __name__ == "__main__":
    main()
