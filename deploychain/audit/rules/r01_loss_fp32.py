"""R01: the loss must be computed in FP32. Where it is written does not matter, its dtype does."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import keyword, last_name
from deploychain.audit.context import NOTE, WARNING, Context, Rule
from deploychain.audit.finding import Finding
from deploychain.audit.losses import FUNCTION_LOSSES, loss_name
from deploychain.audit.tree import walk
from deploychain.audit.values import Seen


def check(ctx: Context) -> Iterator[Finding]:
    yield from _losses(ctx)
    yield from _written_out(ctx)


def _losses(ctx: Context) -> Iterator[Finding]:
    done: set[int] = set()
    for seen in ctx.seen:
        loss = _loss(ctx, seen)
        if loss is None or id(seen.node) in done or not seen.args:
            continue
        if (
            seen.region is not None
            and (seen.region.half or seen.region.enabled is not False)
            and (seen.region.dtype != "fp32" or seen.region.wide)
        ):
            continue
        name, constructor = loss
        logits = seen.args[0]
        if not logits.half or logits.module or _not_logits(seen.node):
            continue
        if name == "" and constructor is None and (seen.no_grad or _alone(ctx, seen.node)):
            continue  # a reported value, or a loss that is not shown and gets no target: of what, nobody knows
        done.add(id(seen.node))
        assert isinstance(seen.node, ast.Call)
        yield from _judge(ctx, seen, seen.node, name, constructor)


def _written_out(ctx: Context) -> Iterator[Finding]:
    """A loss that the code writes out, outside autocast, and whose value is half where it is scaled or run backward."""
    inside = {id(s.node) for s in ctx.seen if s.region is not None and s.region.half}
    done: set[int] = set()
    for seen in ctx.seen:
        call = seen.node
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        if call.func.attr == "scale" and seen.args and ctx.amp.is_scaler(call.func.value, ctx.symbols.scope(call)):
            loss, value = call.args[0] if call.args else None, seen.args[0]
        elif seen.name == ".backward" and not ctx.walk.half_calls:  # (training a model that is half is a matter of R08)
            loss, value = call.func.value, seen.args[0]
        else:
            continue
        if loss is None or value.dtype != "fp16" or value.mixed or value.module or not isinstance(value.via, ast.Call):
            continue
        formula = _formula(ctx, loss)
        if formula is None or id(formula) in done or any(id(n) in inside for n in walk(formula)):
            continue
        done.add(id(formula))
        yield ctx.finding(
            "R01", formula, WARNING,
            f"`{ctx.str(formula)}` is computed in float16 here, outside autocast, so the loss is float16: its value has 3 digits"
            + (", and times the initial scale 65536 it overflows, which skips the first steps and caps the scale" if _scaled(ctx) else ""),
            "compute it from `.float()` of the prediction (and of the target)",
        )  # fmt: skip


def _formula(ctx: Context, loss: ast.expr) -> ast.expr | None:
    """The arithmetic that a loss was last given; None where it is no formula of predictions."""
    if not isinstance(loss, ast.Name):
        return None
    scope = ctx.symbols.scope(loss)
    made = [
        b.value for b in ctx.symbols.bindings(loss.id, scope)
        if b.scope is scope and b.value is not None and not b.loop and b.place is None and b.value.lineno < loss.lineno
    ]  # fmt: skip
    if not made:
        return None
    last = made[-1]
    ops = [n for n in walk(last) if isinstance(n, ast.Call)]
    known = any(loss_name(ctx.symbols, n.func, scope) is not None for n in ops)
    reduces = any(isinstance(n.func, ast.Attribute) and n.func.attr in ("mean", "sum") for n in ops)
    return last if reduces and not known and _compares(last) else None


def _compares(formula: ast.expr) -> bool:
    """A difference, power or logarithm: not the mean or weighted sum of losses that a model returned."""
    words = {getattr(n, "id", "") or getattr(n, "attr", "") or getattr(n, "value", "") for n in walk(formula)}
    if any(isinstance(w, str) and "loss" in w.lower() for w in words):
        return False
    return any(isinstance(getattr(n, "op", None), ast.Sub | ast.Pow | ast.USub) for n in walk(formula)) or bool(
        words & {"abs", "pow", "square", "log"}
    )


def _not_logits(call: ast.expr) -> bool:
    """`compute_loss(model, batch)`, `log_loss(total_loss)`: the first argument is no prediction."""
    first = call.args[0] if isinstance(call, ast.Call) and call.args else None
    leaf = last_name(first).lower() if first is not None else ""
    return leaf in ("model", "net", "self", "module", "batch", "inputs") or "loss" in leaf


def _loss(ctx: Context, seen: Seen) -> tuple[str, ast.Call | None] | None:
    if not isinstance(seen.node, ast.Call):
        return None
    if seen.name.startswith("loss:"):
        found = loss_name(ctx.symbols, seen.node.func, seen.function)  # type: ignore[arg-type]
        if found is not None and found[0] == "" and _casts_inside(ctx, seen):
            return None
        return found
    leaf = seen.name.rpartition(".")[2]
    if leaf in FUNCTION_LOSSES and seen.name.startswith("torch."):
        return leaf, None
    return None


def _alone(ctx: Context, call: ast.expr) -> bool:
    """`loss_func(output)` of a function that the caller hands over: it has the targets, and may cast."""
    if (
        not isinstance(call, ast.Call)
        or len(call.args) > 1
        or any(not isinstance(k.value, ast.Constant) for k in call.keywords)
    ):
        return False
    scope = ctx.symbols.scope(call)
    shown = ctx.symbols.local_function(call.func, scope) or ctx.symbols.instance_class(call.func, scope)
    return shown is None and not isinstance(call.args[0] if call.args else None, ast.Starred)


def _casts_inside(ctx: Context, seen: Seen) -> bool:
    """A loss of this file whose code casts: `logits.float()`, `.to(torch.float32)`, or turns autocast off."""
    assert isinstance(seen.node, ast.Call)
    symbols = ctx.symbols
    scope = symbols.scope(seen.node)
    function = symbols.local_function(seen.node.func, scope)
    node: ast.AST | None = function.node if function is not None else None
    if node is None:
        cls = symbols.instance_class(seen.node.func, scope)
        node = cls.node if cls is not None else None
    if node is None:
        return False
    for inner in walk(node):
        if (
            isinstance(inner, ast.Call)
            and isinstance(inner.func, ast.Attribute)
            and inner.func.attr in ("float", "double")
        ):
            return True
        if isinstance(inner, ast.Attribute) and inner.attr in ("float32", "float64"):
            return True
    return False


def _judge(ctx: Context, seen: Seen, call: ast.Call, name: str, constructor: ast.Call | None) -> Iterator[Finding]:
    logits, scope = seen.args[0], ctx.symbols.scope(call)
    settings = constructor if constructor is not None else call
    smoothing = ctx.symbols.const(keyword(settings, "label_smoothing", "smoothing"), scope)
    summed = ctx.symbols.const(keyword(settings, "reduction"), scope) == "sum"
    indices = FUNCTION_LOSSES.get(name, True)
    if not indices and len(seen.args) > 1 and seen.args[1].dtype == "fp32":
        return  # an FP32 target promotes the result
    shown = ctx.str(call.args[0]) if call.args else "logits"
    given = [ctx.str(a) for a in call.args[1:]] + [f"{k.arg}={ctx.str(k.value)}" for k in call.keywords if k.arg]
    rest = ", ".join(given)
    fix = f"{ctx.str(call.func)}({shown}.float(){', ' + rest if rest else ''})  # or move the call inside the autocast block"
    dtype = {"fp16": "float16", "bf16": "bfloat16"}.get(logits.dtype or "", "half precision")
    start = f"`{shown}` is still {dtype} here, outside autocast, so the loss is computed in {dtype}"
    smooth = isinstance(smoothing, int | float) and not isinstance(smoothing, bool) and smoothing > 0
    passes = "passes 65504" if logits.dtype == "fp16" else "passes 65504 where that is float16"
    if (smooth or summed) and logits.dtype != "bf16":  # (bfloat16 has the range of float32)
        over = "the classes" if smooth else "the batch"
        many = "about 1000 classes" if smooth else "about 10000 terms (pixels, tokens)"
        if seen.no_grad:
            text = f"the sum over {over} {passes} from {many} on, and the reported loss becomes inf"
        elif smooth:
            text = f"with label_smoothing the sum over {over} {passes} and the logged loss is inf from {many} on, while the gradients stay finite, so no step is skipped and nothing else shows it"
        else:
            text = f"reduction='sum' over {over} {passes} from {many} on and becomes inf"
        yield ctx.finding("R01", call, WARNING, f"{start}; {text}", fix)
    elif seen.no_grad:
        digits = {"fp16": "3 digits (about 2e-4)", "bf16": "2 digits (up to 8e-3)"}.get(
            logits.dtype or "", "2 or 3 digits"
        )
        yield ctx.finding(
            "R01", call, NOTE, f"{start}: the reported value is rounded to {digits}; training is not touched", fix
        )
    elif not indices:
        yield ctx.finding(
            "R01", call, NOTE, f"`{shown}` is {dtype} here: with a {dtype} target the loss is too (a float32 target "
            "promotes it); say which is meant", fix,
        )  # fmt: skip
    else:
        yield ctx.finding("R01", call, WARNING, f"{start}: {_off(ctx, logits.dtype)}", fix)


def _off(ctx: Context, dtype: str | None) -> str:
    """How far off a loss is (cross_entropy over 10 to 32000 classes against float32), and what a scaler makes of it."""
    if dtype == "bf16":
        return "the value is off by 2e-3 to 8e-3 and the gradient by 1e-3 to 2e-3"
    exact = "value and gradient are off by 2e-4 to 4e-4"
    if dtype != "fp16":
        exact += " in float16 and by 1e-3 to 8e-3 in bfloat16"
    scaled = (
        ", and a float16 loss times the initial scale 65536 overflows, which skips the first step and caps the scale"
    )
    return exact + (scaled if _scaled(ctx) else "")


def _scaled(ctx: Context) -> bool:
    return (
        "GradScaler" in ctx.text
        or "scaler" in ctx.text
        or bool(ctx.amp.framework.lightning or ctx.amp.framework.accelerate)
    )


RULE = Rule(
    id="R01",
    name="loss-fp32",
    title="The loss is computed in half precision",
    how="code, run",
    belief="One checklist says that the loss must be inside autocast, another that it must be outside, because of 'implicit conversion'.",
    truth=(
        "Both places are right; the dtype decides. Inside CUDA autocast every loss of torch runs in float32 (relative error "
        "1e-9 to 1e-7). Outside nothing is converted: cross_entropy on float16 logits computes in float16 (value 2e-4, gradient "
        "3e-4 off; on bfloat16 ones 2e-3 to 8e-3 and 1e-3), is inf in float16 with label_smoothing over 1000 classes, and a float16 "
        "loss times 65536 overflows. Outside with "
        "`.float()` equals inside."
    ),
    experiment="cross_entropy on float16 logits inside autocast, outside, outside with .float(), and with label_smoothing.",
    bad='with torch.autocast("cuda"):\n    logits = model(x)\nloss = F.cross_entropy(logits, y, label_smoothing=0.1)',
    good='with torch.autocast("cuda"):\n    logits = model(x)\n    loss = F.cross_entropy(logits, y, label_smoothing=0.1)\n'
    "# or, outside: F.cross_entropy(logits.float(), y, label_smoothing=0.1)",
    check=check,
    trigger=r"autocast|half|float16|fp16|bf16|16-mixed|16-true|precision=16|HalfTensor",
)
