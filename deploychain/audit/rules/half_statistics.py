"""Running statistics of BatchNorm that are put into float16 one by one: in a state dict, a buffer, an attribute."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, dotted, keyword, last_name
from deploychain.audit.batchnorm import BatchNorms
from deploychain.audit.batchnorm_tests import chosen
from deploychain.audit.context import Context
from deploychain.audit.tree import walk

_STATISTIC = re.compile(r"running_(mean|var)?$|running_(mean|var)\b|running_(stat|\(|\[)|^\.?running$")
_SELECTS = re.compile(r"bn|norm|weight|ndim|dim\(\)|in keep")
_LOADS = ("load", "load_file", "load_state_dict_from_url")
_GIVES = ("setattr", "register_buffer", "copy_", "__setattr__", "set_")
_TABLES = ("items", "state_dict", "named_buffers", "buffers", "values")


def is_half(ctx: Context, expr: ast.AST, scope: Scope) -> bool:
    """`x.half()`, `x.to(torch.float16)`, `x.astype(np.float16)`, or on one way of a conditional dtype."""
    if not (isinstance(expr, ast.Call) and isinstance(expr.func, ast.Attribute)):
        return False
    if expr.func.attr == "half":
        return not expr.args
    if expr.func.attr not in ("to", "type", "astype"):
        return False
    given = [*expr.args, *(k.value for k in expr.keywords if k.arg in ("dtype", None))]
    return any(_is_float16(ctx, e, scope) for e in given)


def _is_float16(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    if ctx.amp.dtype(expr, scope) == "fp16":
        return not isinstance(expr, ast.Constant) or expr.value in ("float16", "half")
    for ref in ctx.symbols.resolve(expr, scope):
        made = ref.expr
        named = made.args[1] if isinstance(made, ast.Call) and len(made.args) > 1 else None
        if named is not None and last_name(made.func) == "getattr":  # type: ignore[attr-defined]
            return ctx.symbols.const(named, ref.scope) in ("float16", "half")
        if isinstance(made, ast.Subscript):
            return _picked(ctx, made, ref.scope)
        name = ctx.symbols.qual(made, ref.scope)
        if name in ("torch.float16", "torch.half", "torch.HalfTensor", "torch.cuda.HalfTensor", "numpy.float16"):
            return True
    return False


def _picked(ctx: Context, expr: ast.Subscript, scope: Scope) -> bool:
    """`DTYPES[args.dtype]` with what the file says of the key."""
    key = ctx.symbols.const(expr.slice, scope)
    return any(
        isinstance(k, ast.Constant) and k.value == key and ctx.amp.dtype(v, table.scope) == "fp16"
        for table in ctx.symbols.resolve(expr.value, scope)
        if isinstance(table.expr, ast.Dict)
        for k, v in zip(table.expr.keys, table.expr.values, strict=True)
    )


def casts(ctx: Context, expr: ast.AST) -> ast.Call | None:
    """The cast to float16 that an expression ends in: `t.half()`, `t.to(torch.float16).contiguous()`."""
    if isinstance(expr, ast.IfExp):
        return casts(ctx, expr.body) or casts(ctx, expr.orelse)
    while isinstance(expr, ast.Call) and isinstance(expr.func, ast.Attribute):
        if is_half(ctx, expr, ctx.symbols.scope(expr)):
            return expr
        if expr.func.attr not in ("contiguous", "cpu", "clone", "detach", "cuda", "to", "numpy"):
            return None
        expr = expr.func.value
    return None


def halved_statistics(ctx: Context, norms: BatchNorms) -> Iterator[tuple[ast.AST, str]]:
    """Where statistics are stored in float16, and what is."""
    yield from _by_attribute(ctx)
    if "running" in ctx.text:
        yield from _by_key(ctx)
    yield from _whole_tables(ctx, norms)


def _stores(ctx: Context) -> Iterator[tuple[ast.expr, ast.expr]]:
    """(target, value) of every assignment, tuples taken apart; `x.copy_` and `register_buffer` are assignments too."""
    for node in ctx.symbols.nodes(ast.Assign):
        for target in node.targets:
            if (
                isinstance(target, ast.Tuple)
                and isinstance(node.value, ast.Tuple)
                and len(target.elts) == len(node.value.elts)
            ):
                yield from zip(target.elts, node.value.elts, strict=True)
            else:
                yield target, node.value


def _by_attribute(ctx: Context) -> Iterator[tuple[ast.AST, str]]:
    """`bn.running_var = bn.running_var.half()`, `sd["bn.running_var"] = ...`, `register_buffer("running_var", ...)`."""
    if "running_" not in ctx.text:
        return
    for target, value in _stores(ctx):
        name = (dotted(target) or "").removesuffix(".data").rstrip("']")
        if _STATISTIC.search(name.rpartition(".")[2]) and (casts(ctx, value) or _made_float16(ctx, value)):
            yield value, f"`{ctx.str(target)}` is"
    for call in ctx.symbols.calls:
        if last_name(call.func) == "register_buffer" and len(call.args) > 1 and isinstance(call.args[0], ast.Constant):
            name = str(call.args[0].value)
            if _STATISTIC.search(name) and (casts(ctx, call.args[1]) or _made_float16(ctx, call.args[1])):
                yield call, f"`{name}` is"


def _made_float16(ctx: Context, value: ast.expr) -> bool:
    """`torch.zeros(n, dtype=torch.float16)`"""
    if not isinstance(value, ast.Call):
        return False
    scope = ctx.symbols.scope(value)
    dtype = keyword(value, "dtype")
    return (
        dtype is not None
        and (ctx.symbols.qual(value.func, scope) or "").startswith("torch.")
        and ctx.amp.dtype(dtype, scope) == "fp16"
    )


def _by_key(ctx: Context) -> Iterator[tuple[ast.AST, str]]:
    """`if k.endswith("running_var"): sd[k] = v.half()`, as statements and as conditional expressions."""
    for node in ctx.symbols.nodes(ast.If, ast.IfExp):
        named = _asks_for_statistics(ctx, node.test)
        if named is None:
            continue
        branch = node.body if named else node.orelse
        for part in branch if isinstance(branch, list) else [branch]:
            for expr in walk(part):
                if is_half(ctx, expr, ctx.symbols.scope(expr)) and not _only_compared(ctx, expr):
                    yield expr, "the running statistics of BatchNorm are"
                    break


def _asks_for_statistics(ctx: Context, test: ast.expr) -> bool | None:
    """True: the test holds for the keys of running statistics; False: it leaves them out; None: neither."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _asks_for_statistics(ctx, test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        found = [f for f in (_asks_for_statistics(ctx, v) for v in test.values) if f is not None]
        return found[0] if found and (found[0] is True or isinstance(test.op, ast.And)) else None
    words: list[str] = []
    for node in walk(test):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words.append(node.value)
        elif isinstance(node, ast.Name):
            value = ctx.symbols.const(node, ctx.symbols.scope(node))
            words += [w for w in (value if isinstance(value, list) else [value]) if isinstance(w, str)]
            words += _chosen_by(ctx, node)
    if not any(_STATISTIC.search(w) for w in words):
        return None
    compared = [n for n in walk(test) if isinstance(n, ast.Compare)]
    return not any(isinstance(op, ast.NotIn | ast.NotEq) for n in compared for op in n.ops)


def _chosen_by(ctx: Context, name: ast.Name) -> list[str]:
    """The strings in `stats = {k for k in sd if "running_" in k}`."""
    bindings = ctx.symbols.bindings(name.id, ctx.symbols.scope(name))
    return [
        n.value
        for b in bindings
        if isinstance(b.value, ast.SetComp | ast.ListComp | ast.DictComp)
        for test in (t for g in b.value.generators for t in g.ifs)
        for n in walk(test)
        if isinstance(n, ast.Constant) and isinstance(n.value, str)
    ]


def _only_compared(ctx: Context, expr: ast.AST) -> bool:
    parent = ctx.symbols.parent.get(expr)
    while isinstance(parent, ast.Call | ast.Attribute):
        if isinstance(parent, ast.Attribute) and parent.attr in ("float", "isinf", "isfinite", "isnan"):
            return True
        parent = ctx.symbols.parent.get(parent)
    return isinstance(parent, ast.Compare | ast.BinOp)


def _whole_tables(ctx: Context, norms: BatchNorms) -> Iterator[tuple[ast.AST, str]]:
    """`{k: v.half() for k, v in model.state_dict().items()}` and loops over them, of a model that has BatchNorm."""
    for node in ctx.symbols.nodes(ast.DictComp):
        cast = casts(ctx, node.value)
        if cast is None or len(node.generators) != 1 or _leaves_out(ctx, cast, node):
            continue
        if any(_asks_for_statistics(ctx, t) is not None for t in node.generators[0].ifs):
            continue
        where = _table_of(ctx, norms, node.generators[0].iter)
        if where is not None:
            yield node, f"a state dict with the running statistics of BatchNorm ({where}) is"
    for loop in ctx.symbols.nodes(ast.For):
        where = None
        for expr in (n for s in loop.body for n in walk(s)):
            if not is_half(ctx, expr, ctx.symbols.scope(expr)) or _only_compared(ctx, expr):
                continue
            if _leaves_out(ctx, expr, loop) or not _is_stored(ctx, expr) or chosen(ctx.symbols, expr) is False:
                continue
            where = where or _table_of(ctx, norms, loop.iter)
            if where is not None:
                yield expr, f"a state dict with the running statistics of BatchNorm ({where}) is"
                break


def _is_stored(ctx: Context, expr: ast.AST) -> bool:
    """It is given to something that lasts: `sd[k] = ...`, `b.data = ...`, `setattr(m, name, ...)`, `b.copy_(...)`."""
    node: ast.AST | None = expr
    while node is not None and not isinstance(node, ast.stmt):
        if isinstance(node, ast.Call) and node is not expr and last_name(node.func) in _GIVES:
            return True
        node = ctx.symbols.parent.get(node)
    if not isinstance(node, ast.Assign):
        return False
    target = node.targets[0]
    if not isinstance(target, ast.Name):
        return isinstance(target, ast.Subscript | ast.Attribute)
    loop = ctx.symbols.parent.get(node)  # `value = value.half()`, then `small[key] = value`
    while loop is not None and not isinstance(loop, ast.For):
        loop = ctx.symbols.parent.get(loop)
    return any(
        isinstance(s, ast.Assign)
        and isinstance(s.targets[0], ast.Subscript)
        and s.lineno > node.lineno
        and any(isinstance(n, ast.Name) and n.id == target.id for n in walk(s.value))
        for part in (loop.body if loop is not None else ())
        for s in walk(part)
    )


def _leaves_out(ctx: Context, expr: ast.AST, top: ast.AST) -> bool:
    """Tests on the key around the cast, or an earlier `continue`, take the statistics out."""
    node = expr
    while node is not top:
        parent = ctx.symbols.parent[node]
        test = parent.test if isinstance(parent, ast.If | ast.IfExp) and node is not parent.test else None
        if test is not None and (_asks_for_statistics(ctx, test) is not None or _SELECTS.search(ctx.str(test))):
            return True
        node = parent
    return any(
        isinstance(s, ast.If) and _asks_for_statistics(ctx, s.test) and any(isinstance(b, ast.Continue) for b in s.body)
        for s in getattr(top, "body", [])
        if isinstance(top, ast.For)
    )


def _table_of(ctx: Context, norms: BatchNorms, expr: ast.expr) -> str | None:
    """Where the BatchNorm of the model is seen whose state dict, or buffers, an expression walks over."""
    queue: list[tuple[ast.AST, Scope]] = [(expr, ctx.symbols.scope(expr))]
    for _ in range(8):
        if not queue:
            break
        node, scope = queue.pop(0)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("state_dict", "named_buffers", "buffers"):
                return norms.where(node.func.value, scope)
            if node.func.attr in _TABLES or node.func.attr in ("copy", "keys"):
                queue.append((node.func.value, scope))
            elif node.func.attr in _LOADS and (named := norms.by_file(node, scope)) is not None:
                return named
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
            queue.append((node.args[0], scope))
        elif isinstance(node, ast.Attribute) and node.attr == "_buffers":
            return norms.where(node.value, scope)
        elif isinstance(node, ast.Name | ast.Attribute):
            queue += [(r.expr, r.scope) for r in ctx.symbols.resolve(node, scope) if r.expr is not node]
    return _spoken_of(ctx, expr)


def _spoken_of(ctx: Context, table: ast.expr) -> str | None:
    """A state dict whose running statistics are counted or looked up elsewhere, and not to leave them out."""
    if "running_" not in ctx.text or not _is_weights(table):
        return None
    for node in ctx.symbols.nodes(ast.Compare, ast.Call):
        words = [node.left] if isinstance(node, ast.Compare) else node.args
        said = any(
            isinstance(w, ast.Constant) and isinstance(w.value, str) and _STATISTIC.search(w.value) for w in words
        )
        if said and not _decides(ctx, node):
            return f"line {node.lineno}"
    return None


def _is_weights(table: ast.expr) -> bool:
    names = [last_name(n).lower() for n in walk(table) if isinstance(n, ast.Name | ast.Attribute)]
    return any(n in ("sd", "weights", "ckpt", "checkpoint", "params") or "state" in n for n in names)


def _decides(ctx: Context, node: ast.AST) -> bool:
    """The test chooses what happens to a tensor, or says that there are none: it is no count and no assert."""
    counted = False
    while (parent := ctx.symbols.parent.get(node)) is not None and not isinstance(node, ast.stmt):
        if isinstance(node, ast.UnaryOp):
            return True
        counted = counted or (isinstance(parent, ast.Call) and last_name(parent.func) in ("sum", "any", "len", "print"))
        node = parent
    return not (isinstance(node, ast.Assert | ast.Expr) or (counted and isinstance(node, ast.Assign)))
