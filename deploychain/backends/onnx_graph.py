"""ONNX files and graphs as the plan needs them: loading, a canonical form, node facts, order, casts, saving."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import onnx
import onnxruntime as ort
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper

from deploychain.backends.onnx_edit import (
    captured,
    constants_to_initializers,
    drop_unused_initializers,
    drop_weight_inputs,
    fold_identities,
    name_nodes,
    sort_topologically,
)
from deploychain.backends.ort import open_session, session_options
from deploychain.engine.origin import torch_module
from deploychain.errors import ArtifactError, StageError
from deploychain.numerics.nodes import Constant, NodeInfo
from deploychain.numerics.range import range_of

__all__ = ["drop_unused_initializers", "sort_topologically"]  # re-exported: most callers need both halves

FLOAT, FLOAT16, BFLOAT16 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16
LOW_TYPES: Mapping[str, int] = {"fp16": FLOAT16, "bf16": BFLOAT16}
_TYPE_NAMES: dict[int, str] = {FLOAT16: "tensor(float16)", BFLOAT16: "tensor(bfloat16)"}
_PROTO_LIMIT = 2_000_000_000  # protobuf refuses messages of 2 GiB; some room for the graph
_LEAN_LIMIT = 64_000_000  # from here on, weights stay out of copies that only the graph is needed of
_SMALL = 1024  # bytes: weights up to this stay inside the graph of a large model
_OLDEST_OPSET = 13
INTEGER_FORMAT = ("QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger", "DynamicQuantizeLinear", "QGemm")


def load(path: Path) -> ModelProto:
    """Read an ONNX file, external data included.

    Raises:
        ArtifactError: missing, cut, no ONNX, or its external data are missing.
    """
    try:
        model = onnx.load(str(path))
    except FileNotFoundError as error:
        raise ArtifactError(f"the file {error.filename or path} does not exist", where=str(path)) from None
    except Exception as error:  # protobuf's DecodeError and onnx's ValidationError share no base
        raise ArtifactError(f"not a readable ONNX model: {_line(error)}", where=str(path)) from None
    if not model.graph.node:
        raise ArtifactError("the ONNX model has no nodes", where=str(path))
    return model


def opset(model: ModelProto) -> int:
    """Version of the default operator domain."""
    return int(max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=1))


def require_fp32(model: ModelProto, where: str) -> None:
    """Refuse what a precision plan cannot start from.

    Raises:
        StageError: the opset is below 13, an operator is an integer one, or a weight or border tensor is already FP16
            or BF16.
    """
    if opset(model) < _OLDEST_OPSET:
        raise StageError(
            f"the model has opset {opset(model)}; a precision plan needs at least {_OLDEST_OPSET}",
            where=where,
            remedy="export it again at opset 17, or convert it with onnx.version_converter",
        )
    for node in model.graph.node:
        if node.op_type in INTEGER_FORMAT or node.op_type.startswith("QLinear"):
            raise StageError(
                f"the model is not FP32: {node.op_type} is the integer-operator form, which TensorRT does not parse",
                where=node.name or node.output[0],
                remedy="give the FP32 model, or write it in Q/DQ form (onnxruntime: QuantFormat.QDQ)",
            )
    for tensor in model.graph.initializer:
        if tensor.data_type in _TYPE_NAMES:
            raise StageError(
                f"the model is not FP32: weight {tensor.name!r} is {_TYPE_NAMES[tensor.data_type][7:-1]}",
                where=where,
                remedy="give the FP32 model; a plan made from rounded weights would hide what the rounding cost",
            )
    for value in model.graph.input:
        if value.type.tensor_type.elem_type in _TYPE_NAMES:
            raise StageError(f"the model is not FP32: input {value.name!r} is half", where=where)
    for node in model.graph.node:
        if node.op_type == "Cast" and any(a.name == "to" and a.i in _TYPE_NAMES for a in node.attribute):
            raise StageError(
                "the model is not FP32: it casts to half already",
                where=node.name or node.output[0],
                remedy="export it without autocast; the plan decides where the casts go",
            )


def prepare(model: ModelProto) -> ModelProto:
    """A copy in the form that every step here relies on; its function is unchanged.

    Every node has a unique name, weights are no inputs, constants are initializers, ``Identity`` of an initializer is
    folded (the TorchScript exporter shares equal weights that way; left alone, quantiser scales would become FP16),
    nodes are in topological order, and every tensor's type is inferred.
    """
    made = ModelProto()
    made.CopyFrom(model)
    if made.functions:
        made = onnx.inliner.inline_local_functions(made)
    graph = made.graph
    name_nodes(graph)
    drop_weight_inputs(graph)
    constants_to_initializers(graph)
    fold_identities(graph)
    drop_unused_initializers(graph)
    sort_topologically(graph)
    return infer(made)


def _weight_bytes(model: ModelProto) -> int:
    return sum(len(t.raw_data) + 4 * len(t.float_data) + 8 * len(t.int64_data) for t in model.graph.initializer)


def is_large(model: ModelProto) -> bool:
    """Whether the model is too large for one protobuf message (asking the message itself raises then)."""
    return _weight_bytes(model) >= _PROTO_LIMIT


def _too_heavy(model: ModelProto) -> bool:
    """Whether copying the weights along would cost more than it is worth."""
    return _weight_bytes(model) >= min(_LEAN_LIMIT, _PROTO_LIMIT)


def infer(model: ModelProto) -> ModelProto:
    """The model with inferred types and shapes; a large one is changed in place, inferred without its weights."""
    if not _too_heavy(model):
        return onnx.shape_inference.infer_shapes(model, data_prop=True)
    skeleton, _ = _without_weights(model)
    inferred = onnx.shape_inference.infer_shapes(skeleton, data_prop=True)
    for values, found in (
        (model.graph.value_info, inferred.graph.value_info),
        (model.graph.output, inferred.graph.output),
    ):
        del values[:]
        values.extend(found)
    return model


def tensor_types(model: ModelProto) -> dict[str, int]:
    """Element type of every tensor of the main graph that is known (`prepare` infers them)."""
    graph = model.graph
    types = {
        v.name: v.type.tensor_type.elem_type
        for v in (*graph.input, *graph.value_info, *graph.output)
        if v.type.WhichOneof("value") == "tensor_type"
    }
    return types | {t.name: t.data_type for t in graph.initializer}


def node_infos(model: ModelProto, modules: Mapping[str, str] | None = None, low: str = "fp16") -> tuple[NodeInfo, ...]:
    """The facts about each node that a plan decides by.

    Args:
        model: a prepared model.
        modules: node name -> torch module, from the export report; names of the TorchScript exporter speak for
            themselves.
        low: fp16 or bf16: which operators the opset defines for it.
    """
    graph = model.graph
    types = tensor_types(model)
    weights = {t.name: t for t in graph.initializer}
    facts = {n: Constant(n, range_of(n, numpy_helper.to_array(t))) for n, t in weights.items() if t.data_type == FLOAT}
    version = opset(model)
    infos = []
    for node in graph.node:
        floats = tuple(n for n in node.input if n and types.get(n) == FLOAT and n not in weights)
        outputs = tuple(n for n in node.output if n)
        reason = _not_lowerable(node, version, types, low)
        infos.append(
            NodeInfo(
                name=node.name,
                op=node.op_type,
                module=(modules or {}).get(node.name) or torch_module(node.name),
                inputs=tuple(node.input),
                outputs=outputs,
                float_inputs=floats,
                float_outputs=tuple(n for n in outputs if types.get(n) == FLOAT),
                constants=tuple(facts[n] for n in node.input if n in facts),
                not_lowerable=reason,
                attributes={a.name: onnx.helper.get_attribute_value(a) for a in node.attribute if a.type in (1, 2, 7)},
                output_type=_type_name(types.get(outputs[0], 0)) if outputs else "",
            )
        )
    return tuple(infos)


def _not_lowerable(node: NodeProto, version: int, types: Mapping[str, int], low: str) -> str:
    """Why a node cannot be converted, by the operator's own schema; empty when it can."""
    if node.domain not in ("", "ai.onnx"):
        return f"operator of domain {node.domain}: its types are not known"
    if any(a.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for a in node.attribute):
        return "control flow: its body stays as it is"
    try:
        schema = onnx.defs.get_schema(node.op_type, version, "")
    except onnx.defs.SchemaError:
        return f"operator unknown at opset {version}"
    wanted = _TYPE_NAMES[LOW_TYPES[low]]
    allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    formal = list(schema.inputs)
    floats = [i for i, n in enumerate(node.input) if n and types.get(n) == FLOAT]
    for index in floats:
        parameter = formal[min(index, len(formal) - 1)]
        if parameter.type_str in allowed and wanted not in allowed[parameter.type_str]:
            return f"{node.op_type} has no {low} at opset {version}"
    if not floats and not any(types.get(n) == FLOAT for n in node.output):
        return "no float tensor"
    if floats and all(formal[min(i, len(formal) - 1)].type_str not in allowed for i in floats):
        return f"{node.op_type} takes FP32 only"
    return ""


def _type_name(elem_type: int) -> str:
    names = {1: "fp32", 10: "fp16", 16: "bf16", 3: "int8", 2: "uint8", 6: "int32", 7: "int64", 9: "bool", 11: "fp64"}
    return names.get(elem_type, "")


def remove_cast_pairs(model: ModelProto) -> int:
    """Remove casts that undo each other without loss, and casts to the type that a tensor has; returns how many.

    ``Cast(FLOAT16) -> Cast(FLOAT)`` rounds and is kept; ``Cast(FLOAT) -> Cast(FLOAT16)`` of an FP16 tensor changes
    nothing and goes.
    """
    graph = model.graph
    types = tensor_types(infer(model))
    made_by = {n.output[0]: n for n in graph.node if n.op_type == "Cast"}
    borders = {v.name for v in graph.output}
    replace: dict[str, str] = {}
    for node in graph.node:
        if node.op_type != "Cast":
            continue
        source = replace.get(node.input[0], node.input[0])
        target = next(a.i for a in node.attribute if a.name == "to")
        before = made_by.get(source)
        if types.get(source) == target:
            replace[node.output[0]] = source
        elif before is not None:
            origin = replace.get(before.input[0], before.input[0])
            widening = types.get(source) == FLOAT and types.get(origin) in (FLOAT16, BFLOAT16)
            if widening and types.get(origin) == target:
                replace[node.output[0]] = origin
    replace = {new: old for new, old in replace.items() if new not in borders}
    for node in graph.node:
        for index, name in enumerate(node.input):
            if name in replace:
                node.input[index] = replace[name]
    before_count = sum(1 for n in graph.node if n.op_type == "Cast")
    _drop_dead_casts(graph)
    return before_count - sum(1 for n in graph.node if n.op_type == "Cast")


def _drop_dead_casts(graph: GraphProto) -> None:
    while True:
        read = {n for node in graph.node for n in (*node.input, *captured(node))} | {v.name for v in graph.output}
        dead = [n for n in graph.node if n.op_type == "Cast" and n.output[0] not in read]
        if not dead:
            return
        for node in dead:
            graph.node.remove(node)


def count_ops(model: ModelProto, *operators: str) -> int:
    return sum(1 for n in model.graph.node if n.op_type in operators)


def open_model(model: ModelProto, options: ort.SessionOptions | None = None) -> ort.InferenceSession:
    """An onnxruntime session on a model in memory, of any size (large weights are handed over beside it).

    Raises:
        ArtifactError: onnxruntime refuses the model.
    """
    if not _too_heavy(model):
        return open_session(model, options=options)
    options = options or session_options()
    skeleton, large = _without_weights(model)
    names, values = [], []
    for tensor in large:
        names.append(tensor.name)
        values.append(ort.OrtValue.ortvalue_from_numpy(numpy_helper.to_array(tensor)))
    for tensor in skeleton.graph.initializer:
        if not tensor.raw_data and tensor.name in set(names):
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value="memory")
    options.add_external_initializers(names, values)
    return open_session(skeleton, options=options)


def _without_weights(model: ModelProto) -> tuple[ModelProto, list[TensorProto]]:
    """A copy of the graph whose large weights have no values (never copied), and those weights."""
    skeleton = ModelProto()
    for descriptor, value in model.ListFields():
        if descriptor.name == "graph":
            continue
        if isinstance(value, (str, int, bytes)):
            setattr(skeleton, descriptor.name, value)
        else:
            getattr(skeleton, descriptor.name).extend(value)
    large = []
    for descriptor, value in model.graph.ListFields():
        if descriptor.name == "initializer":
            for tensor in value:
                if len(tensor.raw_data) > _SMALL:
                    large.append(tensor)
                    skeleton.graph.initializer.add(name=tensor.name, dims=tensor.dims, data_type=tensor.data_type)
                else:
                    skeleton.graph.initializer.add().CopyFrom(tensor)
        elif isinstance(value, str):
            setattr(skeleton.graph, descriptor.name, value)
        else:
            getattr(skeleton.graph, descriptor.name).extend(value)
    return skeleton, large


def save(model: ModelProto, path: Path, data: str = "") -> None:
    """Write a model whole or not at all; over 2 GB its weights go to ``data`` (default ``<name>.data``) beside it.

    Raises:
        StageError: the disk is full or the folder cannot be written.
    """
    temporary = path.with_name(f".{path.name}.part")
    try:
        if is_large(model):
            data = data or f"{path.name}.data"
            (path.parent / data).unlink(missing_ok=True)
            copy = ModelProto()
            copy.CopyFrom(model)
            onnx.save_model(copy, str(temporary), save_as_external_data=True, location=data, size_threshold=1024)
        else:
            temporary.write_bytes(model.SerializeToString())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StageError(f"cannot write the model: {error.strerror}", where=str(path)) from None


def check(path: Path, wanted_opset: int, where: str = "", *, runnable: bool = True) -> None:
    """Prove a written file: opset, full checker (types and shapes included), topological order, onnxruntime opens it.

    ``runnable=False`` leaves onnxruntime out: its CPU provider has no BF16 kernels.

    Raises:
        StageError: what the checker or onnxruntime says.
    """
    place = where or str(path)
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except Exception as error:
        raise StageError(f"the converted model is not valid ONNX: {_line(error)}", where=place) from None
    found = opset(onnx.load(str(path), load_external_data=False))
    if found != wanted_opset:
        raise StageError(f"the converted model has opset {found} instead of {wanted_opset}", where=place)
    if runnable:
        open_session(path)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:500]
