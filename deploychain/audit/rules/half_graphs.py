"""R22, ONNX: whole graphs that are made float16 without a look at the values."""

# ruff: noqa: E501, SIM102  (messages are one piece of text)
from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from deploychain.audit.astnames import UNKNOWN, Scope, keyword, last_name
from deploychain.audit.context import WARNING, Context
from deploychain.audit.finding import Finding
from deploychain.audit.rules.calibration_data import made_up
from deploychain.audit.tables import keys
from deploychain.audit.tensorrt import Words
from deploychain.audit.tree import walk

_CONVERTERS = frozenset(
    {
        "convert_float_to_float16",
        "convert_float_to_float16_model_path",
        "convert_model_float32_to_float16",
        "convert_to_f16",
        "ConvertFloatToFloat16Pass",
    }
)
_POLYGRAPHY = ("ConvertToFp16", "convert_to_fp16")
_BLOCKED = ("op_block_list", "node_block_list", "op_types_to_exclude", "nodes_to_exclude", "force_fp16_initializers")
_PARSED = ("parse_args", "parse_known_args", "Namespace", "load", "safe_load", "loads")
_LIMIT = re.compile(
    r"finfo\(.*(float16|half)\)\.max|\b(FP16_MAX|HALF_MAX|F16_MAX|MAX_FP16|MAX_HALF|FLOAT16_MAX)\b|\b65504|\b6\.55?e\+?0?4"
)
_WHOLE = (
    "the whole graph is converted to FP16 without looking at the values: tensors beyond 65504 become inf, constants up to "
    "2.98e-8 become 0"
)
_RANGES = (
    "deploychain plan (range analysis on calibration data), or modelopt.onnx.autocast.convert_to_mixed_precision(..., "
    "calibration_data=...)"
)
_BLIND = "AutoCast without calibration data puts even a decomposed LayerNorm into FP16, where it overflows"


def made_half(ctx: Context) -> Iterator[Finding]:
    """Converters, AutoCast, their command lines, and initializers cast one by one."""
    if "onnx" not in ctx.text.lower() or _measured(ctx):
        return
    for call in ctx.symbols.calls:
        scope = ctx.symbols.scope(call)
        leaf = _leaf(ctx, call.func, scope)
        if leaf == "partial" and call.args:
            leaf = _leaf(ctx, call.args[0], scope)
        if leaf in _CONVERTERS or (leaf in _POLYGRAPHY and "polygraphy" in (ctx.symbols.qual(call.func, scope) or "")):
            if not any(_given(ctx, call, name, scope) for name in _BLOCKED):
                yield ctx.finding("R22", call, WARNING, _WHOLE, _RANGES)
        elif leaf == "convert_to_mixed_precision" and "paddle" not in ctx.text:
            kind = ctx.symbols.const(keyword(call, "low_precision_type"), scope)
            data = keyword(call, "calibration_data")
            unknown = any(k.arg is None and not _no_data(ctx, k.value, scope) for k in call.keywords)
            if (
                kind != "bf16"
                and not unknown
                and len(call.args) < 9
                and not _given(ctx, call, "calibration_data", scope)
            ):
                yield ctx.finding(
                    "R22", call, WARNING, _BLIND, 'convert_to_mixed_precision(..., calibration_data="calibration.npz")'
                )
            elif kind != "bf16" and data is not None and made_up(ctx, data, scope):
                yield _random_data(ctx, data)
        elif leaf == "O4" and "AutoOptimizationConfig" in ctx.str(call.func):
            yield ctx.finding("R22", call, WARNING, f"O4 is O3 with FP16: {_WHOLE}", _RANGES)
        elif leaf == "OptimizationConfig" and ctx.symbols.const(keyword(call, "fp16"), scope) is True:
            yield ctx.finding("R22", call, WARNING, _WHOLE, _RANGES)
    yield from _command_lines(ctx)
    yield from _one_by_one(ctx)
    yield from _passes(ctx)


def _random_data(ctx: Context, data: ast.expr) -> Finding:
    return ctx.finding(
        "R22", data, WARNING,
        "the ranges that decide what stays in FP32 are measured on made-up numbers: tensors that pass 65504 on real inputs do not "
        "on these, and are put into FP16", 'calibration_data="calibration.npz"  # a few dozen real inputs',
    )  # fmt: skip


def _leaf(ctx: Context, func: ast.expr, scope: Scope) -> str:
    return (ctx.symbols.qual(func, scope) or last_name(func)).rpartition(".")[2]


def _no_data(ctx: Context, rest: ast.expr, scope: Scope) -> bool:
    """`**kw` of a helper whose calls in this file give no calibration data, a table without it."""
    names, known = keys(ctx.symbols, rest, scope)
    return known and all(name != "calibration_data" for name, _ in names)


def _given(ctx: Context, call: ast.Call, name: str, scope: Scope) -> bool:
    """An argument that is there and is not None, and not empty."""
    value = keyword(call, name)
    if value is None:
        return False
    known = ctx.symbols.const(value, scope)
    return bool(known) if known is not UNKNOWN else not _set_to_nothing(ctx, value, scope)


def _set_to_nothing(ctx: Context, value: ast.expr, scope: Scope) -> bool:
    """`cfg.calibration_data` of a configuration that is made in this file, without any."""
    if not isinstance(value, ast.Attribute | ast.Subscript):
        return False
    made = [r.expr for r in ctx.symbols.resolve(value.value, scope)]
    if not all(isinstance(e, ast.Dict | ast.Call) and last_name(getattr(e, "func", e)) not in _PARSED for e in made):
        return False
    found = ctx.symbols.resolve(value, scope)
    return all(r.expr is not value and not ctx.symbols.const(r.expr, r.scope) for r in found)


def _measured(ctx: Context) -> bool:
    """The file compares something with the largest float16: the values were looked at."""
    if not ctx.says(_LIMIT):
        return False
    for node in ctx.symbols.nodes(ast.Compare):
        for side in (node.left, *node.comparators):
            for part in walk(side):
                if isinstance(part, ast.expr) and any(
                    _LIMIT.search(ast.unparse(r.expr)) for r in ctx.symbols.resolve(part, ctx.symbols.scope(node))
                ):
                    return True
    return False


def _command_lines(ctx: Context) -> Iterator[Finding]:
    if not any(w in ctx.text for w in ("modelopt.onnx.autocast", "onnxruntime.transformers", "--fp-to-fp16")):
        return
    lines = ctx.command_lines
    data = "calibration_data" in ctx.text
    yield from _calibrated(ctx)
    for piece in lines.pieces:
        command = lines.text(piece.root)
        if (
            "modelopt.onnx.autocast" in piece.words
            and not data
            and "bf16" not in command
            and _is_run(ctx, piece, command)
        ):
            yield ctx.finding(
                "R22",
                piece.node,
                WARNING,
                _BLIND,
                "python -m modelopt.onnx.autocast ... --calibration_data calibration.npz",
            )
        elif piece.option("fp-to-fp16") or (
            "onnxruntime.transformers.optimizer" in piece.words
            and any(p.option("float16") for p in lines.having("float16"))
        ):  # polygraphy convert
            yield ctx.finding("R22", piece.node, WARNING, _WHOLE, _RANGES)


def _is_run(ctx: Context, piece: Words, command: str) -> bool:
    """`python -m modelopt.onnx.autocast`, `runpy.run_module(...)`: the name of a logger or of a lazy import is not."""
    if "-m modelopt.onnx.autocast" in command:
        return True
    parent = ctx.symbols.parent.get(piece.root)
    if isinstance(parent, ast.Call) and last_name(parent.func) == "run_module":
        return True
    names = {t.id for t in parent.targets if isinstance(t, ast.Name)} if isinstance(parent, ast.Assign) else set()
    return any(n.id in names and _after_m(ctx, n) for n in ctx.symbols.nodes(ast.Name)) if names else False


def _after_m(ctx: Context, name: ast.Name) -> bool:
    """`["python", "-m", MODULE]`, `f"python -m {MODULE}"`, `run_module(MODULE)`."""
    parent = ctx.symbols.parent.get(name)
    if isinstance(parent, ast.Call):
        return last_name(parent.func) == "run_module"
    if isinstance(parent, ast.FormattedValue):
        above = ctx.symbols.parent.get(parent)
        before = [v for v in getattr(above, "values", []) if v is parent or isinstance(v, ast.Constant)]
        index = before.index(parent) if parent in before else 0
        return index > 0 and str(getattr(before[index - 1], "value", "")).rstrip().endswith("-m")
    elements = parent.elts if isinstance(parent, ast.List | ast.Tuple) else []
    return any(
        a is not name and getattr(a, "value", None) == "-m" and b is name for a, b in itertools.pairwise(elements)
    )


def _calibrated(ctx: Context) -> Iterator[Finding]:
    """`["python", "-m", "modelopt.onnx.autocast", ..., "--calibration_data", path]` with a file of random numbers."""
    for node in ctx.symbols.nodes(ast.List, ast.Tuple) if "modelopt.onnx.autocast" in ctx.text else ():
        for flag, data in zip(node.elts, node.elts[1:], strict=False):
            if isinstance(flag, ast.Constant) and flag.value == "--calibration_data":
                if made_up(ctx, data, ctx.symbols.scope(data)):
                    yield _random_data(ctx, data)


def _one_by_one(ctx: Context) -> Iterator[Finding]:
    """`numpy_helper.from_array(array.astype(np.float16))` over the initializers, and FLOAT16 inputs."""
    if "graphsurgeon" in ctx.text and re.search(r"\.dtype\s*=\s*(np|numpy)\.float16", ctx.text):
        for node in ctx.symbols.nodes(ast.Assign):
            if any(isinstance(t, ast.Attribute) and t.attr == "values" for t in node.targets):
                if re.search(r"astype\(.*float16", ast.unparse(node.value)):
                    yield ctx.finding("R22", node, WARNING, _WHOLE, _RANGES)
    if "initializer" not in ctx.text or "TensorProto.FLOAT16" not in ctx.text:
        return
    for call, scope in ctx.calls_named("from_array"):
        for ref in ctx.symbols.resolve(call.args[0], scope) if call.args else ():
            cast = ref.expr
            half = isinstance(cast, ast.Call) and last_name(cast.func) == "astype" and "float16" in ast.unparse(cast)
            if half and _of_all(ctx, call, scope):
                yield ctx.finding("R22", call, WARNING, _WHOLE, _RANGES)


def _of_all(ctx: Context, node: ast.expr, scope: Scope, depth: int = 2) -> bool:
    """Over all initializers, in the loop itself or in a function that it calls; not of one, or of some by their names."""
    child: ast.AST = node
    parent = ctx.symbols.parent.get(node)
    while parent is not None and not isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
        if isinstance(parent, ast.If) and child is not parent.test and _picks(parent.test, child in parent.body):
            return False
        loop = isinstance(parent, ast.For) and _initializers(ctx, parent.iter)
        if loop and not any(isinstance(s, ast.If) and _skips(s) for s in parent.body):  # type: ignore[attr-defined]
            return True
        if isinstance(parent, ast.ListComp | ast.GeneratorExp | ast.DictComp):
            over = parent.generators[0]
            return _initializers(ctx, over.iter) and not any(_picks(test, True) for test in over.ifs)
        child, parent = parent, ctx.symbols.parent.get(parent)
    sites = ctx.symbols.call_sites(scope) if depth and isinstance(scope.node, ast.FunctionDef) else []
    return any(_of_all(ctx, site, ctx.symbols.scope(site), depth - 1) for site in sites[:6])


def _initializers(ctx: Context, expr: ast.expr) -> bool:
    """`graph.initializer`, a name for it, `enumerate(...)`, `list(...)` and the items of a table of them."""
    held = [r.expr for n in walk(expr) if isinstance(n, ast.Name) for r in ctx.symbols.resolve(n, ctx.symbols.scope(n))]
    chosen = (t for e in held for g in getattr(e, "generators", ()) for t in g.ifs)
    return any("initializer" in ctx.str(e) for e in (expr, *held)) and not any(_picks(t, True) for t in chosen)


def _picks(test: ast.expr, holds: bool) -> bool:
    """`init.name == scale`, `init.name in names`: a few of them."""
    wanted = (ast.Eq, ast.In) if holds else (ast.NotEq, ast.NotIn)
    return any(
        isinstance(n, ast.Compare) and isinstance(n.ops[0], wanted) and last_name(n.left) == "name" for n in walk(test)
    )


def _skips(test: ast.If) -> bool:
    """`if init.name != scale: continue`"""
    return isinstance(test.body[-1], ast.Continue) and _picks(test.test, False)


def _passes(ctx: Context) -> Iterator[Finding]:
    """`{"type": "OnnxFloatToFloat16"}` among the passes of Olive."""
    for node in ctx.symbols.nodes(ast.Constant) if "OnnxFloatToFloat16" in ctx.text else ():
        table = ctx.symbols.parent.get(node)
        if node.value == "OnnxFloatToFloat16" and isinstance(table, ast.Dict) and node in table.values:
            if not any(name in ast.unparse(table) for name in _BLOCKED):  # in its settings
                yield ctx.finding("R22", node, WARNING, _WHOLE, _RANGES)
