"""R24: which precision an engine runs in is read from its layer information, not from a profile."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.astnames import keyword, last_name
from deploychain.audit.context import ERROR, WARNING, Context, Rule
from deploychain.audit.finding import Finding
from deploychain.audit.log_search import asks_for_precision
from deploychain.audit.tensorrt import CommandLines, Release, Words
from deploychain.audit.tree import walk

_PRECISION = ("fp16", "int8", "best", "bf16", "fp8", "int4")
_GONE = (*_PRECISION, "precisionConstraints", "layerPrecisions", "layerOutputTypes", "calib")
_GONE_FLAGS = frozenset(
    {"FP16", "INT8", "BF16", "FP8", "INT4", "FP4", "OBEY_PRECISION_CONSTRAINTS", "PREFER_PRECISION_CONSTRAINTS"}
)
_NO_TIMES = re.compile(
    r"\|\s*(?:grep|rg|egrep|awk|findstr)\b(?!.*(?i:latency|mean|median|total|throughput|qps|\btime|avg|percent|compute))"
)
_PIPED = re.compile(r"(?<!\w)(?:grep|rg|egrep|awk|findstr)\s[^>|]*(?i:kFLOAT|kHALF|\bhalf\b|fp16|fp32|float16|float32)")
_SEE = "trtexec ... --exportLayerInfo=layers.json --profilingVerbosity=detailed"
_BUILDS = frozenset(
    {
        "build_serialized_network",
        "build_engine",
        "engine_from_network",
        "EngineFromNetwork",
        "engine_bytes_from_network",
        "EngineBytesFromNetwork",
    }
)


def check(ctx: Context) -> Iterator[Finding]:
    if "trtexec" in ctx.text:
        yield from _trtexec(ctx)
    if "tensorrt" in ctx.text.lower():
        if "engine_inspector" in ctx.text:
            yield from _inspector(ctx)
        if "BuilderFlag" in ctx.text or "CreateConfig" in ctx.text:
            yield from _flags(ctx)


def _trtexec(ctx: Context) -> Iterator[Finding]:
    lines = ctx.command_lines
    if not lines.having("onnx", "saveEngine", "loadEngine", "dumpProfile", "exportProfile"):
        return
    verbosity = {p.option("profilingVerbosity").partition("=")[2] for p in lines.having("profilingVerbosity")}
    detailed = bool(verbosity - {"layer_names_only", "none"})
    layer_info = list(lines.having("exportLayerInfo", "dumpLayerInfo"))
    yield from _layer_names(ctx, lines, layer_info, detailed)
    if not (layer_info and detailed):
        yield from _profiles(ctx, lines)
    yield from _precisions(ctx, lines)


def _layer_names(ctx: Context, lines: CommandLines, layer_info: list[Words], detailed: bool) -> Iterator[Finding]:
    for piece in [] if detailed else layer_info[:1]:
        if not _open_ended(ctx, piece.root):
            yield ctx.finding(
                "R24", piece.node, WARNING,
                "layer information without --profilingVerbosity=detailed holds names only: no data type, no tactic",
                _SEE,
            )  # fmt: skip


def _profiles(ctx: Context, lines: CommandLines) -> Iterator[Finding]:
    """The times of a profile, searched for precisions."""
    for piece in lines.having("dumpProfile", "exportProfile"):
        command = lines.text(piece.root).partition("Profile")[2]
        if _NO_TIMES.search(command) or _about_precision(ctx, piece, lines) or asks_for_precision(ctx.symbols):
            yield ctx.finding(
                "R24", piece.node, WARNING,
                "--dumpProfile gives times, not precisions: which layers run in FP16 or INT8 stays unknown",
                f"{_SEE}, then `deploychain layers layers.json`",
            )  # fmt: skip
            return


def _about_precision(ctx: Context, piece: Words, lines: CommandLines) -> bool:
    """`def layer_precisions(engine)`, `["grep", "kFLOAT", log]`, `cmd + " | grep kHALF"`."""
    if re.match(
        r"(?!build|convert|export|make|set).*(precision|dtypes|(fp16|fp32|half|float)_layers|layer_types)",
        ctx.symbols.scope(piece.node).name.lower(),
    ):
        return True
    if any(_PIPED.search(" ".join(p.words)) for p in lines.pieces):
        return True
    return any("kFLOAT" in t or "kHALF" in t or "Half" in t for t in _grepped(ctx))


def _grepped(ctx: Context) -> Iterator[str]:
    for node in ctx.symbols.nodes(ast.List, ast.Tuple):
        if (
            node.elts
            and isinstance(node.elts[0], ast.Constant)
            and node.elts[0].value in ("grep", "rg", "egrep", "awk")
        ):
            yield ast.unparse(node)


def _precisions(ctx: Context, lines: CommandLines) -> Iterator[Finding]:
    release, done = Release(ctx.symbols, ctx.source.text), set()
    for piece in lines.having(*_GONE):
        if id(piece.root) in done or _other_program(piece, lines):
            continue
        done.add(id(piece.root))
        option = piece.option(*_GONE)
        if release.strong_at(piece.node):
            yield ctx.finding(
                "R24", piece.node, ERROR,
                f"TensorRT 11 has no {option.partition('=')[0]}: networks are strongly typed, the build stops at the unknown option; the types in the ONNX "
                "file decide",
                "modelopt.onnx.autocast.convert_to_mixed_precision(..., calibration_data=...), then trtexec without precision options",
            )  # fmt: skip


def _other_program(piece: Words, lines: CommandLines) -> bool:
    """`[sys.executable, "export.py", "--fp16"]`."""
    words = lines.text(piece.root).split()
    return any(
        w.endswith(".py") or w in ("python", "python3", "polygraphy", "-m") for w in words[:4]
    ) and "trtexec" not in " ".join(words)


def _open_ended(ctx: Context, root: ast.AST) -> bool:
    """Options that are not known here may be added: `[..., *extra]`."""
    for node in walk(root):
        if isinstance(node, ast.Starred):
            refs = ctx.symbols.resolve(node.value, ctx.symbols.scope(node))
            if any(not isinstance(r.expr, ast.List | ast.Tuple | ast.Dict) for r in refs):
                return True
    return False


def _flags(ctx: Context) -> Iterator[Finding]:
    """BuilderFlag.FP16 where the file is for TensorRT 11."""
    release = Release(ctx.symbols, ctx.source.text)
    if release.strong is False or (release.strong is None and not release.tests):
        return
    fix = "convert the ONNX file (modelopt.onnx.autocast with calibration data), and build it without precision flags"
    for node in ctx.symbols.nodes(ast.Attribute):
        if node.attr in _GONE_FLAGS and last_name(node.value) == "BuilderFlag" and release.strong_at(node):
            yield ctx.finding(
                "R24", node, ERROR,
                f"TensorRT 11 has no BuilderFlag.{node.attr} (AttributeError): networks are strongly typed, the types in the ONNX file decide",
                fix,
            )  # fmt: skip
    for call in ctx.symbols.calls:
        if last_name(call.func) == "getattr" and len(call.args) == 2 and last_name(call.args[0]) == "BuilderFlag":
            if release.strong_at(call) and _names_a_precision(ctx, call.args[1]):
                yield ctx.finding(
                    "R24", call, ERROR, "TensorRT 11 has no BuilderFlag for a precision (AttributeError)", fix
                )
        elif last_name(call.func) == "CreateConfig" and release.strong_at(call):
            for k in call.keywords:
                if k.arg in _PRECISION and not (isinstance(k.value, ast.Constant) and not k.value.value):
                    yield ctx.finding(
                        "R24", k.value, ERROR,
                        f"{k.arg}={ctx.str(k.value)} asks for a builder flag that TensorRT 11 does not have: networks are strongly typed",
                        fix,
                    )  # fmt: skip


def _names_a_precision(ctx: Context, expr: ast.expr) -> bool:
    for node in walk(expr):
        if isinstance(node, ast.expr):
            for ref in ctx.symbols.resolve(node, ctx.symbols.scope(expr)):
                parts = ref.expr.values if isinstance(ref.expr, ast.Dict) else [ref.expr]
                if any(isinstance(p, ast.Constant) and str(p.value).upper() in _GONE_FLAGS for p in parts):
                    return True
    return False


def _inspector(ctx: Context) -> Iterator[Finding]:
    if "DETAILED" in ctx.text or ("profiling_verbosity" in ctx.text and "LAYER_NAMES_ONLY" not in ctx.text):
        return
    if not any(last_name(c.func) in _BUILDS for c in ctx.symbols.calls):
        return
    for call in ctx.symbols.calls:
        if last_name(call.func) == "create_engine_inspector" and keyword(call, "profiling_verbosity") is None:
            yield ctx.finding(
                "R24", call, WARNING,
                "the engine is built with the default profiling verbosity: the inspector will show layer names and no data types",
                "config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED  # before the build",
            )  # fmt: skip


RULE = Rule(
    id="R24",
    name="engine-precision",
    title="The precision of an engine's layers is not looked at",
    how="log, code",
    belief="grep the output of trtexec --dumpProfile for grid_sample or kFLOAT.",
    truth=(
        "--dumpProfile gives times. Types need --exportLayerInfo with --profilingVerbosity=detailed; logs print Float and Half. In a "
        "weakly typed build an FP32 layer may just be faster. --fp16 is gone in TensorRT 11. The `layers` command reads and judges all of it."
    ),
    experiment="`deploychain layers` on a layer file with and without detailed verbosity.",
    bad='log = subprocess.getoutput("trtexec --loadEngine=m.plan --dumpProfile")\nfp32 = [line for line in log.splitlines() if "kFLOAT" in line]',
    good='subprocess.run(["trtexec", "--onnx=m.onnx", "--exportLayerInfo=layers.json", "--profilingVerbosity=detailed"])',
    check=check,
    trigger=r"trtexec|engine_inspector|BuilderFlag|CreateConfig",
)
