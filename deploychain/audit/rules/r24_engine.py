"""R24: which precision an engine runs in is read from its layer information, not from a profile."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import last_name
from deploychain.audit.context import NOTE, WARNING, Context, Rule
from deploychain.audit.finding import Finding


def check(ctx: Context) -> Iterator[Finding]:
    if "trtexec" in ctx.text:
        yield from _trtexec(ctx)
    if "engine_inspector" in ctx.text and "tensorrt" in ctx.text.lower():
        yield from _inspector(ctx)


def _trtexec(ctx: Context) -> Iterator[Finding]:
    done: set[int] = set()
    for node in ctx.symbols.nodes(ast.List, ast.Tuple, ast.JoinedStr, ast.Constant):
        words = _command(ctx, node)
        if words is None or id(node) in done or not any("trtexec" in w for w in words):
            continue
        for inner in ast.walk(node):
            done.add(id(inner))
        text = " ".join(words)
        detailed = "profilingVerbosity=detailed" in text
        if ("--exportLayerInfo" in text or "--dumpLayerInfo" in text) and not detailed and _dynamic(node) is False:
            yield ctx.finding(
                "R24", node, WARNING,
                "layer information without --profilingVerbosity=detailed holds names only: no data type, no tactic",
                "trtexec ... --exportLayerInfo=layers.json --profilingVerbosity=detailed",
            )  # fmt: skip
        elif (
            ("--dumpProfile" in text or "--exportProfile" in text)
            and "LayerInfo" not in text
            and (
                any(f in text for f in ("--fp16", "--int8", "--best", "--bf16", "--fp8", "--stronglyTyped"))
                or any(f in ctx.text for f in ("kFLOAT", "kHALF", "kINT8"))
            )
        ):
            yield ctx.finding(
                "R24", node, WARNING,
                "--dumpProfile gives times, not precisions: which layers run in FP16 or INT8 stays unknown",
                "trtexec ... --exportLayerInfo=layers.json --profilingVerbosity=detailed, then `deploychain layers layers.json`",
            )  # fmt: skip
        elif (
            any(f in text for f in ("--fp16", "--int8", "--best"))
            and "LayerInfo" not in text
            and "--loadEngine" not in text
        ):
            yield ctx.finding(
                "R24", node, NOTE,
                "--fp16 and --int8 allow a precision and promise nothing (and are gone in TensorRT 11, where the ONNX file decides): "
                "nothing here looks at what was built",
                "add --exportLayerInfo=layers.json --profilingVerbosity=detailed, then `deploychain layers layers.json`",
            )  # fmt: skip


def _command(ctx: Context, node: ast.AST) -> list[str] | None:
    """The words of a command line written as a string, an f-string or a list."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        parent = ctx.symbols.parent.get(node)
        if isinstance(parent, ast.List | ast.Tuple | ast.JoinedStr | ast.Expr):
            return None  # part of a list; a docstring
        return node.value.split() if node.value.lstrip().startswith(("trtexec", "/", "./", "nsys", "sudo")) else None
    if isinstance(node, ast.JoinedStr):
        text = "".join(
            v.value if isinstance(v, ast.Constant) and isinstance(v.value, str) else "{}" for v in node.values
        )
        return text.split() if "--" in text else None
    if isinstance(node, ast.List | ast.Tuple):
        words = []
        for e in node.elts:
            if isinstance(e, ast.Constant) and isinstance(e.value, str):
                words.append(e.value)
            elif isinstance(e, ast.JoinedStr):
                words.append(
                    "".join(
                        v.value if isinstance(v, ast.Constant) and isinstance(v.value, str) else "{}" for v in e.values
                    )
                )
        return words if words else None
    return None


def _dynamic(node: ast.AST) -> bool:
    """Options may be added elsewhere."""
    return any(isinstance(n, ast.Starred) for n in ast.walk(node))


def _inspector(ctx: Context) -> Iterator[Finding]:
    if "ProfilingVerbosity.DETAILED" in ctx.text or "profiling_verbosity" in ctx.text:
        return
    builds = any(last_name(c.func) in ("build_serialized_network", "build_engine") for c in ctx.symbols.calls)
    if not builds:
        return
    for call in ctx.symbols.calls:
        if last_name(call.func) == "create_engine_inspector":
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
    bad='subprocess.run(["trtexec", "--onnx=m.onnx", "--fp16", "--dumpProfile"])',
    good='subprocess.run(["trtexec", "--onnx=m.onnx", "--exportLayerInfo=layers.json", "--profilingVerbosity=detailed"])',
    check=check,
    trigger=r"trtexec|engine_inspector",
)
