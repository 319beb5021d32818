"""R28: the objects whose state a loop saves or loads: `{k: getattr(self, k).state_dict() for k in KEYS}`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.astnames import Binding, Scope, dotted, last_name, leaf
from deploychain.audit.context import Context
from deploychain.audit.tree import walk

_TELLING = re.compile(r"opt|scaler|amp", re.IGNORECASE)
# Several of one kind, by the name of the list: none of them is the scaler.
_OF_A_KIND = re.compile(
    r"^_*\w*(optim(izer)?s?|opts?|sched(uler)?s?|callbacks?|cbs?|hooks?|models?|nets?|networks?|metrics?|trackers?|loggers?|emas?|"
    r"(data_?)?loaders?|samplers?|discriminators?|generators?|losses|criteria|layers?|heads?|encoders?|experts?)$",
    re.IGNORECASE,
)
ANY = "?"  # among the names: what the loop goes through is not known


def own_name(text: str) -> str:
    """ "optimizer" of `state.optimizer` and `state["optimizer"]`; `opts["g"]` is no name of one."""
    name = leaf(text)
    return name if not text.endswith("']") or _TELLING.search(name) else ""


def of_a_kind(expr: ast.expr) -> bool:
    """`self.optimizers`, `self._callbacks`"""
    return isinstance(expr, ast.Name | ast.Attribute) and _OF_A_KIND.match(last_name(expr)) is not None


def looped_states(ctx: Context, method: str) -> Iterator[tuple[ast.Call, frozenset[str]]]:
    """(call, names) of every `x.state_dict()` in a loop over names or objects."""
    for call, scope in ctx.calls_named(method):
        if isinstance(call.func, ast.Attribute):
            names = _names(ctx, call.func.value, scope)
            if names is not None:
                yield call, frozenset(names)


def _names(ctx: Context, expr: ast.expr, scope: Scope) -> set[str] | None:
    """What a loop calls the object, or all that it goes through; None where it is no matter of a loop."""
    if isinstance(expr, ast.Name):
        bindings = ctx.symbols.bindings(expr.id, scope)
        if len(bindings) == 1 and not bindings[0].loop and bindings[0].place is None and bindings[0].value is not None:
            held = bindings[0].value  # `obj = getattr(self, name)`
            return _names(ctx, held, bindings[0].scope) if isinstance(held, ast.Call | ast.Subscript) else None
        loop = next((b for b in bindings if b.loop), None)
        if loop is None or _of_keywords(loop):
            return None
        return _gone_through(ctx, loop, of_keys=False)
    if isinstance(expr, ast.Call) and last_name(expr.func) == "getattr" and len(expr.args) > 1:
        key = expr.args[1]
    elif isinstance(expr, ast.Subscript):
        key = expr.slice
    else:
        return None
    if not isinstance(key, ast.Name):
        return None
    loop = next((b for b in ctx.symbols.bindings(key.id, scope) if b.loop), None)
    return {ANY} if loop is None else _gone_through(ctx, loop, of_keys=True)


def _of_keywords(loop: Binding) -> bool:
    """A loop over `**objects`: its calls say what these are."""
    arguments = getattr(loop.scope.node, "args", None)
    kwarg = arguments.kwarg if isinstance(arguments, ast.arguments) else None
    return kwarg is not None and any(
        isinstance(n, ast.Name) and n.id == kwarg.arg for n in walk(loop.value or loop.node)
    )


def _gone_through(ctx: Context, loop: Binding, *, of_keys: bool) -> set[str]:
    """The names of a loop, less what its conditions leave out."""
    source = loop.value
    method = last_name(source.func) if isinstance(source, ast.Call) else ""
    pairs = method == "items"
    if (
        method in ("items", "keys", "values")
        and isinstance(source, ast.Call)
        and isinstance(source.func, ast.Attribute)
    ):
        source = source.func.value
    found: set[str] = set()
    for ref in ctx.symbols.resolve(source, loop.scope) if source is not None else ():
        inside = ref.expr
        if isinstance(inside, ast.Dict) and None not in inside.keys:  # also an empty one that is filled later
            found |= {str(k.value) if isinstance(k, ast.Constant) else ANY for k in inside.keys}
            if not of_keys:
                found |= {own_name(dotted(v) or "") for v in inside.values} - {""}
            found |= _put_in(ctx, source, loop.scope)
        elif isinstance(inside, ast.List | ast.Tuple | ast.Set) and not pairs:
            found |= {str(e.value) if isinstance(e, ast.Constant) else own_name(dotted(e) or ANY) for e in inside.elts}
        else:
            callers = ctx.symbols.configs.callers(inside, ref.scope)  # `self.parts = parts` of `**parts`
            found |= _keywords(callers) if callers else _attributes(ctx, inside, ref.scope)
    if ANY in found and source is not None and of_a_kind(source):
        found = found - {ANY} | {last_name(source)}
    node = loop.node
    tests = [(t, True) for t in node.ifs] if isinstance(node, ast.comprehension) else []
    if isinstance(node, ast.For):  # `if name in SKIP: continue`
        tests = [(s.test, False) for s in node.body if isinstance(s, ast.If) and isinstance(s.body[0], ast.Continue)]
    for test, holds in tests:
        found = _passed(ctx, test, loop.scope, found or {ANY}, holds=holds)
    return found or {ANY}


def _keywords(calls: list[ast.Call]) -> set[str]:
    given = [k for c in calls for k in c.keywords]
    return {ANY if k.arg is None else k.arg for k in given} | {own_name(dotted(k.value) or "") for k in given} - {""}


def _attributes(ctx: Context, expr: ast.expr, scope: Scope) -> set[str]:
    """`vars(self)`, `self.__dict__`: what the methods of the class set."""
    if ast.unparse(expr) not in ("vars(self)", "self.__dict__"):
        return {ANY}
    found = {n for base in ctx.symbols.bases(ctx.symbols.class_of(scope)) for n in base.bindings}
    return {n.removeprefix("self.") for n in found if n.startswith("self.")} or {ANY}


def _put_in(ctx: Context, table: ast.expr | None, scope: Scope) -> set[str]:
    """`self.objects[name] = obj`, with the names that the calls of that method give."""
    text = dotted(table) if table is not None else None
    found: set[str] = set()
    for node in ctx.symbols.nodes(ast.Assign):
        target = node.targets[0]
        if not isinstance(target, ast.Subscript) or text is None or dotted(target.value) != text:
            continue
        where = ctx.symbols.scope(node)
        keys = [r.expr for r in ctx.symbols.resolve(target.slice, where)]
        found |= {k.value if isinstance(k, ast.Constant) and isinstance(k.value, str) else ANY for k in keys}
        values = [r.expr for r in ctx.symbols.resolve(node.value, where)]
        found |= {own_name(dotted(v) or "") for v in values} - {""}
    return found


def _passed(ctx: Context, test: ast.expr, scope: Scope, names: set[str], *, holds: bool) -> set[str]:
    """`if k in ("model", "optimizer")`, `if k != "scaler"`"""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return names
    given = ctx.symbols.const(test.comparators[0], scope)
    asked = {g for g in (given if isinstance(given, list) else [given]) if isinstance(g, str)}
    if not asked:
        return names
    if not isinstance(test.ops[0], ast.In | ast.Eq | ast.NotIn | ast.NotEq):
        return names
    return asked if isinstance(test.ops[0], ast.In | ast.Eq) is holds else names - asked
