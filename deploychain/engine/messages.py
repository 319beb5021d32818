"""The messages of a build or run that bear on precision, and what they mean."""

from __future__ import annotations

import re
from dataclasses import dataclass

from deploychain.engine.model import Warned


@dataclass(frozen=True, slots=True)
class _Known:
    kind: str
    fragment: str
    meaning: str
    serious: bool = False
    name: re.Pattern[str] | None = None  # finds the layer or node that the message names


_NODE = re.compile(r"[Cc]ould not find any implementation for node (.+?)(?:\. In \w|\.\)|\)?\.?$)")
_PARSE = re.compile(r'While parsing node number \d+ \[(.*?)(?: -> "(.*?)")?\]')
_INVALID = re.compile(r"Invalid Node - (\S+)")
_SETTING = re.compile(r"[Nn]o implementation (?:of (?:layer )?|for )?(.+?) obeys")
_DLA = re.compile(r"[Ll]ayer '(.+?)' \(|(?:[Ll]ayer|node) '?(.+?)'? is not supported on DLA")

# Case-sensitive fragments, anywhere in the line; the first match wins.
_KNOWN: tuple[_Known, ...] = (
    _Known(
        "constraint-not-obeyed",
        "obeys the requested constraints",
        "a layer's requested precision was ignored",
        True,
        _SETTING,
    ),
    _Known(
        "reformat-needed", "No implementation obeys reformatting-free rules", "the requested I/O format needs a copy"
    ),
    _Known(
        "build-failed",
        "ould not find any implementation for node",
        "the build failed at this node",
        True,
        _NODE,
    ),
    _Known(
        "no-fast-fp16",
        "Half2 support requested on hardware without native FP16 support",
        "FP16 brings nothing on this GPU",
        True,
    ),
    _Known(
        "no-fast-int8",
        "Int8 support requested on hardware without native Int8 support",
        "INT8 brings nothing on this GPU",
        True,
    ),
    _Known(
        "layernorm-overflow",
        "Detected layernorm nodes in FP16",
        "a layer norm may overflow in FP16: keep its Pow and ReduceMean in FP32, or export LayerNormalization",
        True,
        re.compile(r"Detected layernorm nodes in FP16: (.+)"),
    ),
    _Known(
        "layernorm-overflow",
        "Running layernorm after self-attention",
        "advice that goes with the layer norm warning",
        True,
    ),
    _Known(
        "fp16-weight-overflow",
        "finite FP32 values which would overflow in FP16",
        "weights above 65504 become infinite in FP16: keep the layer in FP32 or rescale the weights",
        True,
    ),
    _Known(
        "fp16-weight-subnormal",
        "Detected subnormal FP16 values",
        "weights lose digits in FP16; usually harmless",
    ),
    _Known(
        "fp16-weight-underflow",
        "values less than smallest positive FP16 subnormal",
        "weights become zero in FP16; usually harmless",
    ),
    _Known(
        "weight-conversion",
        "TensorRT encountered issues when converting weights between types",
        "head line of the weight warnings that follow",
    ),
    _Known("affected-weights", "List of affected weights:", "the weights that the warning above counts"),
    _Known("int64-weights", "Your ONNX model has been generated with INT64 weights", "harmless"),
    _Known(
        "weakly-typed-deprecated",
        "Weakly-typed networks have been deprecated",
        "precision flags go away with TensorRT 11: put the precision into the ONNX graph",
    ),
    _Known(
        "fp4-not-accelerated",
        "has FP4 Q/DQ layers but the hardware does not accelerate FP4",
        "FP4 is emulated on this GPU",
    ),
    _Known(
        "fp8-not-accelerated",
        "has FP8 Q/DQ layers but the hardware does not accelerate FP8",
        "FP8 is emulated on this GPU",
    ),
    _Known("no-calibration", "Calibrator is not being used", "INT8 ranges may be missing"),
    _Known(
        "missing-range",
        "Missing scale and zero-point for tensor",
        "no INT8 range: this tensor stays in higher precision",
    ),
    _Known("dla-fallback", "falling back to GPU", "the layer does not run on the DLA", False, _DLA),
    _Known(
        "dla-fallback", "Switching this layer's device type to GPU", "the layer does not run on the DLA", False, _DLA
    ),
    _Known("engine-version", "incompatible serialization version", "the engine was built by another TensorRT", True),
    _Known("engine-version", "magicTag", "not an engine of this TensorRT", True),
    _Known("engine-load-failed", "Engine deserialization failed", "the engine file cannot be used here", True),
    _Known(
        "shape-mismatch", "Static dimension mismatch while setting input shape", "a shape does not fit the engine", True
    ),
    _Known("setup-failed", "Inference set up failed", "the run did not start", True),
    _Known("parse-failed", "Failed to parse onnx file", "the ONNX file was not read", True),
    _Known("parse-failed", "While parsing node number", "the parser stopped at this node", True, _PARSE),
    _Known("parse-failed", "Invalid Node - ", "the parser stopped at this node", True, _INVALID),
    _Known("option-error", "Unknown option: ", "this trtexec does not know the option; nothing was run", True),
    _Known("unstable", "GPU compute time is unstable", "lock the clocks or add --useSpinWait before comparing"),
    _Known(
        "multi-stream",
        "auxiliary streams, so the",
        "layers overlap: the summed layer time exceeds the latency",
    ),
    _Known(
        "multi-stream",
        "inference streams are used",
        "latencies are not valid with several inference streams; throughput is",
    ),
    _Known("enqueue-bound", "Throughput may be bound by Enqueue Time", "the CPU limits the throughput"),
    _Known(
        "memory-limited", "due to insufficient memory on requested size", "a tactic was skipped: the workspace is small"
    ),
    _Known("deprecated-option", "flag has been deprecated", "the option will go away"),
    _Known("sm-limited", "Not enough SMs", "some tactics were not available on this GPU"),
)
_COUNTED = re.compile(r"(?:^|- )(\d{1,9}) weights? (?:are|is) affected")
_KEEP_LEVELS = frozenset("EF")
_MAX_TEXT = 600


def recognise(level: str, text: str) -> Warned | None:
    """What a message means; None where it is of no interest here. Errors are always kept."""
    for known in _KNOWN:
        if known.fragment in text:
            count = _COUNTED.search(text)
            layer = None
            if known.name is not None:
                found = known.name.search(text[:5000])
                if found:
                    layer = next((group for group in reversed(found.groups()) if group), None)
            return Warned(
                known.kind,
                text[:_MAX_TEXT],
                layer,
                level,
                int(count.group(1)) if count else 1,
                known.meaning,
                known.serious,
            )
    if level in _KEEP_LEVELS:
        return Warned("error", text[:_MAX_TEXT], None, level, 1, "", True)
    if level == "W":
        return Warned("other", text[:_MAX_TEXT], None, level)
    return None
