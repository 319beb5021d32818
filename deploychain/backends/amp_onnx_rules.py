"""The rules on ONNX files: opset contract, dynamic axes, decomposed norms, FP16 range, grid precision, vanishing eps.

The graph is read, checked and opened in onnxruntime; nothing is converted. R24 (what an engine really runs in) is the
business of `deploychain layers`.
"""

# ruff: noqa: E501  (messages are one piece of text)
from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from deploychain.audit.finding import AuditReport, Finding, Problem, Severity
from deploychain.errors import DeploychainError

if TYPE_CHECKING:
    from deploychain.numerics.range import TensorRange

FP16_MAX = 65504.0
FP16_ZERO = 2.0**-25
WARN_ABOVE = 16384.0  # two doublings from overflow
LOST_SHARE = 0.01
LARGE_MAP = 256
LAYER_NORM_OPSET = 17
_CONSTANT_USERS = frozenset({"Add", "Sub", "Mul", "Div", "Max", "Clip", "Pow", "Where"})


def audit_onnx(path: Path, *, requested_opset: int | None = None, dynamic_batch: bool | None = None) -> AuditReport:
    """Audit one ONNX file.

    Args:
        requested_opset: what the exporter was asked for; None leaves that part of R19 out.
        dynamic_batch: True where the batch is meant to be dynamic (R20); None does not judge it.
    """
    try:
        model = onnx.load(str(path))
    except Exception as error:
        return AuditReport(files=1, problems=(Problem(str(path), f"not an ONNX file: {_first_line(error)}"),))
    return audit_model_proto(model, str(path), requested_opset=requested_opset, dynamic_batch=dynamic_batch, file=path)


def audit_model_proto(
    model: onnx.ModelProto,
    path: str,
    *,
    requested_opset: int | None = None,
    dynamic_batch: bool | None = None,
    file: Path | None = None,
) -> AuditReport:
    """The same for a model in memory; `file` lets the checker find external data."""
    graph = _Graph(model, path)
    findings = [
        *_opset_contract(graph, requested_opset, file),
        *_dynamic_axes(graph, dynamic_batch),
        *_decomposed_norms(graph),
        *_constants(graph),
        *_grids(graph),
    ]
    return AuditReport(tuple(findings), 1)


def audit_ranges(path: Path, inputs: Mapping[str, np.ndarray[Any, Any]]) -> AuditReport:
    """R22 on calibration data: the FP32 range of every intermediate tensor.

    Args:
        inputs: input name -> array; axis 0 counts samples.

    onnxruntime on a CPU hides FP16 overflow, so what counts is the FP32 value against 65504.
    """
    from deploychain.backends.onnx_graph import load, prepare
    from deploychain.backends.onnx_range import measure

    try:
        report = measure(prepare(load(path)), inputs)
    except DeploychainError as error:
        return AuditReport(files=1, problems=(Problem(str(path), error.message),))
    return AuditReport(tuple(judge_ranges(report.ranges, str(path))), 1)


def judge_ranges(ranges: Mapping[str, TensorRange], path: str) -> list[Finding]:
    """Findings from measured FP32 ranges: beyond FP16, near its end, or largely below what it can hold."""
    found = []
    for name, seen in ranges.items():
        if seen.abs_max > FP16_MAX:
            found.append(
                _finding(
                    path, "R22", Severity.ERROR, name, f"reaches {seen.abs_max:.4g} in FP32: inf in FP16 (maximum 65504)",
                    "keep the node that makes it in FP32 (deploychain plan does)",
                )
            )  # fmt: skip
        elif seen.abs_max > WARN_ABOVE:
            found.append(
                _finding(
                    path, "R22", Severity.WARNING, name, f"reaches {seen.abs_max:.4g} in FP32: two doublings from FP16 overflow",
                    "keep the node that makes it in FP32, or calibrate on more data",
                )
            )  # fmt: skip
        elif seen.underflow_share > LOST_SHARE:
            found.append(
                _finding(
                    path, "R22", Severity.WARNING, name, f"{100 * seen.underflow_share:.1f} % of its non-zero values are 0 in FP16",
                    "keep the node that makes it in FP32, unless the tiny values are meant to vanish (masks)",
                )
            )  # fmt: skip
    return found


class _Graph:
    """Look-ups over one model."""

    def __init__(self, model: onnx.ModelProto, path: str) -> None:
        self.model, self.path, self.graph = model, path, model.graph
        self.opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)
        self.producer = {name: node for node in self.graph.node for name in node.output}
        self.users: dict[str, list[onnx.NodeProto]] = {}
        for node in self.graph.node:
            for name in node.input:
                self.users.setdefault(name, []).append(node)
        self.initializers = {i.name: i for i in self.graph.initializer}
        self.types: dict[str, int] = {i.name: i.data_type for i in self.graph.initializer}
        self.shapes: dict[str, tuple[int | None, ...]] = {}
        try:
            inferred = onnx.shape_inference.infer_shapes(model).graph
        except Exception:
            inferred = self.graph  # a graph that the checker will complain about
        for value in (*inferred.input, *inferred.output, *inferred.value_info):
            tensor = value.type.tensor_type
            self.types[value.name] = tensor.elem_type
            self.shapes[value.name] = tuple(d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim)

    def half(self, name: str) -> bool:
        return self.types.get(name) in (TensorProto.FLOAT16, TensorProto.BFLOAT16)

    @property
    def has_half(self) -> bool:
        return any(t == TensorProto.FLOAT16 for t in self.types.values())

    def constant(self, name: str) -> np.ndarray[Any, Any] | None:
        tensor = self.initializers.get(name)
        if tensor is None:
            node = self.producer.get(name)
            if node is not None and node.op_type == "Constant":
                tensor = next((a.t for a in node.attribute if a.name == "value"), None)
        if tensor is None or (tensor.data_location == TensorProto.EXTERNAL):
            return None
        return numpy_helper.to_array(tensor)

    def name(self, node: onnx.NodeProto) -> str:
        return node.name or f"{node.op_type} -> {node.output[0] if node.output else '?'}"

    def made_by(self, name: str, op: str) -> onnx.NodeProto | None:
        """The node of this type that makes a tensor, looking through casts."""
        node = self.producer.get(name)
        while node is not None and node.op_type == "Cast":
            node = self.producer.get(node.input[0])
        return node if node is not None and node.op_type == op else None


def _opset_contract(graph: _Graph, requested: int | None, file: Path | None) -> Iterator[Finding]:
    if requested is not None and graph.opset != requested:
        yield _finding(
            graph.path, "R19", Severity.ERROR, "", f"the file is at opset {graph.opset}, {requested} was asked for: the dynamo exporter did "
            "not convert it and raised nothing", "dynamo=False for 17, or ask for 18",
        )  # fmt: skip
    try:
        onnx.checker.check_model(str(file) if file is not None else graph.model, full_check=True)
    except Exception as error:
        yield _finding(
            graph.path,
            "R19",
            Severity.ERROR,
            "",
            f"not a valid opset {graph.opset} file: {_first_line(error)}",
            "export again with dynamo=False, or at opset 18",
        )
        return
    try:
        from deploychain.backends.onnx_graph import open_model

        open_model(graph.model)
    except ImportError:
        return
    except Exception as error:
        yield _finding(
            graph.path,
            "R19",
            Severity.ERROR,
            "",
            f"onnxruntime cannot load it: {_first_line(error)}",
            "see the node that it names",
        )


def _dynamic_axes(graph: _Graph, dynamic: bool | None) -> Iterator[Finding]:
    if not dynamic:
        return
    weights = set(graph.initializers)
    for value in graph.graph.input:
        shape = graph.shapes.get(value.name, ())
        if value.name not in weights and shape and shape[0] is not None:
            yield _finding(
                graph.path, "R20", Severity.ERROR, value.name, f"the batch is fixed at {shape[0]}: dynamic_axes had no effect",
                "pass input_names and output_names with dynamic_axes, or dynamic_shapes with dynamo=True",
            )  # fmt: skip


def _decomposed_norms(graph: _Graph) -> Iterator[Finding]:
    half = graph.has_half
    for node in graph.graph.node:
        if (
            node.op_type == "Cast"
            and half
            and any(a.name == "to" and a.i == TensorProto.DOUBLE for a in node.attribute)
        ):
            yield _finding(
                graph.path, "R21", Severity.WARNING, graph.name(node), "a cast to DOUBLE in a half graph: a LayerNorm that was exported "
                "below opset 17", "export at opset 17 (LayerNormalization)",
            )  # fmt: skip
        if node.op_type != "Div" or not _is_norm_chain(graph, node):
            continue
        bound = graph.half(node.output[0])
        yield _finding(
            graph.path, "R21", Severity.WARNING if bound else Severity.NOTE, graph.name(node),
            ("a LayerNorm taken apart, in float16" if bound else "a LayerNorm taken apart: it must stay FP32")
            + ": a value more than 255 from the mean overflows in Pow and the output becomes 0",
            f"export at opset {LAYER_NORM_OPSET} or higher, or pin ReduceMean to Div to FP32",
        )  # fmt: skip


def _is_norm_chain(graph: _Graph, div: onnx.NodeProto) -> bool:
    """Div(Sub(x, ReduceMean(x)), Sqrt(Add(ReduceMean(Pow or Mul of that Sub), eps)))"""
    sub = graph.made_by(div.input[0], "Sub")
    root = graph.made_by(div.input[1], "Sqrt") if len(div.input) > 1 else None
    if sub is None or root is None or graph.made_by(sub.input[1], "ReduceMean") is None:
        return False
    add = graph.made_by(root.input[0], "Add")
    for name in add.input if add is not None else root.input:
        mean = graph.made_by(name, "ReduceMean")
        if mean is not None and any(graph.made_by(mean.input[0], op) is not None for op in ("Pow", "Mul")):
            return True
    return False


def _constants(graph: _Graph) -> Iterator[Finding]:
    """Scalars that float16 turns to 0 (R09) or inf (R22), where they meet a float16 tensor or are float16 themselves."""
    for node in graph.graph.node:
        if node.op_type not in _CONSTANT_USERS:
            continue
        others_half = any(graph.half(name) for name in node.input)
        for name in node.input:
            value = graph.constant(name) if name else None
            if value is None or value.size != 1 or value.dtype.kind != "f":
                continue
            number = float(value.reshape(-1)[0])
            in_half = value.dtype == np.float16 or others_half
            if (
                in_half
                and number == 0.0
                and value.dtype == np.float16
                and node.op_type in ("Add", "Max", "Clip")
                and _guards(graph, node)
            ):
                yield _finding(
                    graph.path, "R09", Severity.WARNING, graph.name(node), f"`{name}` is 0 in float16 and guards a root or a division: an "
                    "eps that vanished", "keep this block in FP32, or use an eps of 1e-6",
                )  # fmt: skip
            elif not in_half and 0 < abs(number) <= FP16_ZERO and _guards(graph, node):
                yield _finding(
                    graph.path, "R09", Severity.NOTE, graph.name(node), f"the constant {number:g} would be 0 in FP16",
                    "keep this node in FP32 (deploychain plan does)",
                )  # fmt: skip
            elif not np.isfinite(number) and value.dtype == np.float16 and node.op_type in ("Add", "Mul"):
                yield _finding(
                    graph.path, "R22", Severity.WARNING, graph.name(node), f"`{name}` is inf in float16: a constant beyond 65504",
                    "use -65504 as the mask value",
                )  # fmt: skip
            elif not in_half and FP16_MAX < abs(number) < float("inf") and node.op_type in ("Add", "Mul", "Where"):
                yield _finding(
                    graph.path, "R22", Severity.NOTE, graph.name(node), f"the constant {number:g} would be inf in FP16",
                    "use the smallest FP16 value (-65504) as the mask value, or keep this node in FP32",
                )  # fmt: skip


def _guards(graph: _Graph, node: onnx.NodeProto) -> bool:
    """The result goes into a root, a division or a logarithm."""
    for user in graph.users.get(node.output[0], ()):
        if user.op_type in ("Sqrt", "Log", "Reciprocal") or (
            user.op_type == "Div" and len(user.input) > 1 and user.input[1] == node.output[0]
        ):
            return True
    return False


def _grids(graph: _Graph) -> Iterator[Finding]:
    for node in graph.graph.node:
        if node.op_type != "GridSample" or len(node.input) < 2 or not graph.half(node.input[1]):
            continue
        sides = [d for d in graph.shapes.get(node.input[0], ())[2:] if d is not None]
        if sides and max(sides) <= LARGE_MAP:
            continue
        size = f"{max(sides)} wide" if sides else "of unknown size"
        yield _finding(
            graph.path, "R23", Severity.WARNING, graph.name(node), f"the grid is float16 for a map {size}: coordinates are off by 0.23 "
            "pixels at 1920", "FP32 grid and image around the node (TensorRT wants one type for both)",
        )  # fmt: skip


def _finding(path: str, rule: str, severity: Severity, where: str, message: str, fix: str) -> Finding:
    return Finding(path, 1, 1, rule, severity, f"{where}: {message}" if where else message, fix)


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    lines = [line for line in text.splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:160] if lines else ''}"
