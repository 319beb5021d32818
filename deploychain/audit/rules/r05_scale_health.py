"""R05: no fixed band of scales is healthy, and the scale is not set by hand."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, argument, dotted, last_name
from deploychain.audit.context import NOTE, WARNING, Context, Rule
from deploychain.audit.finding import Finding
from deploychain.audit.loss_scale import SCALER_NAME, is_scaler, number, scale_read
from deploychain.audit.scaler_settings import settings
from deploychain.audit.tree import walk

_LOWEST_ALARM = 32  # a summed loss sits at 2^5..2^12 for good reason: an alarm below that is one about real trouble
_SMALLEST_START = 16  # 2000 clean steps for each doubling: 26000 steps from here to 2^16
_LARGEST_START = 2.0**24
_WORTH = re.compile(
    r"get_scale|init_scale|new_scale|GradScaler\(|caler\.update\([^)]|initial_scale_power|caler\w*\._scale|\[.scale.\]"
)
_EPOCH = re.compile(r"^(_?ep|_?epochs?|epoch_\w+|cur_epoch|n_epoch)$", re.IGNORECASE)
_FIX_START = "GradScaler()  # starts at 65536 and finds its level in the first steps"


def check(ctx: Context) -> Iterator[Finding]:
    if not ctx.says(_WORTH):
        return
    yield from _start(ctx)
    for node in ctx.symbols.nodes(ast.Compare):
        yield from _band(ctx, node)
    yield from _set_by_hand(ctx)
    yield from _made_again(ctx)


def _start(ctx: Context) -> Iterator[Finding]:
    for value, call, scope, power in settings(ctx, "init_scale"):
        start = number(ctx, value, scope)
        if start is None:
            continue
        start = 2.0 ** min(start, 200) if power else start
        if 0 < start < 1:
            yield ctx.finding(
                "R05", call, WARNING,
                f"init_scale={start:g} shrinks gradients instead of enlarging them: more of them round to zero in float16", _FIX_START,
            )  # fmt: skip
        elif 1 <= start < _SMALLEST_START:
            yield ctx.finding(
                "R05", call, WARNING,
                f"init_scale={start:g} hardly scales at all, and the scale doubles only once in 2000 clean steps: small gradients round "
                "to zero in float16 for the first tens of thousands of steps", _FIX_START,
            )  # fmt: skip
        elif start > _LARGEST_START:
            yield ctx.finding(
                "R05", call, WARNING,
                f"init_scale={start:g}: float16 gradients end at 65504, so the first steps overflow and are skipped, one for each halving",
                _FIX_START,
            )  # fmt: skip


def _band(ctx: Context, node: ast.Compare) -> Iterator[Finding]:
    scope = ctx.symbols.scope(node)
    parts = [node.left, *node.comparators]
    found: list[tuple[bool, float]] = []  # (the scale is to be below, limit)
    for index, op in enumerate(node.ops):
        left, right = parts[index], parts[index + 1]
        kind = scale_read(ctx, left, scope)
        if isinstance(op, ast.In | ast.NotIn) and isinstance(right, ast.Call) and last_name(right.func) == "range":
            limit = number(ctx, right.args[0], scope) if len(right.args) > 1 else None
            if kind and limit is not None and _level(kind, limit) >= _LOWEST_ALARM:
                yield _fixed_band(ctx, node, _level(kind, limit))
                return
        for scale, bound, below in ((left, right, (ast.Lt, ast.LtE)), (right, left, (ast.Gt, ast.GtE))):
            limit = number(ctx, bound, scope)
            kind = scale_read(ctx, scale, scope) if limit is not None else ""
            if limit is not None and kind and _level(kind, limit) >= _LOWEST_ALARM:
                found.append((isinstance(op, below), _level(kind, limit)))
    asserted = _asserted(ctx, node)
    required = asserted or len(found) > 1 or _answer(ctx, node)
    for below_limit, limit in found:
        if (below_limit and not asserted and len(found) == 1) or (required and not below_limit):
            yield _fixed_band(ctx, node, limit)
            return


def _level(kind: str, limit: float) -> float:
    return 2.0 ** min(limit, 200) if kind == "log2" else limit


def _fixed_band(ctx: Context, node: ast.expr, limit: float) -> Finding:
    return ctx.finding(
        "R05", node, NOTE,
        f"a loss scale below {limit:g} is taken for a fault, but the right level depends on the loss: a summed "
        "cross-entropy over 256 samples trains perfectly at 2^11, a large loss weight at 2^5",
        "judge the trend instead: a scale below 1, ten skipped steps in a row, or more than 1 % skipped over 1000 "
        "steps (deploychain.monitor does)",
    )  # fmt: skip


def _asserted(ctx: Context, node: ast.AST) -> bool:
    parent = ctx.symbols.parent.get(node)
    while isinstance(parent, ast.BoolOp):
        parent = ctx.symbols.parent.get(parent)
    negated = isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
    return isinstance(parent, ast.Assert) or negated


def _answer(ctx: Context, node: ast.AST) -> bool:
    """The comparison is itself the verdict: returned, stored, or handed to assertTrue."""
    parent = ctx.symbols.parent.get(node)
    while isinstance(parent, ast.BoolOp):
        parent = ctx.symbols.parent.get(parent)
    if isinstance(parent, ast.Call):
        return last_name(parent.func) in ("assertTrue", "append", "check", "bool")
    return isinstance(parent, ast.Return | ast.Assign | ast.Dict)


# -- the scale is set by hand ---------------------------------------------------------------------------------------


def _set_by_hand(ctx: Context) -> Iterator[Finding]:
    for call, scope in ctx.calls_named("update"):
        value = argument(call, 0, "new_scale")
        if value is None or not isinstance(call.func, ast.Attribute):
            continue
        text = dotted(call.func.value) or ""
        named = any(k.arg == "new_scale" for k in call.keywords) and SCALER_NAME.search(text.rpartition(".")[2])
        ours = named or is_scaler(ctx, call.func.value, scope)
        if ours and _chosen(ctx, value, scope) and not _is_last_floor(ctx, call, value, scope):
            yield _by_hand(ctx, call)
    for node in ctx.symbols.nodes(ast.Assign):
        for target in node.targets:
            held = isinstance(target, ast.Subscript) and getattr(target.slice, "value", None) == "scale"
            if held and _state_of_scaler(ctx, target.value, ctx.symbols.scope(node)):
                yield _by_hand(ctx, node)
    for call, scope in ctx.calls_named("load_state_dict"):
        if isinstance(call.func, ast.Attribute) and call.args and is_scaler(ctx, call.func.value, scope):
            for ref in ctx.symbols.resolve(call.args[0], scope):
                for key, value in (
                    zip(ref.expr.keys, ref.expr.values, strict=True) if isinstance(ref.expr, ast.Dict) else ()
                ):
                    if isinstance(key, ast.Constant) and key.value == "scale" and _chosen(ctx, value, ref.scope):
                        yield _by_hand(ctx, call)


def _is_last_floor(ctx: Context, call: ast.Call, value: ast.expr, scope: Scope) -> bool:
    """`if scaler.get_scale() < floor: scaler.update(floor)` with a floor of 1 or less: training has failed by then."""
    floor = number(ctx, value, scope)
    if floor is None or floor > 1:
        return False
    node: ast.AST = call
    while (above := ctx.symbols.parent.get(node)) is not None and not isinstance(node, ast.FunctionDef):
        if isinstance(above, ast.If) and node in above.body:
            for test in walk(above.test):
                if not isinstance(test, ast.Compare) or len(test.ops) != 1:
                    continue
                low, high = test.left, test.comparators[0]
                if isinstance(test.ops[0], ast.Gt | ast.GtE):
                    low, high = high, low
                elif not isinstance(test.ops[0], ast.Lt | ast.LtE):
                    continue
                if number(ctx, high, scope) == floor and scale_read(ctx, low, scope) == "scale":
                    return True
        node = above
    return False


def _chosen(ctx: Context, value: ast.expr, scope: Scope, depth: int = 4) -> bool:
    """A number, or something computed from numbers and the present scale; not what a checkpoint holds."""
    if number(ctx, value, scope) is not None or scale_read(ctx, value, scope):
        return True
    if depth == 0:
        return False
    if isinstance(value, ast.Attribute) and value.attr == "_init_scale":
        return True
    if isinstance(value, ast.Subscript):  # a table of scales
        tables = [r.expr for r in ctx.symbols.resolve(value.value, scope)]
        items = [i for t in tables for i in (t.values if isinstance(t, ast.Dict) else getattr(t, "elts", []))]
        return bool(items) and all(number(ctx, i, scope) is not None for i in items)
    if isinstance(value, ast.BinOp):
        sides = (value.left, value.right)
        return any(_chosen(ctx, s, scope, depth - 1) for s in sides)
    if isinstance(value, ast.Call) and last_name(value.func) in (
        "min",
        "max",
        "clip",
        "clamp",
        "float",
        "tensor",
        "full",
        "full_like",
        "minimum",
        "maximum",
    ):
        inner = [*value.args, *(k.value for k in value.keywords if k.arg != "device")]
        if isinstance(value.func, ast.Attribute):
            inner.append(value.func.value)
        return any(_chosen(ctx, a, scope, depth - 1) for a in inner)
    if isinstance(value, ast.IfExp):
        return any(_chosen(ctx, a, scope, depth - 1) for a in (value.body, value.orelse))
    if dotted(value) is not None:
        bindings = ctx.symbols.bindings(dotted(value) or "", scope)
        return any(
            b.value is not None and not b.loop and b.place is None and _chosen(ctx, b.value, b.scope, depth - 1)
            for b in bindings
        )
    return False


def _by_hand(ctx: Context, node: ast.AST) -> Finding:
    return ctx.finding(
        "R05", node, WARNING,
        f"`{ctx.str(node)}` sets the loss scale by hand: the scaler has found the level at which gradients just do not overflow; below "
        "it more of them round to zero, above it steps are skipped, and the clean steps are counted from zero again",
        "scaler.update()  # no new_scale; when steps are skipped again and again, find the first gradient that is not finite",
    )  # fmt: skip


def _state_of_scaler(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    """A dictionary that came from scaler.state_dict() or goes into scaler.load_state_dict()."""
    for ref in ctx.symbols.resolve(expr, scope):
        call = ref.expr
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "state_dict":
            return is_scaler(ctx, call.func.value, ref.scope)
    text = dotted(expr)
    return text is not None and any(
        isinstance(c.func, ast.Attribute)
        and bool(c.args)
        and dotted(c.args[0]) == text
        and is_scaler(ctx, c.func.value, s)
        for c, s in ctx.calls_named("load_state_dict")
    )


def _made_again(ctx: Context) -> Iterator[Finding]:
    """A new scaler in every epoch of one training, or in the middle of it."""
    for call in ctx.amp.scaler_calls:
        scope = ctx.symbols.scope(call)
        if ctx.amp.call_enabled(call, scope) is False:
            continue
        if _in_training_loop(ctx, call, scope):
            yield _new_scaler(ctx, call, "in the middle of training")
            continue
        loop = _epoch_loop(ctx, call)
        if (
            loop is None
            and isinstance(scope.node, ast.FunctionDef)
            and scope.name != "__init__"
            and _steps(ctx, scope.node)
        ):
            sites = ctx.symbols.call_sites(scope)
            loops = [_epoch_loop(ctx, s) for s in sites]
            loop = loops[0] if loops and None not in loops else None
            if loop is not None and _makes_optimizer(ctx, scope.node):
                continue
        elif loop is None and isinstance(scope.node, ast.FunctionDef) and not _makes_optimizer(ctx, scope.node):
            # `self.reset_amp()` at the head of every epoch
            again = [_epoch_loop(ctx, s) for s in ctx.symbols.call_sites(scope)]
            loop = next((o for o in again if o is not None and _steps(ctx, o)), None)
        if loop is not None and not _makes_optimizer(ctx, loop):
            yield _new_scaler(ctx, call, "in every epoch")


def _new_scaler(ctx: Context, call: ast.Call, when: str) -> Finding:
    return ctx.finding(
        "R05", call, WARNING,
        f"a new GradScaler {when}: the scale that was found is thrown away, the steps that calibrate it are skipped "
        "again, and the count of clean steps starts from zero", "make the scaler once, before the first epoch",
    )  # fmt: skip


def _in_training_loop(ctx: Context, call: ast.Call, scope: Scope) -> bool:
    """`scaler = GradScaler(...)` again, inside the loop that steps the scaler which was made before it."""
    node = ctx.symbols.parent.get(call)
    target = dotted(node.targets[0]) if isinstance(node, ast.Assign) else None
    bindings = [b for b in ctx.symbols.bindings(target, scope) if b.value is not call] if target else []
    first = [b for b in bindings if b.value is not None and ctx.amp.is_scaler_call(b.value, b.scope)]
    parent = ctx.symbols.parent.get(call)
    while parent is not None and not isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        if isinstance(parent, ast.For | ast.While) and _steps(ctx, parent) and not _makes_optimizer(ctx, parent):
            around = {id(n) for n in walk(parent)}
            return any(id(b.value) not in around for b in first)
        parent = ctx.symbols.parent.get(parent)
    return False


def _epoch_loop(ctx: Context, node: ast.AST) -> ast.For | None:
    parent = ctx.symbols.parent.get(node)
    while parent is not None and not isinstance(
        parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
    ):
        if isinstance(parent, ast.For):
            names = [n.id for n in walk(parent.target) if isinstance(n, ast.Name)]
            source = {last_name(n).lower() for n in walk(parent.iter)}
            if any(_EPOCH.match(n) for n in names) or any("epoch" in s for s in source):
                return parent
        parent = ctx.symbols.parent.get(parent)
    return None


def _steps(ctx: Context, node: ast.AST) -> bool:
    return any(isinstance(n, ast.Call) and last_name(n.func) in ("step", "update") and isinstance(n.func, ast.Attribute)
               and is_scaler(ctx, n.func.value, ctx.symbols.scope(n)) for n in walk(node))  # fmt: skip


def _makes_optimizer(ctx: Context, node: ast.AST) -> bool:
    for inner in walk(node):
        if isinstance(inner, ast.Call):
            name = ctx.symbols.qual(inner.func) or last_name(inner.func)
            if (name.startswith("torch.optim.") and ".lr_scheduler" not in name) or re.search(
                r"(make|build|create|get|init|configure)_\w*(optim|model|net)", last_name(inner.func), re.IGNORECASE
            ):
                return True
    return False


RULE = Rule(
    id="R05",
    name="scale-health",
    title="The loss scale cannot hold, or a healthy one is taken for a fault",
    how="run, log, code",
    belief="A healthy scale is 2^16 to 2^18; below 2^14 training is sick.",
    truth=(
        "There is no such band. With reduction='sum' over 256 samples the scale settles at 2^11 after five skips and the accuracy "
        "equals FP32's. What is wrong: a scale below 1, ten or more skipped steps in a row, a skip rate above 1 % over 1000 steps "
        "after the first twenty."
    ),
    experiment="The same classifier with a mean and a summed loss: scale, skips and accuracy of both.",
    bad="if scaler.get_scale() < 2**14:\n    raise RuntimeError('loss scale collapsed')",
    good="with deploychain.monitor(model, optimizer, scaler) as m:\n    ...\n    m.step(loss)  # reports R05 from the whole series",
    check=check,
    trigger=r"caler|initial_scale_power",
)
