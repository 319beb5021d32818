"""State dicts and single parameters that go to float16 and come back: R25's forms without a module call."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.astnames import Ref, Scope, dotted, last_name, returns, strip_module_calls
from deploychain.audit.branches import taken
from deploychain.audit.context import Context
from deploychain.audit.rules.half_statistics import is_half
from deploychain.audit.tree import walk

_KEEPS = frozenset({"cuda", "cpu", "to", "eval", "train", "contiguous", "clone", "detach", "data", "requires_grad_"})
_CASTS = frozenset({"half", "float", "double", "to", "type"})
_LOADS = frozenset({"load", "load_file", "load_state_dict_from_url", "safe_open"})
_SAVES = frozenset({"save", "save_file", "save_model", "save_pretrained", "dump"})
# What the rounded weights must not be the start of.
_QUANTISES = frozenset(
    {
        "prepare_qat",
        "prepare_qat_fx",
        "prepare_qat_pt2e",
        "prepare_pt2e",
        "prepare_fx",
        "prepare",
        "quantize",
        "quantize_",
        "auto_quantize",
        "calibrate",
        "fit",
        "backward",
        "train",
        "train_one_epoch",
        "finetune",
        "fine_tune",
        "qat",
        "ptq",
    }
)


def is_full(ctx: Context, expr: ast.AST, scope: Scope) -> bool:
    """`x.float()`, `x.double()`, `x.to(torch.float32)`."""
    if not (isinstance(expr, ast.Call) and isinstance(expr.func, ast.Attribute)):
        return False
    if expr.func.attr in ("float", "double"):
        return not expr.args
    if expr.func.attr not in ("to", "type", "astype"):
        return False
    given = [*expr.args, *(k.value for k in expr.keywords if k.arg == "dtype")]
    return any(not isinstance(e, ast.Constant) and ctx.amp.dtype(e, scope) in ("fp32", "fp64") for e in given)


def rounded(ctx: Context, expr: ast.AST) -> ast.expr | None:
    """The x of `x.half().float()`, `x.to(torch.float16).cpu().to(torch.float32)`; of a conditional either way."""
    if isinstance(expr, ast.IfExp):
        return rounded(ctx, expr.body) or rounded(ctx, expr.orelse)
    if isinstance(expr, ast.Call) and last_name(expr.func) in ("Parameter", "contiguous") and expr.args:
        return rounded(ctx, expr.args[0])
    scope = ctx.symbols.scope(expr)
    widened = False
    while isinstance(expr, ast.Call) and isinstance(expr.func, ast.Attribute):
        if widened and is_half(ctx, expr, scope):
            return expr.func.value
        if is_full(ctx, expr, scope):
            widened = True
        elif expr.func.attr not in _KEEPS:
            return None
        expr = expr.func.value
    return None


def casts_to(ctx: Context, expr: ast.AST, half: bool) -> bool:
    """The expression is a value cast to float16 (or to float32), in one way of a conditional at least."""
    if isinstance(expr, ast.IfExp):
        return casts_to(ctx, expr.body, half) or casts_to(ctx, expr.orelse, half)
    scope = ctx.symbols.scope(expr)
    while isinstance(expr, ast.Call) and isinstance(expr.func, ast.Attribute):
        if is_half(ctx, expr, scope) if half else is_full(ctx, expr, scope):
            return True
        if expr.func.attr not in _KEEPS:
            return False
        expr = expr.func.value
    return False


def parameters(ctx: Context) -> Iterator[tuple[ast.AST, str, int]]:
    """`p.data = p.data.half().float()`, `p.copy_(...)`, `m.weight.data = ...`, `sd[k] = sd[k].half().float()`."""
    for node in ctx.symbols.nodes(ast.Assign, ast.Call):
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
        elif last_name(node.func) == "copy_" and isinstance(node.func, ast.Attribute) and node.args:
            target, value = node.func.value, node.args[0]
        else:
            continue
        source = rounded(ctx, value)
        if source is None:
            continue
        name, text = _plain(ctx.str(target)), _plain(ctx.str(source))
        same = name == text and _is_weight(ctx, target)
        if same or (isinstance(target, ast.Subscript) and _item_of(ctx, source, target.value)):
            yield node, ctx.str(source), node.lineno
    yield from _two_loops(ctx)


def _two_loops(ctx: Context) -> Iterator[tuple[ast.AST, str, int]]:
    """`for p in model.parameters(): p.data = p.data.half()`, and the same with float() further down."""
    halved: dict[str, ast.Assign] = {}
    for node in sorted(ctx.symbols.nodes(ast.Assign), key=lambda n: n.lineno):
        target = node.targets[0]
        if not (isinstance(target, ast.Attribute) and target.attr == "data") or rounded(ctx, node.value) is not None:
            continue
        walked = walked_over(ctx, dotted(target.value) or "", ctx.symbols.scope(node))
        if walked is None:
            continue
        key = f"{id(ctx.symbols.scope(node))}{walked}"
        if casts_to(ctx, node.value, True):
            halved.setdefault(key, node)
        elif key in halved and casts_to(ctx, node.value, False):
            yield node, walked, halved[key].lineno


def _plain(text: str) -> str:
    return text.replace(".data", "").replace(".detach()", "")


def _is_weight(ctx: Context, target: ast.expr) -> bool:
    text = _plain(dotted(target) or "")
    if text.rpartition(".")[2] in ("weight", "bias", "running_mean", "running_var"):
        return True
    if isinstance(target, ast.Subscript):
        name = last_name(target.value).lower()
        return any(w in name for w in ("state", "sd", "weights", "params", "ckpt"))
    return walked_over(ctx, text, ctx.symbols.scope(target)) is not None


def walked_over(ctx: Context, name: str, scope: Scope) -> str | None:
    """`model.parameters()` of `for p in model.parameters()`."""
    for binding in ctx.symbols.bindings(name, scope):
        if binding.loop and binding.value is not None:
            for n in walk(binding.value):
                if isinstance(n, ast.Attribute) and n.attr in ("parameters", "named_parameters", "state_dict"):
                    return dotted(n.value) or "the model"
    return None


def _item_of(ctx: Context, source: ast.expr, table: ast.expr) -> bool:
    """The v of `for k, v in sd.items(): sd[k] = v...`."""
    for binding in ctx.symbols.bindings(dotted(source) or "", ctx.symbols.scope(source)):
        value = binding.value
        while isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.args:
            value = value.args[0]
        if not (binding.loop and isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)):
            continue
        if value.func.attr != "items":
            continue
        if dotted(table) and dotted(value.func.value) == dotted(table):
            return True
        if _is_state(ctx, value.func.value):  # into another table
            return True
    return False


def state_dicts(ctx: Context) -> Iterator[tuple[ast.AST, str, int]]:
    """State dicts that are halved and loaded back as float32: at once, through a variable, through a file."""
    halves: list[ast.AST] = []
    for node in ctx.symbols.nodes(ast.DictComp):
        if rounded(ctx, node.value) is not None:
            if _is_state(ctx, node.generators[0].iter):
                yield node, ctx.str(node.value), node.lineno
        elif casts_to(ctx, node.value, True) and _is_table(node.generators[0].iter):
            halves.append(node)
    for loop in (n for n in ctx.symbols.nodes(ast.For) if _is_table(n.iter)):
        for s in (n for part in loop.body for n in walk(part)):
            if not (isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Subscript)):
                continue
            if casts_to(ctx, s.value, True) and rounded(ctx, s.value) is None:
                halves.append(s)
    halves += [c for c in ctx.symbols.calls if last_name(c.func) == "state_dict" and _of_half(ctx, c)]
    if not halves:
        return
    for call in ctx.symbols.calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "load_state_dict" and call.args:
            yield from _loaded_back(ctx, call, halves)


def _of_half(ctx: Context, call: ast.Call) -> bool:
    """`model.half().state_dict()`"""
    return isinstance(call.func, ast.Attribute) and casts_to(ctx, call.func.value, True)


def _is_table(expr: ast.expr) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr in ("items", "state_dict", "keys") for n in walk(expr))


def _is_state(ctx: Context, expr: ast.expr) -> bool:
    """It goes over a state dict: by its name, or by what it was bound to."""
    for node in walk(expr):
        text = last_name(node).lower() if isinstance(node, ast.Name | ast.Attribute) else ""
        if "state" in text or text in ("sd", "weights", "ckpt", "checkpoint"):
            return True
        if isinstance(node, ast.Name) and any(
            isinstance(n, ast.Attribute) and n.attr == "state_dict"
            for r in ctx.symbols.resolve(node, ctx.symbols.scope(node))
            for n in walk(r.expr)
        ):
            return True
    return False


def _loaded_back(ctx: Context, call: ast.Call, halves: list[ast.AST]) -> Iterator[tuple[ast.AST, str, int]]:
    """`h = {k: v.half() ... model.state_dict()}`; `model.load_state_dict({k: v.float() ... h.items()})`."""
    assert isinstance(call.func, ast.Attribute)
    scope = ctx.symbols.scope(call)
    target = dotted(call.func.value) or ""
    for ref in ctx.symbols.resolve(call.args[0], scope):
        loaded, table = ref.expr, ref.expr
        widened = isinstance(loaded, ast.DictComp) and casts_to(ctx, loaded.value, False)
        if isinstance(loaded, ast.DictComp):
            items = loaded.generators[0].iter
            table = items.func.value if isinstance(items, ast.Call) and isinstance(items.func, ast.Attribute) else items
        origins = ctx.symbols.resolve(table, ref.scope)
        same = next((h for h in halves if any(r.expr is h for r in origins)), None)
        if same is not None and (target in _owners(same) or (widened and quantised_after(ctx, call, target))):
            yield call, target, getattr(same, "lineno", 0)
            return
        files = [f for r in origins if (f := _loaded_from(ctx, r)) is not None]
        if not files or not quantised_after(ctx, call, target):
            continue
        for half in halves:
            if widened or any(ast.dump(f) in _saved_to(ctx, half) for f in files):
                yield call, target, getattr(half, "lineno", 0)
                return


def _owners(halved: ast.AST) -> set[str]:
    return {
        dotted(n.value) or ""
        for n in walk(halved)
        if isinstance(n, ast.Attribute) and n.attr == "state_dict" and dotted(n.value)
    }


def _loaded_from(ctx: Context, ref: Ref, depth: int = 4) -> ast.expr | None:
    """The file of `torch.load(path)["model"]`, also of `checkpoint["model"]` where that was loaded before."""
    expr: ast.expr = ref.expr
    while isinstance(expr, ast.Subscript | ast.Attribute):
        expr = expr.value
    if isinstance(expr, ast.Call) and isinstance(expr.func, ast.Attribute) and expr.func.attr in ("get", "pop"):
        return _loaded_from(ctx, Ref(expr.func.value, ref.scope), depth - 1)
    if isinstance(expr, ast.Call) and last_name(expr.func) in _LOADS and expr.args:
        return expr.args[0]
    for found in ctx.symbols.resolve(expr, ref.scope) if isinstance(expr, ast.Name) and depth > 0 else ():
        if found.expr is not expr and (path := _loaded_from(ctx, found, depth - 1)) is not None:
            return path
    return None


def _saved_to(ctx: Context, halved: ast.AST) -> set[str]:
    """The files that a halved state dict is written to, as expressions."""
    found = set()
    for call in ctx.symbols.calls:
        if last_name(call.func) in _SAVES and len(call.args) > 1:
            scope = ctx.symbols.scope(call)
            if any(r.expr is halved or halved in walk(r.expr) for r in ctx.symbols.resolve(call.args[0], scope)):
                found.add(ast.dump(call.args[1]))
    return found


def quantised_after(ctx: Context, node: ast.AST, name: str) -> bool:
    """The function goes on to quantise or train the model, or the one that it returns the model to."""
    scope = ctx.symbols.scope(node)
    if _works_on(ctx, scope, getattr(node, "lineno", 0)):
        return True
    if any(dotted(strip_module_calls(r)) == name for r in returns(scope)) or name.startswith("self."):
        sites = ctx.symbols.call_sites(scope)
        return any(_works_on(ctx, ctx.symbols.scope(c), c.lineno) for c in sites)
    return False


def _works_on(ctx: Context, scope: Scope, line: int) -> bool:
    for call in ctx.symbols.calls:
        if call.lineno < line or ctx.symbols.scope(call) is not scope:
            continue
        leaf = last_name(call.func)
        if leaf in _QUANTISES and not (call.args and isinstance(call.args[0], ast.Constant)):
            return True
        if (ctx.symbols.qual(call.func, scope) or "").startswith("torch.optim."):
            return True
    return False


def handed_over(ctx: Context, names: re.Pattern[str], done: set[int]) -> Iterator[tuple[ast.AST, str, int]]:
    """`ctx["model"].half()` in one step, `ctx["model"].float()` in one that quantises: steps that share an object."""
    halved: dict[str, ast.Call] = {}
    for call in ctx.symbols.calls:
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in _CASTS:
            continue
        scope = ctx.symbols.scope(call)
        text = dotted(strip_module_calls(call.func.value)) or ""
        root = text.partition(".")[0].partition("[")[0]
        if root == text or root == "self" or root not in scope.parameters:
            continue
        if not names.search(text.removesuffix("']").replace("['", ".")):
            continue
        if is_half(ctx, call, scope):
            if not any(n.attr == "deepcopy" for n in walk(call) if isinstance(n, ast.Attribute)):
                halved.setdefault(text, call)
        elif is_full(ctx, call, scope) and text in halved and id(call) not in done:
            first = halved[text]
            other = ctx.symbols.scope(first)
            if other is scope or _set_again(ctx, text) or not quantised_after(ctx, call, text):
                continue
            done.add(id(call))
            yield call, text, first.lineno


def from_helper(ctx: Context, done: set[int]) -> Iterator[tuple[ast.AST, str, int]]:
    """`load_for_serving(cfg).float()` of a function, method or property of the file that gives the module half."""
    for call in ctx.symbols.calls:
        scope = ctx.symbols.scope(call)
        if id(call) in done or not isinstance(call.func, ast.Attribute) or not is_full(ctx, call, scope):
            continue
        module = strip_module_calls(call.func.value)
        cast = _half_in_helper(ctx, module, scope)
        name = dotted(module) or _bound_to(ctx, call)
        if cast is not None and quantised_after(ctx, call, name) and not _loaded_after(ctx, call, name):
            done.add(id(call))
            yield call, ctx.str(module), cast.lineno


def _half_in_helper(ctx: Context, module: ast.expr, scope: Scope) -> ast.Call | None:
    """The cast to float16 in another function, that which the module comes out of; with the defaults of the file."""
    found = None
    for ref in ctx.symbols.resolve(module, scope):
        if isinstance(module, ast.Name) and dotted(strip_module_calls(ref.expr)) == module.id and ref.scope is scope:
            continue  # `net = net.float()`
        if ref.scope is scope or "deepcopy" in ctx.str(ref.expr):
            return None
        chain = ref.expr
        cast: ast.Call | None = None
        while cast is None and isinstance(chain, ast.Call) and isinstance(chain.func, ast.Attribute):
            cast = chain if is_half(ctx, chain, ref.scope) else None
            if is_full(ctx, chain, ref.scope):
                return None
            chain = chain.func.value
        cast = cast or _cast_by_name(ctx, ref, dotted(chain) or _bound_to(ctx, ref.expr))
        if cast is None or (runs := taken(ctx.amp, cast)) is None:
            return None
        found = cast if runs else found
    return found


def _cast_by_name(ctx: Context, made: Ref, name: str) -> ast.Call | None:
    """`net = net.half()`, or that as a statement, in the function that makes `net` and goes on to return it."""
    last = None
    for call in ctx.symbols.calls if name else ():
        if not isinstance(call.func, ast.Attribute) or ctx.symbols.scope(call) is not made.scope:
            continue
        if dotted(strip_module_calls(call.func.value)) == name:
            half = is_half(ctx, call, made.scope)
            last = call if half else None if is_full(ctx, call, made.scope) else last
    return last


def _bound_to(ctx: Context, expr: ast.AST) -> str:
    """`net` of `net = Net().cuda()`"""
    node = ctx.symbols.parent.get(expr)
    while isinstance(node, ast.Call | ast.Attribute):
        node = ctx.symbols.parent.get(node)
    return (dotted(node.targets[0]) or "") if isinstance(node, ast.Assign) else ""


def _loaded_after(ctx: Context, call: ast.Call, name: str) -> bool:
    """The float32 weights are loaded into the module when it is float32 again."""
    return any(
        load.lineno >= call.lineno
        and ctx.symbols.scope(load) is ctx.symbols.scope(call)
        and isinstance(load.func, ast.Attribute)
        and dotted(strip_module_calls(load.func.value)) == name
        for load in ctx.symbols.calls_ending("load_state_dict")
    )


def _set_again(ctx: Context, text: str) -> bool:
    """The shared object is given another module, or its weights, somewhere."""
    for node in ctx.symbols.nodes(ast.Assign):
        if any(dotted(t) == text for t in node.targets) and not any(dotted(n) == text for n in walk(node.value)):
            return True
    return any(
        isinstance(c.func, ast.Attribute) and c.func.attr == "load_state_dict" and dotted(c.func.value) == text
        for c in ctx.symbols.calls
    )
