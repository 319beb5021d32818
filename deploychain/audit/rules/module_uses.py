"""R28: where a module or a parameter takes part in a computation, also by the name of its output."""

from __future__ import annotations

import ast

from deploychain.audit.astnames import Scope, argument_for, dotted, last_name, returns, strip_module_calls
from deploychain.audit.context import Context
from deploychain.audit.inheritance import method_of
from deploychain.audit.tree import walk
from deploychain.audit.values import words

_NEUTRAL = words(
    "train eval cuda cpu to zero_grad state_dict load_state_dict requires_grad_ apply compile named_parameters modules "
    "children named_modules"
)
_PLAIN = words("print len save append debug info clip_grad_norm_ clip_grad_value_")


def uses(ctx: Context, name: str, scope: Scope, depth: int = 3) -> list[ast.expr] | None:
    """Expressions that compute with what has this name; None where it goes somewhere that is not followed."""
    home = ctx.symbols.class_of(scope) if name.startswith("self.") else scope
    root = home.node if home is not None else scope.node
    found: list[ast.expr] = []
    for node in walk(root):
        if not isinstance(node, ast.Name | ast.Attribute) or dotted(node) != name or not isinstance(node.ctx, ast.Load):
            continue
        use = _use(ctx, node)
        if use is None:
            use = _further(ctx, node, depth)
        if use is None:
            return None
        found += use
    base, _, part = name.rpartition(".")
    if base and base != "self":
        outputs = _outputs(ctx, base, part, root, scope)
        if outputs is None:
            return None
        found += outputs
    return found


def _use(ctx: Context, node: ast.expr) -> list[ast.expr] | None:
    """What one mention is: a use, nothing, or None where the object gets another name."""
    parent = ctx.symbols.parent.get(node)
    if isinstance(parent, ast.Attribute):
        call = ctx.symbols.parent.get(parent)
        if parent.attr == "parameters":
            return [] if isinstance(call, ast.Call) and _only_held(ctx, call) else None
        if parent.attr in _NEUTRAL:
            return None if _kept(ctx, node) else []
        return [node]
    if isinstance(parent, ast.Call):
        if parent.func is node:
            return [node]
        return [] if last_name(parent.func) in _PLAIN else None
    if isinstance(
        parent, ast.Assign | ast.AnnAssign | ast.Return | ast.keyword | ast.Starred | ast.For | ast.comprehension
    ):
        return None
    if isinstance(parent, ast.List | ast.Tuple):
        return [] if _only_held(ctx, parent) else None
    return [node]


def _kept(ctx: Context, node: ast.expr) -> str | None:
    """ "self.head" of `self.head = head.cuda()`"""
    above = ctx.symbols.parent.get(node)
    while isinstance(above, ast.Attribute | ast.Call | ast.Tuple):
        above = ctx.symbols.parent.get(above)
    if not isinstance(above, ast.Assign) or len(above.targets) != 1:
        return None
    targets, values = above.targets[0], above.value
    pairs = (
        zip(targets.elts, values.elts, strict=False)
        if isinstance(targets, ast.Tuple) and isinstance(values, ast.Tuple)
        else [(targets, values)]
    )
    own = (dotted(t) for t, v in pairs if strip_module_calls(v) is node)
    return next((t for t in own if t is not None and t != dotted(node)), None)


def _further(ctx: Context, node: ast.expr, depth: int) -> list[ast.expr] | None:
    """The uses under the name that the object has as an attribute, or in the function that it is given to."""
    scope = ctx.symbols.scope(node)
    name = _kept(ctx, node) if depth else None
    if name is not None:
        return uses(ctx, name, scope, depth - 1) if name.startswith("self.") else None
    call = ctx.symbols.parent.get(node)
    function = ctx.symbols.local_function(call.func, scope) if isinstance(call, ast.Call) and depth else None
    if function is None or not isinstance(call, ast.Call):
        return None
    given = [p for p in function.parameters if argument_for(call, function, p) is node]
    inside = uses(ctx, given[0], function, depth - 1) if len(given) == 1 else None
    return [node] if inside else inside  # where it is given, with the conditions of that place


def _only_held(ctx: Context, node: ast.AST) -> bool:
    """`net.parameters()` goes to an optimiser, is clipped, or is gone through to freeze it: no part of the loss."""
    parent = ctx.symbols.parent.get(node)
    while isinstance(parent, ast.List | ast.Tuple | ast.Dict | ast.Starred | ast.keyword | ast.BinOp) or (
        isinstance(parent, ast.Call) and last_name(parent.func) in ("list", "chain", "filter", "tuple")
    ):
        parent = ctx.symbols.parent.get(parent)
    if isinstance(parent, ast.For):
        return all(
            isinstance(s, ast.Assign | ast.Expr) and any(w in ast.unparse(s) for w in ("requires_grad", ".grad"))
            for s in parent.body
        )
    if isinstance(parent, ast.comprehension):
        return "numel" in ast.unparse(ctx.symbols.parent[parent])
    if not isinstance(parent, ast.Call):
        return False
    called = ctx.symbols.qual(parent.func) or ""
    return called.startswith("torch.optim.") or last_name(parent.func) in ("clip_grad_norm_", "clip_grad_value_")


def _outputs(ctx: Context, base: str, part: str, root: ast.AST, scope: Scope) -> list[ast.expr] | None:
    """Uses of what `edge` in the class of `net` makes, where `net(x)` is called; None where it is unclear."""
    holder = ast.parse(base, mode="eval").body
    ctx.symbols.kept.append(holder)
    cls = ctx.symbols.instance_class(holder, scope)
    forward = method_of(ctx.symbols, cls, "forward")
    place = _returned_at(ctx, cls, forward, part) if cls is not None and forward is not None else None
    if place is None:
        return None
    found: list[ast.expr] = []
    for call in walk(root):
        if not isinstance(call, ast.Call) or dotted(call.func) != base:
            if isinstance(call, ast.Name | ast.Attribute) and dotted(call) == base and _escapes(ctx, call):
                return None
            continue
        parent = ctx.symbols.parent.get(call)
        target = parent.targets[0] if isinstance(parent, ast.Assign) and len(parent.targets) == 1 else None
        if isinstance(target, ast.Tuple) and isinstance(place, int) and place < len(target.elts):
            name = dotted(target.elts[place])
        elif isinstance(target, ast.Name):
            name = f"{target.id}[{place!r}]"
            if any(isinstance(n, ast.Name) and n.id == target.id and isinstance(n.ctx, ast.Load)
                   and not isinstance(ctx.symbols.parent.get(n), ast.Subscript) for n in walk(root)):  # fmt: skip
                return None
        else:
            return None
        found += [n for n in walk(root) if isinstance(n, ast.expr) and dotted(n) == name and _is_read(n)]
    return found


def _is_read(node: ast.expr) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Load)


def _escapes(ctx: Context, node: ast.expr) -> bool:
    """The whole model goes to a function that may compute with it."""
    parent = ctx.symbols.parent.get(node)
    return isinstance(parent, ast.Call) and parent.func is not node and last_name(parent.func) not in _PLAIN


def _returned_at(ctx: Context, cls: Scope, forward: Scope, part: str) -> int | str | None:
    """The place in what `forward` returns that alone is made of `self.part`."""
    mentions = [
        n
        for n in walk(cls.node)
        if isinstance(n, ast.Attribute) and dotted(n) == f"self.{part}" and isinstance(n.ctx, ast.Load)
    ]
    results = [_entries(r) for r in returns(forward)]
    if len(mentions) != 1 or not results or not all(results):
        return None
    node: ast.AST = mentions[0]
    while node is not forward.node:
        for result in results:
            for place, entry in result.items():
                if node is entry:
                    others = [r[place] for r in results if r is not result and place in r]
                    return place if all(isinstance(o, ast.Constant) for o in others) else None
        parent = ctx.symbols.parent.get(node)
        if isinstance(parent, ast.Assign):
            name = dotted(parent.targets[0])
            reads = [
                n
                for n in walk(forward.node)
                if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
            ]
            if len(reads) != 1:
                return None
            node = reads[0]
            continue
        if parent is None:
            return None
        node = parent
    return None


def _entries(result: ast.expr) -> dict[int | str, ast.expr]:
    """The parts of a tuple or dictionary that is returned."""
    if isinstance(result, ast.Tuple):
        return dict(enumerate(result.elts))
    if not isinstance(result, ast.Dict):
        return {}
    keys = [k.value if isinstance(k, ast.Constant) else None for k in result.keys]
    return {k: v for k, v in zip(keys, result.values, strict=True) if isinstance(k, str)}
