"""Cost of planning: range analysis of a ResNet-50, and a search in a model of 500 nodes against a linear scan.

    python scripts/bench_plan.py ranges [--images 128]
    python scripts/bench_plan.py search [--scan]

Prints Markdown rows. Run each on a quiet machine; OMP_NUM_THREADS sets the threads.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from deploychain.backends import onnx_graph, onnx_local, onnx_range
from deploychain.backends.onnx_emulate import Emulator
from deploychain.numerics.drop import Yardstick
from deploychain.numerics.search import Journal, Search, linear_scan, smallest_kept


def resnet50(seed: int = 0) -> onnx.ModelProto:
    """ResNet-50 with BatchNorm folded, He-initialised: 53 convolutions, 25.5 M parameters."""
    random = np.random.default_rng(seed)
    nodes, weights = [], []

    def conv(x: str, name: str, inner: int, outer: int, kernel: int, stride: int, gain: float = 1.0) -> str:
        w = random.standard_normal((outer, inner, kernel, kernel), np.float32) * gain * (2 / (inner * kernel**2)) ** 0.5
        weights.extend([numpy_helper.from_array(w.astype(np.float32), f"{name}.w")])
        weights.append(numpy_helper.from_array(np.zeros(outer, np.float32), f"{name}.b"))
        nodes.append(
            helper.make_node(
                "Conv",
                [x, f"{name}.w", f"{name}.b"],
                [f"{name}_out"],
                name=name,
                kernel_shape=[kernel] * 2,
                strides=[stride] * 2,
                pads=[kernel // 2] * 4,
            )
        )
        return f"{name}_out"

    def simple(op: str, name: str, *inputs: str, **attributes: object) -> str:
        nodes.append(helper.make_node(op, list(inputs), [f"{name}_out"], name=name, **attributes))
        return f"{name}_out"

    x = simple("Relu", "/relu", conv("x", "/conv1", 3, 64, 7, 2))
    x = simple("MaxPool", "/pool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    inner = 64
    for stage, (width, blocks, stride) in enumerate(((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))):
        for block in range(blocks):
            name, step = f"/layer{stage + 1}/{block}", stride if block == 0 else 1
            y = simple("Relu", f"{name}/relu1", conv(x, f"{name}/conv1", inner, width, 1, 1))
            y = simple("Relu", f"{name}/relu2", conv(y, f"{name}/conv2", width, width, 3, step))
            y = conv(y, f"{name}/conv3", width, 4 * width, 1, 1, 0.3)
            skip = conv(x, f"{name}/down", inner, 4 * width, 1, step, 0.7) if block == 0 else x
            x = simple("Relu", f"{name}/relu3", simple("Add", f"{name}/add", y, skip))
            inner = 4 * width
    x = simple("Flatten", "/flatten", simple("GlobalAveragePool", "/avg", x))
    weights.append(numpy_helper.from_array((random.standard_normal((1000, 2048)) * 0.02).astype(np.float32), "fc.w"))
    nodes.append(helper.make_node("Gemm", [x, "fc.w"], ["y"], name="/fc", transB=1))
    graph = helper.make_graph(
        nodes,
        "resnet50",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, 224, 224])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 1000])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def deep(culprits: tuple[int, ...], blocks: int = 125, width: int = 32) -> tuple[onnx.ModelProto, set[str]]:
    """About 500 nodes: residual blocks of MatMul, Tanh, MatMul, Add. In a culprit the second MatMul has weights of
    1e-7 (subnormal in FP16) between a scaling up and a scaling down that are both harmless."""
    random = np.random.default_rng(0)
    nodes, weights, names = [], [], set()
    x = "x"
    for index in range(blocks):
        bad = index in culprits
        name = f"/block{index}"
        first = random.standard_normal((width, width)) * width**-0.5
        second = random.standard_normal((width, width)) * (1e-7 if bad else 0.1 * width**-0.5)
        for part, value in (("a", first), ("b", second)):
            weights.append(numpy_helper.from_array(value.astype(np.float32), f"{name}.{part}"))
        nodes.append(helper.make_node("MatMul", [x, f"{name}.a"], [f"{name}_a"], name=f"{name}/MatMul"))
        if bad:
            weights.append(numpy_helper.from_array(np.float32(5e3), f"{name}.s"))
            nodes.append(helper.make_node("Mul", [f"{name}_a", f"{name}.s"], [f"{name}_t"], name=f"{name}/Mul"))
            weights.append(numpy_helper.from_array(np.float32(300.0), f"{name}.r"))
        else:
            nodes.append(helper.make_node("Tanh", [f"{name}_a"], [f"{name}_t"], name=f"{name}/Tanh"))
        nodes.append(helper.make_node("MatMul", [f"{name}_t", f"{name}.b"], [f"{name}_b"], name=f"{name}/MatMul_1"))
        branch = f"{name}_b"
        if bad:
            nodes.append(helper.make_node("Mul", [branch, f"{name}.r"], [f"{name}_c"], name=f"{name}/Mul_1"))
            branch = f"{name}_c"
            names.add(f"{name}/MatMul_1")
        nodes.append(helper.make_node("Add", [x, branch], [f"{name}_x"], name=f"{name}/Add"))
        x = f"{name}_x"
    graph = helper.make_graph(
        nodes,
        "deep",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", width])],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, ["batch", width])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), names


def bench_ranges(images: int) -> None:
    data = np.random.default_rng(1).standard_normal((images, 3, 224, 224), np.float32)
    model = onnx_graph.prepare(resnet50())
    started = time.monotonic()
    report = onnx_range.measure(model, {"x": data})
    seconds = time.monotonic() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    counted = sum(r.count for r in report.ranges.values())
    print("| images | tensors | elements | batch | runs | seconds | peak memory GiB |\n|---|---|---|---|---|---|---|")
    print(
        f"| {images} | {len(report.ranges)} | {counted / 1e9:.2f} G | {report.batch_size} | {report.runs} "
        f"| {seconds:.0f} | {peak:.2f} |"
    )


def bench_search(scan: bool) -> None:
    model, culprits = deep((17, 60, 101))
    prepared = onnx_graph.prepare(model)
    infos = onnx_graph.node_infos(prepared)
    data = {"x": np.random.default_rng(2).standard_normal((64, 32)).astype(np.float32)}
    emulator = Emulator(prepared, infos, data)
    yardstick = Yardstick(emulator.outputs(frozenset()))
    names = [i.name for i in infos]
    every = frozenset(names)

    def evaluate(kept: frozenset[str]) -> float:
        return yardstick.drop(emulator.outputs(every - kept))

    local = onnx_local.local_snr(prepared, infos, data)
    suspicious = sorted(names, key=lambda n: local.get(n, float("inf")))
    shuffled = list(np.random.default_rng(3).permutation(names))
    limit = 0.5
    print(f"{len(names)} nodes, 3 culprits, limit {limit} % output error\n")
    print("| way | evaluations | seconds | found | of them culprits | drop before, after |\n|---|---|---|---|---|---|")

    def row(label: str, how: object) -> None:
        started = time.monotonic()
        found: Search = how()  # type: ignore[operator]
        hits = len(culprits & set(found.kept))
        print(
            f"| {label} | {found.evaluations} | {time.monotonic() - started:.1f} | {len(found.kept)} | {hits} of 3 "
            f"| {found.drop_without:.3g}, {found.drop:.3g} |",
            flush=True,
        )

    row("search, ordered by local error", lambda: smallest_kept(suspicious, Journal(evaluate), limit))
    row("search, random order", lambda: smallest_kept(shuffled, Journal(evaluate), limit))
    if scan:
        row("linear scan", lambda: linear_scan(names, Journal(evaluate), limit))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("ranges", "search"))
    parser.add_argument("--images", type=int, default=128)
    parser.add_argument("--scan", action="store_true", help="also the linear scan (minutes)")
    arguments = parser.parse_args()
    if arguments.what == "ranges":
        bench_ranges(arguments.images)
    else:
        bench_search(arguments.scan)


if __name__ == "__main__":
    main()
