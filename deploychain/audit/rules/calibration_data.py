"""Whether the data that a converter is calibrated with are numbers out of a random generator."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import Ref, Scope, last_name, returns
from deploychain.audit.context import Context
from deploychain.audit.tables import put_in
from deploychain.audit.values import words

_GENERATORS = words("default_rng RandomState Generator manual_seed seed")
_MAKES = words(
    "rand randn random random_sample uniform normal standard_normal randint integers rand_like randn_like zeros ones "
    "full empty zeros_like ones_like"
)
_KEEPS = words(
    "astype numpy cpu float half to reshape transpose clip copy contiguous round double clamp permute view tolist "
    "unsqueeze"
)
_PASSES_ON = words(
    "float32 ascontiguousarray asarray array clip abs tensor from_numpy stack concatenate str Path fspath list"
)
_SAVES = ("savez", "savez_compressed", "save")


def made_up(ctx: Context, expr: ast.expr, scope: Scope, depth: int = 8) -> bool:
    """All of it is random or constant: an array, a mapping or list of arrays, or the file that these were saved to."""
    if depth <= 0:
        return False
    if isinstance(expr, ast.Dict):
        values = [*expr.values, *put_in(ctx.symbols, expr, scope)]
        return bool(values) and all(made_up(ctx, v, ctx.symbols.scope(v), depth - 1) for v in values)
    if isinstance(expr, ast.DictComp):
        return made_up(ctx, expr.value, ctx.symbols.scope(expr.value), depth - 1)
    if isinstance(expr, ast.ListComp | ast.GeneratorExp):
        return made_up(ctx, expr.elt, ctx.symbols.scope(expr.elt), depth - 1)
    if isinstance(expr, ast.List | ast.Tuple):
        return bool(expr.elts) and all(made_up(ctx, e, scope, depth - 1) for e in expr.elts)
    if isinstance(expr, ast.BinOp):
        sides = [s for s in (expr.left, expr.right) if not isinstance(ctx.symbols.const(s, scope), int | float)]
        if sides and all(made_up(ctx, s, scope, depth - 1) for s in sides):
            return True
    if isinstance(expr, ast.Call) and (known := _array(ctx, expr, scope, depth)) is not None:
        return known
    refs = ctx.symbols.resolve(expr, scope)
    moved = [r for r in refs if r.expr is not expr]
    filled = list(put_in(ctx.symbols, expr, scope))
    if filled:  # `feed = {}`, `feed[name] = ...`; `x = np.zeros(shape)`, `x[i] = load(file)`
        if not all(made_up(ctx, v, ctx.symbols.scope(v), depth - 1) for v in filled):
            return False
        if all(isinstance(r.expr, ast.Dict) and not r.expr.values for r in moved):
            return True
    if len(moved) == len(refs) and all(made_up(ctx, r.expr, r.scope, depth - 1) for r in moved):
        return True
    written = list(_written(ctx, expr, scope))
    return bool(written) and all(made_up(ctx, v, ctx.symbols.scope(v), depth - 1) for v in written)


def _array(ctx: Context, call: ast.Call, scope: Scope, depth: int) -> bool | None:
    leaf, name = last_name(call.func), ctx.symbols.qual(call.func, scope) or ""
    if leaf in _MAKES and name.startswith(("numpy.", "torch.")):
        return True
    holder = call.func.value if isinstance(call.func, ast.Attribute) and not name else None
    if holder is not None and leaf in _MAKES:
        made = [r.expr for r in ctx.symbols.resolve(holder, scope)]
        return all(isinstance(m, ast.Call) and last_name(m.func) in _GENERATORS for m in made)
    if holder is not None and leaf in _KEEPS:
        return made_up(ctx, holder, scope, depth - 1)
    if leaf == "dict" and call.keywords and not call.args:
        return all(made_up(ctx, k.value, scope, depth - 1) for k in call.keywords)
    if leaf in _PASSES_ON and call.args:
        return made_up(ctx, call.args[0], scope, depth - 1)
    return None


def _written(ctx: Context, path: ast.expr, scope: Scope) -> Iterator[ast.expr]:
    """What is saved to the file of this name, by every call that does."""
    wanted = set(_names(ctx, path, scope))
    for call, home in ctx.calls_named(*_SAVES) if wanted else ():
        of_numpy = (ctx.symbols.qual(call.func, home) or "").startswith("numpy.")
        if of_numpy and call.args and wanted & set(_names(ctx, call.args[0], home)):
            yield from call.args[1:]
            yield from (k.value for k in call.keywords if k.arg != "allow_pickle")


def _names(ctx: Context, path: ast.expr, scope: Scope, depth: int = 4) -> Iterator[tuple[int, str]]:
    """What the path is written as: a word, or an expression of one function or class."""
    while isinstance(path, ast.Call) and last_name(path.func) in ("str", "Path", "fspath") and path.args:
        path = path.args[0]
    value = ctx.symbols.const(path, scope)
    if isinstance(value, str):
        yield 0, value
        return
    if isinstance(path, ast.Call):
        function = ctx.symbols.local_function(path.func, scope)
        for inner in returns(function) if function is not None and depth else ():
            yield from _names(ctx, inner, function, depth - 1)  # type: ignore[arg-type]
        return
    for ref in [Ref(path, scope), *ctx.symbols.resolve(path, scope)]:
        known = ctx.symbols.const(ref.expr, ref.scope)
        if isinstance(known, str):
            yield 0, known
        elif isinstance(ref.expr, ast.Name | ast.Attribute):
            yield id(ref.scope), ctx.str(ref.expr)
        elif isinstance(ref.expr, ast.BinOp | ast.JoinedStr):
            yield 1, ctx.str(ref.expr)
