"""Lists of transforms: what is in a Compose, in order, and which step makes the image float16."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import Ref, Scope, dotted, keyword, last_name, returns
from deploychain.audit.context import Context
from deploychain.audit.images import Images

COMPOSES = frozenset({"Compose", "Sequential", "ImageSequential", "AugmentationSequential"})
_CASTS = frozenset({"ConvertImageDtype", "ToDtype", "ConvertDtype", "convert_image_dtype", "to_dtype"})
_TELLING = frozenset({"Normalize", "ToTensor", "PILToTensor", "ToImage"})
_REORDERS = frozenset({"insert", "remove", "pop", "clear", "reverse", "sort"})


def composed(ctx: Context) -> Iterator[tuple[ast.AST, list[Ref]]]:
    """Every Compose of the file with its steps; lists of steps that no Compose of the file is seen to take."""
    taken: set[str] = set()
    for call in ctx.symbols.calls:
        if last_name(call.func) in COMPOSES and call.args:
            if len(call.args) == 1 and (name := dotted(call.args[0])) is not None:
                taken.add(name)
            yield call, steps(ctx, call)
    for node in ctx.symbols.nodes(ast.List):
        name = _kept_as(ctx, node)
        telling = any(isinstance(e, ast.Call) and last_name(e.func) in _TELLING for e in node.elts)
        if telling and len(node.elts) > 1 and (name is None or name not in taken):
            yield node, [_named(ctx, Ref(e, ctx.symbols.scope(node))) for e in node.elts]


def _kept_as(ctx: Context, node: ast.AST) -> str | None:
    parent = ctx.symbols.parent.get(node)
    return dotted(parent.targets[0]) if isinstance(parent, ast.Assign) else None


def steps(ctx: Context, call: ast.Call) -> list[Ref]:
    """The steps of a Compose: written there, in a list that is made once, or appended to one before."""
    scope = ctx.symbols.scope(call)
    if len(call.args) > 1 or isinstance(call.args[0], ast.Call):  # nn.Sequential(a, b)
        return [_named(ctx, Ref(a, scope)) for a in call.args]
    first = call.args[0]
    if isinstance(first, ast.ListComp | ast.GeneratorExp):
        return [_named(ctx, ref) for ref in _looked_up(ctx, first, scope)]
    name = dotted(first)
    parts: list[tuple[int, ast.expr, Scope]] = []
    if name is None:
        parts.append((0, first, scope))
    else:
        if _reordered(ctx, name):
            return []
        lists = [r for r in ctx.symbols.resolve(first, scope) if isinstance(r.expr, ast.List | ast.Tuple | ast.BinOp)]
        if len(lists) != 1:
            return []
        parts.append((lists[0].expr.lineno, lists[0].expr, lists[0].scope))
        parts += _added(ctx, name, scope)
    parts.sort(key=lambda part: part[0])
    return [_named(ctx, Ref(e, home)) for _, part, home in parts for e in _elements(part)]


def _looked_up(ctx: Context, made: ast.ListComp | ast.GeneratorExp, scope: Scope) -> Iterator[Ref]:
    """The steps of `[TABLE[name](**kw) for name, kw in STEPS]`: what the table holds under each name of the list."""
    entry = made.elt
    if len(made.generators) != 1 or not (isinstance(entry, ast.Call) and isinstance(entry.func, ast.Subscript)):
        return
    key, names = last_name(entry.func.slice), made.generators[0]
    target = names.target
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    place = next((i for i, part in enumerate(parts) if last_name(part) == key), None)
    lists = [r for r in ctx.symbols.resolve(names.iter, scope) if isinstance(r.expr, ast.List | ast.Tuple)]
    tables = [r for r in ctx.symbols.resolve(entry.func.value, scope) if isinstance(r.expr, ast.Dict)]
    if place is None or len(lists) != 1 or len(tables) != 1:
        return
    table = tables[0].expr
    held = {getattr(k, "value", None): v for k, v in zip(table.keys, table.values, strict=True)}  # type: ignore[attr-defined]
    for item in lists[0].expr.elts:  # type: ignore[attr-defined]
        named = item.elts[place] if isinstance(item, ast.Tuple) and len(item.elts) == len(parts) else item
        value = held.get(getattr(named, "value", None))
        if isinstance(value, ast.Lambda) and not isinstance(value.body, ast.Name):
            yield Ref(value.body, tables[0].scope)
        elif value is not None:  # a class, or a function, that the entry calls
            yield Ref(ast.copy_location(ast.Call(value, [], []), value), tables[0].scope)


def _elements(expr: ast.expr) -> list[ast.expr]:
    if isinstance(expr, ast.BinOp) and isinstance(expr.op, ast.Add):
        return [*_elements(expr.left), *_elements(expr.right)]
    if isinstance(expr, ast.IfExp):
        return _elements(expr.body)
    return list(expr.elts) if isinstance(expr, ast.List | ast.Tuple) else []


def _added(ctx: Context, name: str, scope: Scope) -> list[tuple[int, ast.expr, Scope]]:
    """`ops.append(x)`, `ops.extend([x])`, `ops += [x]`"""
    found: list[tuple[int, ast.expr, Scope]] = []
    for call in ctx.symbols.calls:
        if isinstance(call.func, ast.Attribute) and dotted(call.func.value) == name and len(call.args) == 1:
            if ctx.symbols.scope(call) is not scope:
                continue
            if call.func.attr == "append":
                made = ast.copy_location(ast.List([call.args[0]], ast.Load()), call)
                found.append((call.lineno, made, scope))
            elif call.func.attr == "extend":
                found.append((call.lineno, call.args[0], scope))
    for node in ctx.symbols.nodes(ast.AugAssign):
        if dotted(node.target) == name and ctx.symbols.scope(node) is scope:
            found.append((node.lineno, node.value, scope))
    return found


def _reordered(ctx: Context, name: str) -> bool:
    return any(
        isinstance(c.func, ast.Attribute) and c.func.attr in _REORDERS and dotted(c.func.value) == name
        for c in ctx.symbols.calls
    )


def _named(ctx: Context, ref: Ref) -> Ref:
    if not isinstance(ref.expr, ast.Name | ast.Attribute):
        return ref
    found = ctx.symbols.resolve(ref.expr, ref.scope)
    return found[0] if len(found) == 1 and isinstance(found[0].expr, ast.Call) else ref


def step_dtype(ctx: Context, images: Images, step: Ref) -> str | None:
    """The dtype that a step gives the image: "fp16", "fp32", or None where it leaves it alone."""
    expr, scope = step.expr, step.scope
    if not isinstance(expr, ast.Call):
        if isinstance(expr, ast.Attribute) and expr.attr == "half":  # torch.Tensor.half
            return "fp16"
        return _results_dtype(ctx, images, expr, scope)
    name = last_name(expr.func)
    if name in _CASTS:
        given = expr.args[0] if expr.args else keyword(expr, "dtype")
        dtype = images.dtype(given, scope) if given is not None else "fp32"
        return dtype if dtype in ("fp16", "fp32", "bf16") else None
    if name in ("ToTensor", "ToTensorV2"):
        return "fp32"
    if name in COMPOSES:
        return images.result_dtype(expr)
    if name == "Lambda" and expr.args:
        return _results_dtype(ctx, images, expr.args[0], scope)
    if name == "partial" and expr.args and last_name(expr.args[0]) in _CASTS:
        given = keyword(expr, "dtype") or (expr.args[1] if len(expr.args) > 1 else None)
        return images.dtype(given, scope) if given is not None else None
    if name == "methodcaller" and expr.args and ctx.symbols.const(expr.args[0], scope) == "half":
        return "fp16"
    cls = ctx.symbols.classes.get(name)
    for home in ctx.symbols.bases(cls):
        for method in ctx.symbols.function_scopes:
            if method.owner is home and method.name in ("__call__", "forward"):
                return _of_values(images, [Ref(v, method) for v in returns(method)])
    return None


def _results_dtype(ctx: Context, images: Images, function: ast.expr, scope: Scope) -> str | None:
    """What a lambda, or a function of this file, makes of the image."""
    if isinstance(function, ast.Attribute) and function.attr == "half":
        return "fp16"
    if isinstance(function, ast.Lambda):
        return _of_values(images, [Ref(function.body, scope)])
    for ref in ctx.symbols.resolve(function, scope):  # half = partial(convert_image_dtype, dtype=torch.half)
        if isinstance(ref.expr, ast.Call) and last_name(ref.expr.func) == "partial":
            return step_dtype(ctx, images, ref)
    found = ctx.symbols.local_function(function, scope)
    return _of_values(images, [Ref(v, found) for v in returns(found)]) if found is not None else None


def _of_values(images: Images, values: list[Ref]) -> str | None:
    for value in values:
        if images.made_half(value.expr, value.scope) is not None:
            return "fp16"
        if isinstance(value.expr, ast.Call) and images.cast(value.expr, value.scope) == "fp32":
            return "fp32"
    return None


def last_dtype(ctx: Context, images: Images, call: ast.Call) -> str | None:
    """The dtype of what a Compose, or one transform, gives back; None where no step of it sets one."""
    found: str | None = None
    if last_name(call.func) in _CASTS:
        return step_dtype(ctx, images, Ref(call, ctx.symbols.scope(call)))
    if last_name(call.func) in COMPOSES and call.args:
        for step in steps(ctx, call):
            found = step_dtype(ctx, images, step) or found
    return found


def normalises_first(ctx: Context, images: Images, call: ast.Call) -> bool:
    """A Compose that comes to Normalize before a step that makes the image float32."""
    for step in steps(ctx, call) if call.args else ():
        if isinstance(step.expr, ast.Call) and last_name(step.expr.func) == "Normalize":
            return True
        if step_dtype(ctx, images, step) == "fp32":
            return False
    return False
