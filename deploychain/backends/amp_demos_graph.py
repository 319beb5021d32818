"""Experiments on export and graphs: R18 to R21, R24."""

# mypy: disable-error-code="no-untyped-call, func-returns-value, no-any-return"
from __future__ import annotations

import contextlib
import io
import json
import logging
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from deploychain.backends.amp_demos import Facts, caught


class _Probed(nn.Module):
    def __init__(self, probe: bool) -> None:
        super().__init__()
        self.layer, self.probe = nn.Linear(4, 4), probe

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.layer(x)
        if self.probe:
            assert not torch.isnan(y).any()
        return y


class _Mean(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(-1)


class _Split(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a, b = x.chunk(2, -1)
        return a * b


class _Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.norm(x)
        return y


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    # The exporter prints progress; its loggers report each failed conversion with a traceback.
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(logging.NOTSET)


def _export(model: nn.Module, x: torch.Tensor, **settings: Any) -> Any:
    import onnx

    with tempfile.TemporaryDirectory() as folder, _quiet():
        path = str(Path(folder) / "m.onnx")
        torch.onnx.export(model.eval(), (x,), path, **settings)
        return onnx.load(path)


def _opset(proto: Any) -> int:
    return int(next(o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")))


def _valid(proto: Any) -> str:
    import onnx

    return caught(lambda: onnx.checker.check_model(proto, full_check=True)) or "valid"


def r18() -> tuple[Facts, str]:
    x = torch.randn(2, 4)
    with _quiet():
        without = caught(lambda: torch.export.export(_Probed(False), (x,))) or "exported"
        with_assert = caught(lambda: torch.export.export(_Probed(True), (x,)))
    value = torch.tensor([1e-30], requires_grad=True)
    out = value.sqrt() * 1e-30
    (out / out.detach() * 1e30).backward()
    assert value.grad is not None
    return {
        "torch.export without the assert": without,
        "torch.export with the assert": with_assert[:90],
        "an output that is finite": out.item(),
        "its gradient": value.grad.item(),
    }, "probe from outside: hooks, or the monitor"


def r19() -> tuple[Facts, str]:
    dynamo, split = (
        _export(_Mean(), torch.randn(2, 4), opset_version=17, dynamo=True),
        _export(_Split(), torch.randn(2, 4), opset_version=17, dynamo=True),
    )
    script = _export(_Mean(), torch.randn(2, 4), opset_version=17, dynamo=False)
    return {
        "dynamo, asked for 17: mean": f"opset {_opset(dynamo)}",
        "dynamo, asked for 17: chunk": f"opset {_opset(split)}, {_valid(split)[:60]}",
        "TorchScript, asked for 17: mean": f"opset {_opset(script)}, {_valid(script)}",
    }, "look at the file, not at the argument"


def r20() -> tuple[Facts, str]:
    def first_dim(**settings: Any) -> str:
        proto = _export(nn.Linear(4, 2), torch.randn(3, 4), opset_version=17, dynamo=False, **settings)
        dim = proto.graph.input[0].type.tensor_type.shape.dim[0]
        return dim.dim_param or str(dim.dim_value)

    axes = {"x": {0: "batch"}, "y": {0: "batch"}}
    return {
        "first dimension, dynamic_axes without names": first_dim(dynamic_axes=axes),
        "first dimension, with names": first_dim(dynamic_axes=axes, input_names=["x"], output_names=["y"]),
    }, "without names dynamic_axes is ignored and the batch stays fixed"


def r21() -> tuple[Facts, str]:
    def chain(x: torch.Tensor, eps: float) -> torch.Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return centred / torch.sqrt((centred * centred).mean(-1, keepdim=True) + eps)

    x = torch.randn(8, 64) * 300
    half = chain(x.half(), 1e-5)
    kernel = torch.nn.functional.layer_norm(x.half(), (64,))
    constant = chain(torch.full((1, 64), 3.0, dtype=torch.float16), 1e-8)
    old = _export(_Net(), torch.randn(2, 8), opset_version=13, dynamo=False)
    new = _export(_Net(), torch.randn(2, 8), opset_version=17, dynamo=False)
    return {
        "chain in float16 at std 300, share of zeros": (half == 0).float().mean().item(),
        "kernel in float16 at std 300, std of the output": kernel.float().std().item(),
        "chain in float16, eps 1e-8, constant row": constant[0, 0].item(),
        "ops at opset 13": [n.op_type for n in old.graph.node if n.op_type != "Constant"],
        "ops at opset 17": [n.op_type for n in new.graph.node if n.op_type != "Constant"],
    }, "opset 17 keeps the norm whole"


def r24() -> tuple[Facts, str]:
    from deploychain.engine.evidence import read_evidence

    bare = {"Layers": ["conv1 + relu1", "fc"], "Bindings": ["x", "y"]}
    tensors = {"Name": "x", "Dimensions": [1, 8], "Format/Datatype": "Row major linear FP16 format"}
    detailed = {
        "Layers": [
            {"Name": "fc", "LayerType": "MatrixMultiply", "Inputs": [tensors], "Outputs": [{**tensors, "Name": "y"}]}
        ],
        "Bindings": ["x", "y"],
    }
    facts: Facts = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, document in (("default verbosity", bare), ("detailed", detailed)):
            path = Path(folder) / f"{name}.json"
            path.write_text(json.dumps(document), encoding="utf-8")
            layers = read_evidence([path]).layers
            facts[f"{name}: precision of each layer"] = [
                str(getattr(layer.compute, "value", layer.compute)) for layer in layers
            ] or "no layers"
    return facts, "without --profilingVerbosity=detailed nothing is known: `deploychain layers` says unknown"


DEMOS: dict[str, Callable[[], tuple[Facts, str]]] = {"R18": r18, "R19": r19, "R20": r20, "R21": r21, "R24": r24}
