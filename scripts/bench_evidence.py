#!/usr/bin/env python3
"""Speed and memory of the evidence readers, and of Polygraphy's and TREx's readers on the same layer JSON.

    scripts/bench evidence                                   # our readers
    scripts/bench evidence --other /tmp/others/bin/python    # also the others, in a Python that has them

The other Python needs `pip install polygraphy pandas numpy` and `pip install --no-deps trt-engine-explorer`; nothing of
it is imported here. Files are made by repeating real grammar. Each measurement is a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

OWN = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
from deploychain.engine.evidence import read_evidence
def peak():  # of this process alone; ru_maxrss would keep that of the parent
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM:"))
base = peak()
wall, cpu = time.perf_counter(), time.process_time()
evidence = read_evidence([sys.argv[2]], asked="fp16")
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
assert evidence.readable
print(json.dumps({"wall": wall, "cpu": cpu, "layers": len(evidence.layers),
                  "mb": (peak() - base) / 1024}))
"""

# Polygraphy reads layer JSON only from a live engine. The stub below stands for that engine and hands out the file's
# layers one by one, so that its own loop (graph_data_from_trt_engine) does the work that is timed.
POLYGRAPHY = """
import json, sys, time, types, enum
trt = types.ModuleType("tensorrt"); trt.__version__ = "10.16.1"
class Any_:
    def __getattr__(self, name): return name
trt.LayerInformationFormat, trt.ProfilingVerbosity = Any_(), Any_()
trt.TensorIOMode, trt.DataType = Any_(), Any_()
sys.modules["tensorrt"] = trt
from polygraphy.tools.inspect.subtool.model.extractors import _trt
import polygraphy.backend.trt.util as util
util.get_metadata_from_engine = lambda *a, **k: {}
_trt._meta_to_tensor_infos = lambda meta: []
class Inspector:
    def __init__(self, layers): self.layers = layers
    def get_layer_information(self, index, form): return self.layers[index]
class Engine:
    num_io_tensors = 0; num_optimization_profiles = 1; profiling_verbosity = "DETAILED"; device_memory_size = 0
    device_memory_size_v2 = 0; name = "bench"; has_implicit_batch_dimension = False
    def __init__(self, layers): self.layers = layers; self.num_layers = len(layers)
    def __getattr__(self, name): return 0
    def create_engine_inspector(self): return Inspector(self.layers)
layers = [json.dumps(l) for l in json.load(open(sys.argv[1]))["Layers"]]
engine = Engine(layers)
wall, cpu = time.perf_counter(), time.process_time()
data = _trt.graph_data_from_trt_engine(engine, None)
print(json.dumps({"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "layers": len(data.nodes)}))
"""

TREX = """
import importlib.util, json, sys, time, types
# The package's own __init__ imports Jupyter widgets and plotting; the reader needs none of them.
spec = importlib.util.find_spec("trex")
package = types.ModuleType("trex"); package.__path__ = list(spec.submodule_search_locations)
sys.modules["trex"] = package
import warnings; warnings.simplefilter("ignore")
from trex.engine_plan import EnginePlan
wall, cpu = time.perf_counter(), time.process_time()
plan = EnginePlan(sys.argv[1])
print(json.dumps({"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "layers": len(plan.df)}))
"""


def make_log(path: Path, megabytes: int) -> None:
    """A verbose build and run: auto-tuning over and over, as the builder prints it, and one engine at the end."""
    stamp = "[07/07/2026-02:11:18]"
    tune = "".join(
        f"{stamp} [V] [TRT] {line}\n"
        for line in (
            "=============== Computing costs for node_conv2d + node_relu",
            "*************** Autotuning format combination: Half(25088,784:4,28,1) -> Half(25088,784:4,28,1) *********",
            "--------------- Timing Runner: node_conv2d + node_relu (CaskConvolution[0x80000009])",
            "node_conv2d + node_relu (CaskConvolution[0x80000009]) Set Tactic Name: sm80_xmma_fprop_implicit_gemm_"
            "f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize128x128x64_stage3_g1_tensor16x8x16 Tactic: 0x1ba9c79d8f5d4ed3",
            "Tactic: 0x1ba9c79d8f5d4ed3 Time: 0.0114347",
            "(Unnamed Layer* 14) [Matrix Multiply] (CublasLt[0x80000017]) profiling completed in 0.52 seconds.",
            ">>>>>>>>>>>>>>> Chose Runner Type: CaskConvolution Tactic: 0x1ba9c79d8f5d4ed3",
        )
    )
    with path.open("w", encoding="utf-8") as file:
        file.write("&&&& RUNNING TensorRT.trtexec [TensorRT v101601] [b11] # trtexec --onnx=a.onnx --fp16 --verbose\n")
        file.write(f"{stamp} [I] === Build Options ===\n{stamp} [I] Precision: FP32+FP16\n{stamp} [I] \n")
        for _ in range(megabytes * 1_000_000 // len(tune)):
            file.write(tune)
        file.write(f"{stamp} [V] [TRT] Engine Layer Information:\n")
        file.write("Layer(CaskConvolution): c, Tactic: 0x1, x (Half[1,8:8,4,4]) -> y (Half[1,8:8,4,4])\n")
        file.write(f"{stamp} [I] Throughput: 100 qps\n")
        file.write("&&&& PASSED TensorRT.trtexec [TensorRT v101601] [b11] # trtexec --onnx=a.onnx --fp16 --verbose\n")


def make_layers(path: Path, count: int) -> None:
    """Layer JSON in the form of TensorRT 10: three layers in four with weights, one a reformat."""
    layers = []
    for i in range(count):
        word = "Channel major FP16 format where channel % 8 == 0" if i % 7 else "Row major linear FP32"
        tensor = {"Location": "Device", "Dimensions": [1, 64, 56, 56], "Format/Datatype": word}
        layer: dict[str, object] = {
            "Name": f"/layer{i}/conv/Conv + /layer{i}/relu/Relu",
            "LayerType": "CaskConvolution" if i % 4 else "Reformat",
            "Inputs": [{"Name": f"t{i}", **tensor}],
            "Outputs": [{"Name": f"t{i + 1}", **tensor}],
            "ParameterType": "Convolution" if i % 4 else "Reformat",
            "TacticName": "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize64x64x64",
            "TacticValue": f"0x{i:016x}",
            "StreamId": 0,
            "Metadata": f"[ONNX Layer: /layer{i}/conv/Conv]\x1e[ONNX Layer: /layer{i}/relu/Relu]",
        }
        if i % 4:
            layer.update(Kernel=[3, 3], Stride=[1, 1], OutMaps=64, Groups=1)
            layer.update(
                Weights={"Type": "Half", "Count": 36864}, Bias={"Type": "Half", "Count": 64}, HasBias=1, HasReLU=1
            )
        layers.append(layer)
    path.write_text(json.dumps({"Layers": layers, "Bindings": ["t0", f"t{count}"]}, indent=1), encoding="utf-8")


def measure(python: str, code: str, *arguments: str) -> dict[str, float]:
    done = subprocess.run(
        [python, "-c", code, *arguments], capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no output"
        raise RuntimeError(last)
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def best(python: str, code: str, *arguments: str, repeats: int) -> dict[str, float]:
    """The run with the least CPU time: the machine is shared."""
    return min((measure(python, code, *arguments) for _ in range(repeats)), key=lambda run: run["cpu"])


def row(what: str, run: dict[str, float], note: str) -> None:
    memory = f"{run['mb']:.1f}" if "mb" in run else ""
    print(f"| {what} | {run['wall']:.2f} | {run['cpu']:.2f} | {memory} | {note} |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--other", help="a Python interpreter with polygraphy and trt-engine-explorer")
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--layers", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    print(f"{time.strftime('%Y-%m-%d')}, Python {sys.version.split()[0]}, {os.cpu_count()} cores, load {load:.1f}")
    print("| what | wall s | CPU s | memory MB | |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for megabytes in sorted({arguments.megabytes // 10, arguments.megabytes}):
            path = Path(folder) / "verbose.log"
            make_log(path, megabytes)
            run = best(sys.executable, OWN, str(ROOT), str(path), repeats=arguments.repeats)
            note = f"{run['cpu'] / megabytes * 100:.2f} s CPU per 100 MB"
            row(f"verbose log, {megabytes} MB", run, note)
        for count in sorted({arguments.layers // 10, arguments.layers}):
            path = Path(folder) / "layers.json"
            make_layers(path, count)
            own = best(sys.executable, OWN, str(ROOT), str(path), repeats=arguments.repeats)
            row(f"layer JSON, {count} layers ({path.stat().st_size / 1e6:.0f} MB)", own, "read, classified, judged")
            for name, code in (("Polygraphy", POLYGRAPHY), ("TREx", TREX)) if arguments.other else ():
                try:
                    run = best(arguments.other, code, str(path), repeats=1)
                except RuntimeError as error:
                    print(f"| {name}, the same file | | | | failed: {error} |")
                    continue
                row(f"{name}, the same file", run, f"{run['cpu'] / own['cpu']:.1f} x ours")
    return 0


if __name__ == "__main__":
    sys.exit(main())
