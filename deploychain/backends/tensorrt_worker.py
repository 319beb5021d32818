"""One engine build in a process of its own: ``python -m deploychain.backends.tensorrt_worker REQUEST.json``.

The process exists because a failed build can poison the next one of the same process (TensorRT-RTX 1.7 after a
failed compute capability 7.5 build silently makes int8 convolutions Float), because the library can crash, and
because a build that hangs must be killed. The request and the result are JSON files; the result is written last, so
a process that died has none. Both flavours of the library share this code: ``tensorrt`` (8.6 and later) and
``tensorrt_rtx``; where they differ, the feature itself is asked for, not the version.
"""

from __future__ import annotations

import importlib
import json
import re
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deploychain.backends.tensorrt_log import ERRORS, is_driver_noise, layer_text, names_layer
from deploychain.errors import ConfigError
from deploychain.profiles import NetworkInput, Profile, make_profiles
from deploychain.settings import ShapeRange

if TYPE_CHECKING:
    import tensorrt as trt  # mypy checks against the stubs of TensorRT 10 where they are installed

_ONNX_NODE = re.compile(r"\[ONNX Layer: (.*?)\](?=[\x1e\x1f\ufffd]|\[ONNX Layer: |$)")
_MAX_MESSAGES = 400


def main(argv: Sequence[str]) -> int:
    request = json.loads(Path(argv[0]).read_text(encoding="utf-8"))
    target = Path(request["result"])
    try:
        result = build(request)
    except ConfigError as error:
        result = {"built": False, "kind": error.kind, "reason": error.message, "error": error.to_dict()}
    result["peak_memory_mib"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    temporary = target.with_suffix(".tmp")
    temporary.write_text(json.dumps(result), encoding="utf-8")
    temporary.replace(target)
    return 0


def build(request: Mapping[str, Any]) -> dict[str, Any]:
    """Parse, profile, build; everything that the builder said comes back. Keys: see ``tensorrt_build.Build``."""
    globals()["trt"] = importlib.import_module(request["flavour"])  # one library per process
    phase = _Phases(request.get("phase_file"))
    phase("parse")
    log = _make_logger()
    result: dict[str, Any] = {
        "built": False,
        "kind": "",
        "reason": "",
        "flavour": request["flavour"],
        "version": str(trt.__version__),
        "compute_capability": request.get("compute_capability") or "",
        "text": "",
        "network": [],
        "profiles": {},
        "notes": [],
        "problems": [],
        "settings": {},
    }
    if hasattr(trt, "init_libnvinfer_plugins"):
        trt.init_libnvinfer_plugins(log, "")
    builder = trt.Builder(log)
    network = builder.create_network(_network_flags(request["strongly_typed"]))
    parser = trt.OnnxParser(network, log)
    parsed: Any = parser.parse_from_file(str(request["onnx"]))
    if not parsed:
        result["problems"] = [_parser_problem(parser.get_error(i), request["onnx"]) for i in range(parser.num_errors)]
        return _failed(result, log, "parse")
    result["network"] = _describe(network)
    config = builder.create_builder_config()
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    if not _set_target(config, request, result):
        return _done(result, log)
    _set_profiles(builder, network, config, request, result)
    _set_options(builder, network, config, request, result)
    monitor = phase.monitor() if hasattr(trt, "IProgressMonitor") else None  # since TensorRT 9
    if monitor is not None:
        config.progress_monitor = monitor
    phase("build")
    started = time.perf_counter()
    plan: Any = builder.build_serialized_network(network, config)
    result["seconds"] = time.perf_counter() - started
    if plan is None:
        result["problems"] = _build_problems(log.rows, network, request["onnx"])
        return _failed(result, log, "build")
    phase("write")
    engine = Path(request["engine"])
    temporary = engine.with_suffix(".tmp")
    with temporary.open("wb") as stream:
        stream.write(memoryview(plan))
    temporary.replace(engine)
    result.update(built=True, size_bytes=engine.stat().st_size)
    _keep_timing_cache(config, request, result)
    _done(result, log)
    if request["flavour"] == "tensorrt":  # built on its own GPU: the inspector says more than the log
        result["text"] = _inspect(plan, log) or result["text"]
    return result


def _network_flags(strongly_typed: bool) -> int:
    flags = 0
    names = trt.NetworkDefinitionCreationFlag
    if hasattr(names, "EXPLICIT_BATCH"):  # needed in 8.x, ignored in 10.x, absent in 11.x
        flags |= 1 << int(names.EXPLICIT_BATCH)
    if strongly_typed and hasattr(names, "STRONGLY_TYPED"):
        flags |= 1 << int(names.STRONGLY_TYPED)  # its number differs between releases
    return flags


def _set_target(config: trt.IBuilderConfig, request: Mapping[str, Any], result: dict[str, Any]) -> bool:
    """Ahead-of-time builds name their compute capability; the classic flavour builds for the GPU that is there."""
    wanted = request.get("compute_capability")
    if not wanted or not hasattr(trt, "ComputeCapability"):
        return True
    name = f"SM{wanted.replace('.', '')}"
    known = getattr(trt.ComputeCapability, name, None)
    if known is None:
        names = (n for n in trt.ComputeCapability.__members__ if n.startswith("SM"))
        result["kind"] = "capability"
        result["reason"] = (
            f"{request['flavour']} {trt.__version__} cannot build for compute capability {wanted}; it knows "
            + ", ".join(f"{n[2:-1]}.{n[-1]}" for n in names)
        )
        return False
    ahead: Any = config  # the classic flavour's type has no such members
    ahead.num_compute_capabilities = 1
    if not ahead.set_compute_capability(known, 0):
        result["kind"] = "capability"
        result["reason"] = f"the library refused compute capability {wanted}"
        return False
    return True


def _set_profiles(
    builder: trt.Builder,
    network: trt.INetworkDefinition,
    config: trt.IBuilderConfig,
    request: Mapping[str, Any],
    result: dict[str, Any],
) -> dict[str, Profile]:
    tensors = [network.get_input(i) for i in range(network.num_inputs)]
    inputs = [NetworkInput(t.name, _sizes(t.shape), _axis_names(t)) for t in tensors]
    for tensor in tensors:
        if getattr(tensor, "is_shape_tensor", False):
            raise ConfigError(
                f"input {tensor.name!r} is a shape tensor: its values, not its shape, decide the sizes inside",
                where=request["onnx"],
                remedy="export a model whose sizes come from the shapes of its inputs",
            )
    shapes = {name: ShapeRange(**value) for name, value in request["shapes"].items()}
    profiles, notes = make_profiles(inputs, shapes, request["opt_batch"], request["examples"], request["axis_sizes"])
    if profiles:
        profile: Any = builder.create_optimization_profile()  # it takes tuples where the stub wants Dims
        for name, shape in profiles.items():
            profile.set_shape(name, shape.min, shape.opt, shape.max)
        config.add_optimization_profile(profile)
    result["profiles"] = {name: shape.to_dict() for name, shape in profiles.items()}
    result["notes"] = list(notes)
    return profiles


def _axis_names(tensor: trt.ITensor) -> tuple[str, ...]:
    sizes = _sizes(tensor.shape)
    return tuple(str(tensor.get_dimension_name(k) or "") if size < 0 else "" for k, size in enumerate(sizes))


def _sizes(dims: Any) -> tuple[int, ...]:
    return tuple(int(size) for size in dims)  # trt.Dims is a sequence, which its stub does not say


def _set_options(
    builder: trt.Builder,
    network: trt.INetworkDefinition,
    config: trt.IBuilderConfig,
    request: Mapping[str, Any],
    result: dict[str, Any],
) -> None:
    """Workspace, timing cache, and for weakly typed networks the precision flags and the DLA core."""
    used: dict[str, Any] = {"strongly_typed": request["strongly_typed"], "profiling_verbosity": "DETAILED"}
    if (workspace := request.get("workspace_mib")) is not None:
        config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, workspace << 20)
        used["workspace_mib"] = workspace
    for flag in request.get("flags", ()):
        if not hasattr(trt.BuilderFlag, flag):
            raise ConfigError(f"{request['flavour']} {trt.__version__} has no builder flag {flag}", where="flags")
        config.set_flag(getattr(trt.BuilderFlag, flag))
    used["flags"] = list(request.get("flags", ()))
    if held := request.get("layer_precisions"):
        used["layer_precisions"] = _hold(network, config, held)
    if (core := request.get("dla_core")) is not None:
        if core >= builder.num_DLA_cores:
            raise ConfigError(f"DLA core {core} asked for, this device has {builder.num_DLA_cores}", where="dla_core")
        config.default_device_type = trt.DeviceType.DLA
        config.DLA_core = core
        used["dla_core"] = core
    if (cache := request.get("timing_cache")) and hasattr(config, "create_timing_cache"):
        path = Path(cache)
        config.set_timing_cache(config.create_timing_cache(path.read_bytes() if path.is_file() else b""), False)
        used["timing_cache"] = cache
    result["settings"] = used


def _hold(network: trt.INetworkDefinition, config: trt.IBuilderConfig, held: Mapping[str, str]) -> dict[str, str]:
    """Ask for the precision of single layers of a weakly typed network, by ONNX node; what was asked comes back."""
    types = {"fp32": trt.float32, "fp16": trt.float16}
    config.set_flag(trt.BuilderFlag.OBEY_PRECISION_CONSTRAINTS)
    done: dict[str, str] = {}
    for layer in (network.get_layer(i) for i in range(network.num_layers)):
        node = next(
            (n for n in (*_ONNX_NODE.findall(getattr(layer, "metadata", "") or ""), layer.name) if n in held), None
        )
        if node is None or layer.type.name in ("CONSTANT", "SHAPE", "IDENTITY"):
            continue
        layer.precision = types[held[node]]
        for i in range(layer.num_outputs):
            if layer.get_output(i).dtype.name in ("FLOAT", "HALF"):
                layer.set_output_type(i, types[held[node]])
        done[node] = held[node]
    return done


def _keep_timing_cache(config: trt.IBuilderConfig, request: Mapping[str, Any], result: dict[str, Any]) -> None:
    if not request.get("timing_cache") or config.get_timing_cache() is None:
        return
    path = Path(request["timing_cache"])
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(memoryview(config.get_timing_cache().serialize()))
    temporary.replace(path)


def _describe(network: trt.INetworkDefinition) -> list[dict[str, Any]]:
    """Every layer of the parsed network with the types of its tensors: what the graph asks for, before building."""
    return [_describe_layer(network.get_layer(i)) for i in range(network.num_layers)]


def _describe_layer(layer: trt.ILayer) -> dict[str, Any]:
    inputs = [layer.get_input(i) for i in range(layer.num_inputs)]
    outputs = [layer.get_output(i) for i in range(layer.num_outputs)]
    nodes = _ONNX_NODE.findall(getattr(layer, "metadata", "") or "")
    described = {
        "name": layer.name,
        "type": layer.type.name,
        "onnx_node": nodes[0] if nodes else "",
        "inputs": ["" if t is None else t.dtype.name for t in inputs],
        "outputs": ["" if t is None else t.dtype.name for t in outputs],
        "input_tensors": ["" if t is None else t.name for t in inputs],
        "output_tensors": ["" if t is None else t.name for t in outputs],
    }
    if layer.type.name in ("QUANTIZE", "DEQUANTIZE") and len(inputs) > 1 and inputs[1] is not None:
        described["scale_shape"] = list(_sizes(inputs[1].shape))
    return described


def _parser_problem(error: trt.ParserError, onnx: str) -> dict[str, Any]:
    """What the parser refused, by node. Some refusals carry no node: then the operator's nodes are the candidates."""
    text = str(error.desc())
    name, op = _call(error, "node_name"), _call(error, "node_operator")
    if not op:
        found = re.match(r"import(\w+)$", str(error.func()))
        op = found.group(1) if found else ""
    candidates = [] if name else [node for node, kind in _onnx_nodes(onnx) if op and kind == op]
    if len(candidates) == 1:
        name = candidates.pop()
    return {"node": name, "op": op, "candidates": candidates, "reason": text, "code": error.code().name}


def _call(error: trt.ParserError, method: str) -> str:
    made = getattr(error, method, None)  # node_name and node_operator came with TensorRT 10
    return str(made() or "") if made else ""


def _onnx_nodes(path: str) -> list[tuple[str, str]]:
    """(node name, operator) of the model, where the onnx package is there to read it."""
    try:
        import onnx
    except ImportError:
        return []
    nodes = onnx.load(path, load_external_data=False).graph.node
    return [(n.name or f"node number {i}", n.op_type) for i, n in enumerate(nodes)]


def _build_problems(
    rows: Sequence[tuple[str, str]], network: trt.INetworkDefinition, onnx: str
) -> list[dict[str, Any]]:
    """Find the layers that the builder's errors name. `CUDA error 35` lines (no driver) are no cause."""
    layers = [network.get_layer(i) for i in range(network.num_layers)]
    by_length = sorted(layers, key=lambda layer: -len(layer.name))
    operators = dict(_onnx_nodes(onnx))
    problems: list[dict[str, Any]] = []
    for severity, text in rows:
        if severity not in ERRORS or is_driver_noise(text):
            continue
        layer = next((x for x in by_length if x.name and names_layer(text, x.name)), None)
        described = _describe_layer(layer) if layer is not None else {"onnx_node": "", "name": "", "type": ""}
        node = described["onnx_node"] or described["name"]
        op = operators.get(node, described["type"])
        problems.append({"node": node, "op": op, "candidates": [], "reason": text, "code": "BUILD"})
    return problems


def _inspect(plan: Any, log: Any) -> str:
    """The inspector's listing in the text form of the builder's; empty where the engine does not load."""
    engine: Any = trt.Runtime(log).deserialize_cuda_engine(plan)
    if engine is None:
        return ""
    inspector = engine.create_engine_inspector()
    inspector.execution_context = engine.create_execution_context()  # formats of dynamic shapes
    return str(inspector.get_engine_information(trt.LayerInformationFormat.ONELINE))


def _failed(result: dict[str, Any], log: Any, step: str) -> dict[str, Any]:
    result["kind"] = step
    problems = result["problems"]
    if problems:
        first = problems[0]
        place = f"node {first['node']}" if first["node"] else ""
        if first["candidates"]:
            place = f"one of the {first['op']} nodes {', '.join(first['candidates'])}"
        operator = f" ({first['op']})" if first["op"] and first["node"] else ""
        result["reason"] = f"{place}{operator}: {first['reason']}" if place else str(first["reason"])
    else:
        errors = [text for severity, text in log.rows if severity in ERRORS and not is_driver_noise(text)]
        result["reason"] = errors[0] if errors else "the builder returned no engine and named no reason"
    return _done(result, log)


def _done(result: dict[str, Any], log: Any) -> dict[str, Any]:
    result["text"] = layer_text(log.rows)
    kept = [(s, t) for s, t in log.rows if s in (*ERRORS, "WARNING")]
    result["messages"] = [{"severity": s, "text": t} for s, t in dict.fromkeys(kept)][:_MAX_MESSAGES]
    return result


def _make_logger() -> Any:
    class Log(trt.ILogger):  # type: ignore[misc, unused-ignore]
        """Keeps every record; the library's own logger drops what the report needs."""

        def __init__(self) -> None:
            trt.ILogger.__init__(self)
            self.rows: list[tuple[str, str]] = []

        def log(self, severity: trt.ILogger.Severity, msg: str) -> None:
            self.rows.append((severity.name, msg))

    return Log()


class _Phases:
    """Writes the phase in hand to a small file that the parent shows as progress."""

    def __init__(self, path: str | None) -> None:
        self._path = Path(path) if path else None
        self._last = ("", 0.0)

    def __call__(self, phase: str, done: int = 0, total: int = 0) -> None:
        now = time.monotonic()
        if self._path is None or (self._last[0] == phase and now - self._last[1] < 0.2):
            return
        self._last = (phase, now)
        temporary = self._path.with_suffix(".tmp")
        temporary.write_text(json.dumps({"phase": phase, "done": done, "total": total}), encoding="utf-8")
        temporary.replace(self._path)

    def monitor(self) -> Any:
        report = self
        totals: dict[str, int] = {}

        class Monitor(trt.IProgressMonitor):  # type: ignore[misc, unused-ignore]
            def __init__(self) -> None:
                trt.IProgressMonitor.__init__(self)

            def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
                totals[phase_name] = num_steps
                report(phase_name, 0, num_steps)

            def step_complete(self, phase_name: str, step: int) -> bool:
                report(phase_name, step + 1, totals.get(phase_name, 0))
                return True

            def phase_finish(self, phase_name: str) -> None:
                totals.pop(phase_name, None)

        return Monitor()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
