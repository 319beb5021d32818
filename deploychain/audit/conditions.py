"""What a condition says on each of its sides, and what kind of question it asks."""

from __future__ import annotations

import ast
import re

from deploychain.audit.astnames import Scope, dotted, last_name
from deploychain.audit.paths import Guard
from deploychain.audit.symbols import Symbols
from deploychain.audit.tree import walk

_AMP = re.compile(
    r"amp|fp_?16|half|scaler|mixed|precision|enabled|cuda|autocast|device|deepspeed|engine|apex", re.IGNORECASE
)
_SKIP = re.compile(
    r"get_scale\(|skip|overflow|scale_?(before|after|old|new|prev)|(old|prev|new|last)_scale", re.IGNORECASE
)


def about_amp(test: ast.expr) -> bool:
    """The condition may be another way to ask whether there is a scaler."""
    return asks_for_amp(condition_text(test))


def asks_for_amp(text: str) -> bool:
    return bool(_AMP.search(text))


def about_skip(test: ast.expr, symbols: Symbols, scope: Scope) -> bool:
    """The condition asks whether the step was skipped."""
    return bool(_SKIP.search(condition_text(written_out(test, symbols, scope))))


def periodic(test: ast.expr, symbols: Symbols, scope: Scope) -> bool:
    """`(i + 1) % accum == 0`, as it is or by name: true in some iterations and false in others of one run."""
    return any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod) for n in walk(written_out(test, symbols, scope)))


def with_gradients(context: ast.expr, symbols: Symbols, scope: Scope) -> tuple[Guard, ...]:
    """What holds where autograd is on inside of a `with`: `no_grad() if frozen else nullcontext()`."""
    refs = symbols.bindings(context.id, scope) if isinstance(context, ast.Name) else []
    held = refs[0].value if len(refs) == 1 and refs[0].value is not None else context
    if isinstance(held, ast.IfExp):
        off = [_turns_off(arm) for arm in (held.body, held.orelse)]
        return conditions(held.test, off[1]) if off[0] != off[1] else ()
    if isinstance(held, ast.Call) and last_name(held.func) == "set_grad_enabled" and len(held.args) == 1:
        return () if isinstance(held.args[0], ast.Constant) else conditions(held.args[0], True)
    return ()


def _turns_off(expr: ast.expr) -> bool:
    return isinstance(expr, ast.Call) and last_name(expr.func) in ("no_grad", "inference_mode")


def written_out(test: ast.expr, symbols: Symbols, scope: Scope) -> ast.expr:
    """What a name stands for that was bound once, here or in the function around, to a comparison or conditions."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = written_out(test.operand, symbols, scope)
        return test if inner is test.operand else ast.copy_location(ast.UnaryOp(ast.Not(), inner), test)
    if isinstance(test, ast.Name):
        bindings = symbols.bindings(test.id, scope)
        if (
            len(bindings) == 1
            and (bindings[0].scope is scope or (bindings[0].scope is scope.parent and scope.owner is None))
            and isinstance(bindings[0].value, ast.Compare | ast.BoolOp)
        ):
            return bindings[0].value
    return test


def conditions(test: ast.expr, holds: bool) -> tuple[Guard, ...]:
    """What is known when a test is true or false, as normalised (text, truth) pairs."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return conditions(test.operand, not holds)
    if isinstance(test, ast.BoolOp):
        every = isinstance(test.op, ast.And)
        whole = (condition_text(test), holds)
        return (*(g for value in test.values for g in conditions(value, holds)), whole) if every == holds else (whole,)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        op, right = test.ops[0], test.comparators[0]
        if (
            isinstance(right, ast.Constant)
            and right.value is None
            and isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq)
        ):
            # `x is not None` and `x` are the same question for a scaler or an optimiser
            return ((condition_text(test.left), holds == isinstance(op, ast.IsNot | ast.NotEq)),)
        if isinstance(op, ast.NotEq | ast.IsNot | ast.NotIn):
            flipped = {ast.NotEq: "==", ast.IsNot: "is", ast.NotIn: "in"}[type(op)]
            return ((f"{condition_text(test.left)} {flipped} {condition_text(right)}", not holds),)
    return ((condition_text(test), holds),)


def condition_text(expr: ast.expr) -> str:
    try:
        return ast.unparse(expr)
    except (RecursionError, ValueError):
        return f"<{id(expr)}>"


def holds_once(test: ast.expr) -> bool:
    """`step == 0`: true in one iteration of many."""
    return (
        isinstance(test, ast.Compare)
        and len(test.ops) == 1
        and isinstance(test.ops[0], ast.Eq)
        and (
            isinstance(test.comparators[0], ast.Constant)
            and isinstance(test.comparators[0].value, int)
            and not isinstance(test.comparators[0].value, bool)
            and isinstance(test.left, ast.Name)
            and test.left.id.lower().rpartition("_")[2]
            in ("i", "step", "epoch", "idx", "it", "iteration", "iter", "batch")
        )
    )


def assigned(s: ast.stmt) -> set[str]:
    found: set[str] = set()
    if isinstance(s, ast.Assign):
        for target in s.targets:
            found |= target_names(target)
    elif isinstance(s, ast.AugAssign | ast.AnnAssign):
        found |= target_names(s.target)
    return found


def renewed(s: ast.stmt) -> set[str]:
    """Names that may be another object each time: `opt = opts[name]`, `opt = make()`; not `opt = self.opt`."""
    value = getattr(s, "value", None)
    if not isinstance(s, ast.Assign | ast.AnnAssign) or value is None or dotted(value) is not None:
        return set()
    if isinstance(value, ast.Call) and not value.args and not value.keywords and isinstance(value.func, ast.Attribute):
        return set()  # `self.optimizers()` of Lightning gives the same ones
    return assigned(s) if isinstance(value, ast.Call | ast.Subscript) else set()


def target_names(target: ast.expr) -> set[str]:
    if isinstance(target, ast.Tuple | ast.List):
        return {n for e in target.elts for n in target_names(e)}
    if isinstance(target, ast.Starred):
        return target_names(target.value)
    text = dotted(target)
    return {text} if text else set()
