"""R04: the return value of scaler.step says nothing about a skip."""

# ruff: noqa: E501  (messages are one piece of text)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, annotated_fields, argument_for, dotted, last_name
from deploychain.audit.callees import call_sites, runs
from deploychain.audit.context import WARNING, Context, Rule
from deploychain.audit.finding import Finding
from deploychain.audit.inheritance import method_of
from deploychain.audit.tree import walk


def check(ctx: Context) -> Iterator[Finding]:
    for call, scope in ctx.calls_named("step"):
        if not (isinstance(call.func, ast.Attribute) and call.args and ctx.amp.is_scaler(call.func.value, scope)):
            continue
        if _own_class(ctx, call.func.value, scope) or len(call.args) > 1 or call.keywords:
            continue  # a closure's loss comes back as well: who asks for None there may mean that
        use = _use(ctx, call, scope, 7)
        if use is None:
            continue
        scaler, optimizer = ctx.str(call.func.value), ctx.str(call.args[0])
        yield ctx.finding(
            "R04", use, WARNING,
            f"`{ctx.str(call)}` returns what optimizer.step returns, which is None for a done step and for a skipped one: this "
            "test cannot tell them apart",
            f"before = {scaler}.get_scale()\n{scaler}.step({optimizer})\n{scaler}.update()\n"
            f"skipped = {scaler}.get_scale() < before  # get_scale() waits for the GPU: not on every step",
        )  # fmt: skip
    yield from _before_update(ctx)


def _own_class(ctx: Context, scaler: ast.expr, scope: Scope) -> bool:
    """A GradScaler of another package, by construction or annotation: nobody knows what its step returns."""
    for ref in ctx.symbols.resolve(scaler, scope):
        made: ast.AST | None = ref.expr.func if isinstance(ref.expr, ast.Call) else None
        if isinstance(ref.expr, ast.Name):
            function = ctx.symbols.parameter_scope(ref.expr.id, ref.scope)
            made = function.annotations.get(ref.expr.id) if function is not None else None
        for node in walk(made) if made is not None else ():
            name = ctx.symbols.qual(node, ref.scope) if isinstance(node, ast.Name | ast.Attribute) else None
            if name is not None and name.endswith("Scaler"):
                return not name.startswith(("torch", "fairscale."))
    return False


def _before_update(ctx: Context) -> Iterator[Finding]:
    """`before = scaler.get_scale(); scaler.step(opt); skipped = scaler.get_scale() < before`, and update() after that."""
    for node in ctx.symbols.nodes(ast.Compare) if "get_scale" in ctx.text else ():
        scope = ctx.symbols.scope(node)
        sides = (node.left, node.comparators[0])
        now = next((s for s in sides if _reads_scale(ctx, s, scope)), None)
        name = next((s for s in sides if isinstance(s, ast.Name)), None)
        if now is None or name is None or len(node.ops) != 1:
            continue
        bindings = [b for b in ctx.symbols.bindings(name.id, scope) if b.scope is scope]
        if len(bindings) != 1 or bindings[0].value is None or not _reads_scale(ctx, bindings[0].value, scope):
            continue
        scaler = ast.unparse(now.func.value)
        lines: dict[str, list[int]] = {"step": [], "update": []}
        for call, where in ctx.calls_named("step", "update"):
            if where is scope and isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == scaler:
                lines[call.func.attr].append(call.lineno)
        first, last = bindings[0].value.lineno, node.lineno
        if any(first < at < last for at in lines["step"]) and lines["update"] and min(lines["update"]) > last:
            yield ctx.finding(
                "R04", node, WARNING,
                f"the scale changes in {scaler}.update(), which comes after this: `{ctx.str(node)}` compares a number with itself and never sees "
                "a skipped step", f"{scaler}.update()\n{ctx.str(node)}  # after update()",
            )  # fmt: skip


def _reads_scale(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    return (
        isinstance(expr, ast.Call)
        and isinstance(expr.func, ast.Attribute)
        and expr.func.attr == "get_scale"
        and ctx.amp.is_scaler(expr.func.value, scope)
    )


def _use(ctx: Context, value: ast.expr, scope: Scope, depth: int, part: str | int | None = None) -> ast.expr | None:
    """Where a result is tested: at once, by the name or the list that holds it, or by a caller that it is returned to.

    part: the result is this entry of the value; "" for any entry.
    """
    if depth == 0:
        return None
    if part is None and (found := _tested(ctx, value)) is not None:
        return found
    if part == "" and (found := _asked_of_all(ctx, value)) is not None:
        return found
    parent = ctx.symbols.parent.get(value)
    if part is not None and isinstance(parent, ast.Subscript) and parent.value is value:
        index = parent.slice.value if isinstance(parent.slice, ast.Constant) else ""
        return _use(ctx, parent, scope, depth - 1) if index == part or "" in (index, part) else None
    if isinstance(part, str) and isinstance(parent, ast.Attribute) and parent.value is value and parent.attr == part:
        return _use(ctx, parent, scope, depth - 1)  # a field of a named tuple or dataclass
    if (
        isinstance(parent, ast.Call | ast.keyword)
        and part is None
        and (found := _handed(ctx, value, depth)) is not None
    ):
        return found
    if part == "" and isinstance(parent, ast.comprehension | ast.For) and parent.iter is value:
        names = [parent.target, *(parent.target.elts if isinstance(parent.target, ast.Tuple) else ())]
        holder: ast.AST = ctx.symbols.parent[parent] if isinstance(parent, ast.comprehension) else parent
        return _first(_use(ctx, n, scope, depth - 1) for t in names for n in _reads(holder, dotted(t)))
    if part == "" and isinstance(parent, ast.Attribute) and parent.attr in ("items", "values"):
        above = ctx.symbols.parent.get(parent)
        return _use(ctx, above, scope, depth, "") if isinstance(above, ast.Call) else None
    if isinstance(parent, ast.Tuple | ast.List) and part is None and isinstance(parent.ctx, ast.Load):
        return _of_tuple(ctx, parent, parent.elts.index(value), scope, depth)
    if isinstance(parent, ast.Dict) and part is None and value in parent.values:
        key = parent.keys[parent.values.index(value)]
        return _use(ctx, parent, scope, depth - 1, key.value if isinstance(key, ast.Constant) else "")  # type: ignore[arg-type]
    if isinstance(parent, ast.ListComp | ast.GeneratorExp | ast.DictComp) and part is None:
        return _use(ctx, parent, scope, depth - 1, "")
    if isinstance(parent, ast.Call) and part is None and last_name(parent.func) == "append" and value in parent.args:
        assert isinstance(parent.func, ast.Attribute)
        return _by_name(ctx, parent.func.value, parent, scope, depth, "")
    if isinstance(parent, ast.Assign | ast.AnnAssign | ast.NamedExpr) and parent.value is value:
        targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
        return _first(_assigned(ctx, t, parent, scope, depth, part) for t in targets)
    if isinstance(parent, ast.Return) and isinstance(scope.node, ast.FunctionDef):
        return _first(
            _use(ctx, site, ctx.symbols.scope(site), depth - 1, part) for site in call_sites(ctx.symbols, scope)
        )  # fmt: skip
    return None


def _handed(ctx: Context, value: ast.expr, depth: int) -> ast.expr | None:
    """`meter.record(outcome)`, `StepResult(loss, outcome)`: the parameter or the field that the result becomes."""
    call = ctx.symbols.parent.get(value)
    call = ctx.symbols.parent.get(call) if isinstance(call, ast.keyword) else call
    if not isinstance(call, ast.Call) or call.func is value:
        return None
    scope = ctx.symbols.scope(call)
    cls = ctx.symbols.classes.get(last_name(call.func))
    function = method_of(ctx.symbols, cls, "__init__") if cls is not None else runs(ctx.symbols, call, scope)
    if function is not None:
        names = [p for p in function.parameters if argument_for(call, function, p) is value]
        if len(names) != 1 or names[0] in function.bindings:
            return None
        return _first(_use(ctx, n, ctx.symbols.scope(n), depth - 1) for n in _reads(function.node, names[0]))
    if cls is None:
        return None
    given = [k.arg for k in call.keywords if k.value is value]
    fields = annotated_fields(cls)
    if value in call.args and call.args.index(value) < len(fields):
        given = [fields[call.args.index(value)]]
    return _use(ctx, call, scope, depth - 1, given[0]) if given and given[0] is not None else None


def _first(found: Iterator[ast.expr | None]) -> ast.expr | None:
    return next((f for f in found if f is not None), None)


def _of_tuple(ctx: Context, holder: ast.Tuple | ast.List, index: int, scope: Scope, depth: int) -> ast.expr | None:
    """`result, _ = scaler.step(opt), scaler.update()` is two assignments; else the tuple is followed."""
    parent = ctx.symbols.parent.get(holder)
    target = parent.targets[0] if isinstance(parent, ast.Assign) else None
    if isinstance(target, ast.Tuple) and len(target.elts) == len(holder.elts):
        return _by_name(ctx, target.elts[index], holder, scope, depth, None)
    return _use(ctx, holder, scope, depth - 1, index)


def _assigned(
    ctx: Context, target: ast.expr, place: ast.AST, scope: Scope, depth: int, part: str | int | None
) -> ast.expr | None:
    if isinstance(target, ast.Tuple) and isinstance(part, int):
        return _by_name(ctx, target.elts[part], place, scope, depth, None) if part < len(target.elts) else None
    if isinstance(target, ast.Subscript) and dotted(target) is None and part is None:
        return _by_name(ctx, target.value, place, scope, depth, "")
    return _by_name(ctx, target, place, scope, depth, part)


def _by_name(
    ctx: Context, target: ast.expr, place: ast.AST, scope: Scope, depth: int, part: str | int | None
) -> ast.expr | None:
    """The uses of a name from here to its next assignment; those of an attribute everywhere in the class."""
    name = dotted(target)
    if name is None:
        return None
    cls = ctx.symbols.class_of(scope) if name.startswith("self.") else None
    line = getattr(place, "lineno", 0)
    end = 10**9
    if part is None:
        bindings = ctx.symbols.bindings(name, scope)
        lines = [
            getattr(b.node, "lineno", 0) for b in bindings if getattr(b.node, "lineno", 0) > line and b.scope is scope
        ]
        end = min(lines, default=end)
    for node in _reads(scope.node, name):
        if line <= node.lineno < end and node is not target and not _inside(ctx, node, place):
            found = _use(ctx, node, ctx.symbols.scope(node), depth - 1, part)
            if found is not None:
                return found
    if cls is None:
        return None
    if any(b.scope is not scope and not _is_empty(b.value) for b in ctx.symbols.bindings(name, scope)):
        return None  # another method puts something else there
    outside = (n for n in _reads(cls.node, name) if ctx.symbols.scope(n) is not scope)
    return _first(_use(ctx, n, ctx.symbols.scope(n), depth - 1, part) for n in outside)


def _is_empty(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) or (isinstance(value, ast.List | ast.Dict) and not ast.unparse(value)[1:-1])


def _inside(ctx: Context, node: ast.AST, place: ast.AST) -> bool:
    above: ast.AST | None = node
    while above is not None and not isinstance(above, ast.stmt):
        if above is place:
            return True
        above = ctx.symbols.parent.get(above)
    return above is place and not isinstance(place, ast.If | ast.While)


def _reads(root: ast.AST, name: str | None) -> list[ast.expr]:
    found = [
        n
        for n in walk(root)
        if isinstance(n, ast.Name | ast.Attribute | ast.Subscript) and isinstance(n.ctx, ast.Load) and dotted(n) == name
    ]
    return sorted(found, key=lambda n: (n.lineno, n.col_offset)) if name else []


def _tested(ctx: Context, expr: ast.expr) -> ast.expr | None:
    """The comparison or condition that uses this expression as a truth value."""
    node: ast.AST = expr
    parent = ctx.symbols.parent.get(node)
    while isinstance(parent, ast.NamedExpr) and parent.value is node:
        node, parent = parent, ctx.symbols.parent.get(parent)
    if isinstance(parent, ast.Compare):
        others = [o for o in (parent.left, *parent.comparators) if o is not node]
        for other in others:
            each = other.elts if isinstance(other, ast.Tuple | ast.List | ast.Set) else [other]
            if any(isinstance(o, ast.Constant) and o.value in (None, True, False) for o in each):
                return expr
        return None
    if isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not):
        return expr
    if isinstance(parent, ast.If | ast.While | ast.IfExp | ast.Assert) and parent.test is node:
        return expr
    if isinstance(parent, ast.comprehension) and node in parent.ifs:
        return expr
    if isinstance(parent, ast.BoolOp):
        return expr
    if isinstance(parent, ast.Match) and any(isinstance(c.pattern, ast.MatchSingleton) for c in parent.cases):
        return expr
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.args and parent.args[0] is node:
        of_none = parent.func.id == "isinstance" and "None" in ast.unparse(parent.args[1])
        return expr if parent.func.id == "bool" or of_none else None
    return None


def _asked_of_all(ctx: Context, expr: ast.expr) -> ast.expr | None:
    """`None in results`, `results.count(None)`, `all(results)`."""
    parent = ctx.symbols.parent.get(expr)
    if isinstance(parent, ast.Compare) and isinstance(parent.left, ast.Constant) and parent.left.value is None:
        return expr
    if isinstance(parent, ast.Call) and last_name(parent.func) in ("any", "all") and expr in parent.args:
        return expr
    if isinstance(parent, ast.Attribute) and parent.attr in ("count", "index"):
        call = ctx.symbols.parent.get(parent)
        if (
            isinstance(call, ast.Call)
            and call.args
            and isinstance(call.args[0], ast.Constant)
            and call.args[0].value is None
        ):
            return expr
    return None


RULE = Rule(
    id="R04",
    name="skip-detect",
    title="A skipped step is looked for in the return value of scaler.step",
    how="code",
    belief="`scaler.step(optimizer) is None` means that the step was skipped.",
    truth=(
        "step() returns the return value of optimizer.step(), which is None when all is well. Only an optimiser whose step returns "
        "something makes the test work, by luck; a fused one even runs its step hooks on a skip. The sign of a skip is a lower "
        "scale after update()."
    ),
    experiment="The return value of scaler.step on a clean and on a skipped step, and the scale before and after.",
    bad="if scaler.step(optimizer) is None:\n    optimizer.zero_grad()",
    good="before = scaler.get_scale()\nscaler.step(optimizer)\nscaler.update()\nskipped = scaler.get_scale() < before",
    check=check,
    trigger=r"scaler|Scaler",
)
