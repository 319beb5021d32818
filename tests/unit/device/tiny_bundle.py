"""A bundle of three tiny models, made with the standard library and numpy: no framework is needed to test a device."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from deploychain.device.archive import write_archive

FLOAT, HALF = 1, 10
SAMPLES, CLASSES = 40, 5
Node = tuple[str, str, list[str], list[str]]  # name, operator ("Cast:10" casts to type 10), inputs, outputs

_PLAIN: list[Node] = [
    ("/c1/Conv", "Conv", ["x", "w1"], ["a"]),
    ("/r/Relu", "Relu", ["a"], ["b"]),
    ("/c2/Conv", "Conv", ["b", "w2"], ["c"]),
    ("/head/Gemm", "Gemm", ["c", "w3"], ["y"]),
]
_HALF: list[Node] = [
    ("/in/Cast", f"Cast:{HALF}", ["x"], ["x16"]),
    ("/c1/Conv", "Conv", ["x16", "w1"], ["a"]),
    *_PLAIN[1:3],
    ("/head/Gemm", "Gemm", ["c", "w3"], ["y16"]),
    ("/out/Cast", f"Cast:{FLOAT}", ["y16"], ["y"]),
]
_QUANTISED: list[Node] = [
    ("/c1/aq/QuantizeLinear", "QuantizeLinear", ["x", "s"], ["xq"]),
    ("/c1/aq/DequantizeLinear", "DequantizeLinear", ["xq", "s"], ["xd"]),
    ("/c1/wq/QuantizeLinear", "QuantizeLinear", ["w1", "s"], ["wq"]),
    ("/c1/wq/DequantizeLinear", "DequantizeLinear", ["wq", "s"], ["wd"]),
    ("/c1/Conv", "Conv", ["xd", "wd"], ["a"]),
    *_PLAIN[1:],
]


def _varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def _field(number: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _value(name: str, shape: list[int | str]) -> bytes:
    dims = b"".join(_field(1, _field(1, d) if isinstance(d, int) else _field(2, d)) for d in shape)
    return _field(1, name) + _field(2, _field(1, _field(1, FLOAT) + _field(2, dims)))


def onnx_bytes(nodes: list[Node], weights: Mapping[str, int]) -> bytes:
    """A ModelProto of opset 17: initialisers are given as name -> element type, one value each."""
    graph = b""
    for name, op, inputs, outputs in nodes:
        parts = b"".join(_field(1, i) for i in inputs) + b"".join(_field(2, o) for o in outputs)
        op, _, to = op.partition(":")
        cast = _field(5, _field(1, "to") + _field(3, int(to)) + _field(20, 2)) if to else b""
        graph += _field(1, parts + _field(3, name) + _field(4, op) + cast)
    graph += _field(2, "tiny")
    for name, kind in weights.items():
        raw = struct.pack("<f", 1.0) if kind == FLOAT else struct.pack("<e", 1.0)
        graph += _field(5, _field(1, 1) + _field(2, kind) + _field(8, name) + _field(9, raw))
    graph += _field(11, _value("x", ["batch", 4])) + _field(12, _value("y", ["batch", CLASSES]))
    return _field(1, 8) + _field(7, graph) + _field(8, _field(1, "") + _field(2, 17))


def write_bundle(folder: Path, *, held: Mapping[str, str] | None = None, weight: str = "w1") -> Path:
    """Write ``folder/bundle.tar``. ``held`` are the nodes that the plan keeps in FP32."""
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((SAMPLES, 4)).astype(np.float32)
    outputs = rng.standard_normal((SAMPLES, CLASSES)).astype(np.float32)
    targets = outputs.argmax(axis=1)
    targets[:4] = (targets[:4] + 1) % CLASSES  # the reference is right on 36 of 40
    single, half = dict.fromkeys(("w1", "w2", "w3"), FLOAT), dict.fromkeys(("w1", "w2", "w3"), HALF)
    if weight != "w1":
        single[weight] = FLOAT
    models = {
        "onnx-fp32": onnx_bytes(_PLAIN, single),
        "onnx-fp16": onnx_bytes(_HALF, half),
        "onnx-int8": onnx_bytes(_QUANTISED, {**single, "s": FLOAT}),
        "onnx-qat": onnx_bytes(_QUANTISED, {**single, "s": FLOAT}),
    }
    source = folder / "source"
    source.mkdir(parents=True, exist_ok=True)
    files: dict[str, Path] = {}
    for kind, content in models.items():
        files[f"models/{kind}/model.onnx"] = source / f"{kind}.onnx"
        (source / f"{kind}.onnx").write_bytes(content)
    arrays = {"input-0": inputs, "onnx-fp32-0": outputs, "targets-0": targets}
    for key, array in arrays.items():
        np.save(source / f"{key}.npy", array)
        files[f"golden/{key}.npy"] = source / f"{key}.npy"

    def tensor(key: str, called: str) -> dict[str, Any]:
        array = arrays[key]
        return {"name": called, "file": f"golden/{key}.npy", "dtype": array.dtype.str, "shape": list(array.shape)}

    weak = {"fp32": ("onnx-fp32", []), "fp16": ("onnx-fp32", ["fp16"]), "int8": ("onnx-qat", ["fp16", "int8"])}
    engines = [
        {
            "name": kind,
            "model": f"models/onnx-{kind}/model.onnx",
            "nodes": {},
            "op_types": {},
            "weak": {
                "model": f"models/{weak[kind][0]}/model.onnx",
                "flags": weak[kind][1],
                "layer_precisions": dict(held or {}) if kind == "fp16" else {},
            },
        }
        for kind in ("fp32", "fp16", "int8")
    ]
    manifest = {
        "schema": "deploychain.bundle/1",
        "name": "tiny",
        "engines": engines,
        "profiles": {"x": {"min": [1, 4], "opt": [8, 4], "max": [16, 4]}},
        "golden": {
            "samples": SAMPLES,
            "data_sha256": "0" * 64,
            "inputs": [tensor("input-0", "x")],
            "reference": "onnx-fp32",
            "outputs": {"onnx-fp32": [tensor("onnx-fp32-0", "y")]},
            "targets": tensor("targets-0", "targets"),
            "classes": [],
        },
        "evals": [
            {
                "stage": "onnx-fp32",
                "ran": True,
                "reference": "onnx-fp32",
                "samples": SAMPLES,
                "metrics": {"top1": 0.9},
                "exact": True,
            }
        ],
        "directions": {"top1": "higher"},
        "modules": {"/c1/Conv": "c1"},
        "versions": {"deploychain": "test"},
    }
    target = folder / "bundle.tar"
    write_archive(target, manifest, files)
    return target
