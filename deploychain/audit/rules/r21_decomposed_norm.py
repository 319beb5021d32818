"""R21: a LayerNorm taken apart overflows in float16."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, keyword, last_name, strip_module_calls
from deploychain.audit.context import WARNING, Context, Rule
from deploychain.audit.exports import Export
from deploychain.audit.finding import Finding
from deploychain.audit.norms import by_hand, layer_norm
from deploychain.audit.tables import strings
from deploychain.audit.tree import walk

_LAYER_NORM_OPSET = 17
_HALF = re.compile(r"half|float16|fp16|FP16")
_PINS = re.compile(
    r"precisionConstraints|layerPrecisions|PRECISION_CONSTRAINTS|\.precision\s*=|node_block_list|nodes_to_exclude|calibration_data"
)
_NORM_OPS = re.compile(r"op_block_list.*(Pow|ReduceMean|LayerNorm|Sqrt)", re.DOTALL)
_CHAIN = frozenset({"Pow", "ReduceMean", "Sqrt", "Div", "LayerNormalization"})


def check(ctx: Context) -> Iterator[Finding]:
    if not ctx.says(_HALF):
        return
    found = ctx.exports if "onnx" in ctx.text else []
    later = _converted_later(ctx) if found else None
    for export in found:
        if not _which_model(export):
            yield from next((f for one in export.variants if (f := list(_export(ctx, one, later)))), [])
    yield from _by_hand(ctx, found, later)


def _which_model(export: Export) -> bool:
    """Some instances export at 17, and which of them has which model is not clear."""
    opsets = [v for one in export.variants for v in one.values("opset_version") if isinstance(v, int)]
    models = {id(model.expr) for one in export.variants if (model := one.given("model")) is not None}
    return len(export.variants) > 1 and len(models) == 1 and max(opsets, default=0) >= _LAYER_NORM_OPSET


def _export(ctx: Context, export: Export, later: str | None) -> Iterator[Finding]:
    """A model with LayerNorm, half or made half later, exported below opset 17 by the TorchScript exporter."""
    opsets = [v for v in export.values("opset_version") if isinstance(v, int) and not isinstance(v, bool)]
    model = export.given("model")
    if (
        not opsets
        or min(opsets) >= _LAYER_NORM_OPSET
        or model is None
        or export.method
        or True in export.values("dynamo")
    ):
        return
    half = _half(ctx, export)
    if not half and later is None:
        return
    norm = layer_norm(ctx.symbols, *model)
    if norm is None or _kept(ctx):
        return
    made = "a float16 model" if half else f"a model that is made float16 later ({later}),"
    yield ctx.finding(
        "R21", export.call, WARNING,
        f"{made} with LayerNorm (line {getattr(norm, 'lineno', 1)}) at opset {min(opsets)}: below 17 the norm is exported as ReduceMean-Sub-Pow-"
        "ReduceMean-Add-Sqrt-Div, with casts to DOUBLE in a half export; |x - mean| > 255 overflows in Pow and the output is 0",
        "opset_version=17 (LayerNormalization), or export in float32 and keep the chain FP32 when converting",
    )  # fmt: skip


def _half(ctx: Context, export: Export) -> bool:
    for seen in ctx.seen:
        if seen.node is export.call and seen.args and seen.args[0].dtype == "fp16":
            return True
    model = export.given("model")
    return model is not None and (_made_half(ctx, model[0], model[1], 4) or _halved_by_helper(ctx, export, *model))


def _halved_by_helper(ctx: Context, export: Export, model: ast.expr, scope: Scope) -> bool:
    """`prepare(net)` before the export, with `net.half()` as a statement in it."""
    made = {id(r.expr) for r in ctx.symbols.resolve(strip_module_calls(model), scope)}
    for ref, cast in ctx.walk.half_calls:
        helper = ctx.symbols.scope(cast)
        if id(ref.expr) in made and helper is not scope and isinstance(ctx.symbols.parent.get(cast), ast.Expr):
            sites = [s for s in ctx.symbols.call_sites(helper) if ctx.symbols.scope(s) is scope]
            if any(s.lineno < export.call.lineno for s in sites) and ".float()" not in ctx.text:
                return True
    return False


def _made_half(ctx: Context, expr: ast.expr, scope: Scope, depth: int) -> bool:
    """`AutoModel.from_pretrained(..., torch_dtype=torch.float16)`, also inside a wrapper of this file."""
    if depth <= 0:
        return False
    for ref in ctx.symbols.resolve(expr, scope):
        call = ref.expr
        while isinstance(call, ast.Call):
            dtype = keyword(call, "torch_dtype", "dtype")
            if dtype is not None and ctx.amp.dtype(dtype, ref.scope) == "fp16":
                return True
            if isinstance(call.func, ast.Attribute) and call.func.attr == "half":
                return True
            inner = strip_module_calls(call)
            if inner is call:
                if last_name(call.func) in ctx.symbols.classes:
                    return any(_made_half(ctx, a, ref.scope, depth - 1) for a in call.args)
                break
            if isinstance(call.func, ast.Attribute) and call.func.attr in ("float", "bfloat16", "double"):
                return False
            call = call.func.value if isinstance(call.func, ast.Attribute) else inner
    return False


def _kept(ctx: Context) -> bool:
    """`net.norm.float()` as a statement: the norms are put back to float32."""
    for call in ctx.symbols.calls:
        if isinstance(call.func, ast.Attribute) and isinstance(ctx.symbols.parent.get(call), ast.Expr):
            fp32 = call.func.attr == "float" or (
                call.func.attr == "to" and call.args and ctx.amp.dtype(call.args[0], ctx.symbols.scope(call)) == "fp32"
            )
            if fp32 and (isinstance(call.func.value, ast.Attribute) or _in_loop(ctx, call)):
                return True
    return False


def _in_loop(ctx: Context, call: ast.Call) -> bool:
    holder = call.func.value if isinstance(call.func, ast.Attribute) else None
    return isinstance(holder, ast.Name) and any(
        b.loop for b in ctx.symbols.bindings(holder.id, ctx.symbols.scope(call))
    )


def _converted_later(ctx: Context) -> str | None:
    """What makes the exported graph float16 in the same file, without keeping the norms out of it."""
    if ctx.says(_PINS) or ctx.says(_NORM_OPS):
        return None
    for call in ctx.symbols.calls:
        leaf = (ctx.symbols.qual(call.func) or last_name(call.func)).rpartition(".")[2]
        if leaf == "convert_float_to_float16" and not _keeps_norms(ctx, call):
            return f"line {call.lineno}"
        if leaf == "CreateConfig" and ctx.symbols.const(keyword(call, "fp16"), ctx.symbols.scope(call)) is True:
            return f"line {call.lineno}"  # Polygraphy
    for node in ctx.symbols.nodes(ast.Attribute):
        if node.attr == "FP16" and last_name(node.value) == "BuilderFlag":
            return f"line {node.lineno}"
    if "trtexec" in ctx.text:
        for piece in ctx.command_lines.having("fp16", "best"):
            return f"line {piece.node.lineno}"
    return None


def _keeps_norms(ctx: Context, call: ast.Call) -> bool:
    blocked = keyword(call, "op_block_list")
    names = strings(ctx.symbols, blocked, ctx.symbols.scope(call))[0] if blocked is not None else []
    return any(name in _CHAIN for name, _ in names)


def _by_hand(ctx: Context, found: list[Export], later: str | None) -> Iterator[Finding]:
    """(x - mean) / sqrt(var + eps) with var = (x - mean)**2 in a class of which an instance is made half."""
    halved: dict[str, int] = {name: getattr(call, "lineno", 1) for name, call in ctx.walk.half_modules.items()}
    for export in found:
        model = export.given("model")
        if model is not None and (later is not None or _half(ctx, export)):
            for cls in ctx.symbols.classes_in(*model):
                halved.setdefault(cls.name, export.call.lineno)
    if not halved:
        return
    upcast = {id(s.node) for s in ctx.seen if any(a.dtype == "fp32" for a in s.args) or s.result.dtype == "fp32"}
    upcast |= {id(s.node) for s in ctx.seen if s.region is not None and s.region.half and s.region.cuda}
    for function, line in _run_in_half(ctx, halved):
        for node in by_hand(ctx.symbols, function, exported=bool(found)):
            if id(node) not in upcast:
                yield ctx.finding(
                    "R21", node, WARNING,
                    f"hand-written normalisation in a model that is made half (line {line}): the square overflows float16 once a value is "
                    "256 from the mean, and the output becomes 0",
                    "torch.nn.functional.layer_norm(x, x.shape[-1:]), or x.float() for this block",
                )  # fmt: skip
                break


def _run_in_half(ctx: Context, halved: dict[str, int]) -> Iterator[tuple[Scope, int]]:
    """The methods of the halved classes, and the functions of the file that they call."""
    for name, line in list(halved.items()):
        for base in ctx.symbols.bases(ctx.symbols.classes.get(name)):
            halved.setdefault(base.name, line)
    queue = [
        (f, halved[f.owner.name])
        for f in ctx.symbols.function_scopes
        if f.owner is not None and f.owner.name in halved and f.name != "__init__"
    ]
    done: set[int] = set()
    while queue:
        function, line = queue.pop(0)
        if id(function) in done:
            continue
        done.add(id(function))
        yield function, line
        for node in walk(function.node):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                called = ctx.symbols.local_function(node.func, function)
                if called is not None:
                    queue.append((called, line))


RULE = Rule(
    id="R21",
    name="decomposed-norm",
    title="A normalisation taken apart, bound for float16",
    how="code, graph",
    belief="LayerNorm must be rewritten or its eps raised for float16.",
    truth=(
        "The fused kernel is safe. The decomposed chain in strict float16 is not: |x - mean| > 255 makes Pow inf and the output all "
        "zeros (at std 100: 100 %), and eps 1e-8 on a constant row gives NaN. Opset 17 has LayerNormalization."
    ),
    experiment="LayerNorm as a kernel and as a chain of float16 ops at std 100.",
    bad='torch.onnx.export(model.half(), x, "m.onnx", opset_version=13)',
    good='torch.onnx.export(model, x, "m.onnx", opset_version=17, dynamo=False)  # then convert with pinned norms',
    check=check,
    trigger=r"half|float16|fp16|FP16",
)
