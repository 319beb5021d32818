"""R16: AlphaDropout belongs after SELU."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, last_name
from deploychain.audit.context import WARNING, Context, Rule
from deploychain.audit.finding import Finding
from deploychain.audit.tree import walk

_NAMES = frozenset({"AlphaDropout", "FeatureAlphaDropout"})
_FUNCTIONS = frozenset({"alpha_dropout", "feature_alpha_dropout", "alpha_dropout_", "feature_alpha_dropout_"})
_BETWEEN = re.compile(r"^(Lazy)?(Linear|Conv\dd|BatchNorm\dd|Flatten|Identity|LayerNorm|Unflatten|\w*Pool\dd)$")
_NOTHING = "nothing that is a SELU"


def check(ctx: Context) -> Iterator[Finding]:
    if "class AlphaDropout" in ctx.text or "def alpha_dropout" in ctx.text:
        return  # where it is defined
    kinds = _NAMES | {c.name for c in ctx.symbols.classes.values() if _subclasses(ctx, c)}
    for call in ctx.symbols.calls:
        name = ctx.symbols.qual(call.func) or ""
        if name.rpartition(".")[2] in _FUNCTIONS and name.startswith("torch."):
            if not _selu_near(ctx, call) or _fed_directly(call):
                yield _finding(ctx, call, _NOTHING)
        elif (last_name(call.func) in kinds and (name.startswith("torch.") or name == "")) or _picked(ctx, call):
            home = ctx.symbols.scope(call)
            if home.owner is None and ctx.symbols.registries.left_out(home):
                continue
            fed = _sequential(ctx, call, kinds) or _where_it_goes(ctx, home, kinds)
            if fed is None and not _selu_near(ctx, call):
                fed = _NOTHING
            if fed is not None and fed != "SELU":
                yield _finding(ctx, call, fed)
    for node in ctx.symbols.nodes(ast.Name, ast.Attribute):
        if last_name(node) not in _NAMES or not _chosen(ctx, node) or _selu_near(ctx, node):
            continue
        if (ctx.symbols.qual(node) or "").startswith("torch."):
            yield _finding(ctx, node, _NOTHING)


def _subclasses(ctx: Context, cls: Scope) -> bool:
    return any(
        last_name(b) in _NAMES and (ctx.symbols.qual(b, cls) or "").startswith("torch.")
        for b in getattr(cls.node, "bases", [])
    )


def _picked(ctx: Context, call: ast.Call) -> bool:
    """`DROPOUT[kind](p)` and `getattr(nn, name)(p)` with what the file says of the name."""
    func, scope = call.func, ctx.symbols.scope(call)
    if isinstance(func, ast.Call) and last_name(func.func) == "getattr" and len(func.args) > 1:
        return ctx.symbols.const(func.args[1], scope) in _NAMES
    if not isinstance(func, ast.Subscript):
        return False
    key = ctx.symbols.const(func.slice, scope)
    return any(
        isinstance(k, ast.Constant) and k.value == key and last_name(v) in _NAMES
        for table in ctx.symbols.resolve(func.value, scope)
        if isinstance(table.expr, ast.Dict)
        for k, v in zip(table.expr.keys, table.expr.values, strict=True)
    )


def _chosen(ctx: Context, node: ast.AST) -> bool:
    """The class itself is chosen here: by a condition, as a default, as an argument, under another name, in a partial."""
    parent = ctx.symbols.parent.get(node)
    if isinstance(parent, ast.IfExp | ast.arguments | ast.Assign | ast.AnnAssign):
        return getattr(parent, "annotation", None) is not node
    if isinstance(parent, ast.keyword):
        return True
    return isinstance(parent, ast.Call) and last_name(parent.func) == "partial" and node in parent.args


def _sequential(ctx: Context, call: ast.Call, kinds: frozenset[str] | set[str]) -> str | None:
    """The activation before the AlphaDropout in a list of layers; None where there is no list, or it is not clear."""
    parent = ctx.symbols.parent.get(call)
    if isinstance(parent, ast.Call):
        items = parent.args
    elif isinstance(parent, ast.List | ast.Tuple):
        items = parent.elts
    else:
        return None
    if call not in items:
        return None
    for item in reversed(items[: items.index(call)]):
        if not isinstance(item, ast.Call | ast.IfExp | ast.Name):
            continue
        made = [r for r in ctx.symbols.resolve(item, ctx.symbols.scope(item)) if isinstance(r.expr, ast.Call)]
        names = [n for r in made for n in _classes(ctx, r.expr.func, r.scope)]  # type: ignore[attr-defined]
        if "SELU" in names:
            return "SELU"
        leaf = names[0] if names else ""
        if leaf and not _BETWEEN.match(leaf) and leaf not in kinds:
            return leaf if leaf[:1].isupper() else None
    return None


def _where_it_goes(ctx: Context, function: Scope, kinds: frozenset[str] | set[str]) -> str | None:
    """The activation before the AlphaDropout that a helper makes, where every call stands in a list of layers."""
    if function.owner is not None or not function.name:
        return None
    fed = {_sequential(ctx, site, kinds) for site in ctx.symbols.call_sites(function)}
    return fed.pop() if len(fed) == 1 else None


def _classes(ctx: Context, func: ast.expr, scope: Scope) -> list[str]:
    """The names of the classes that a called expression may stand for, parameters with their defaults."""
    names = [last_name(r.expr) for r in ctx.symbols.resolve(func, scope)]
    if isinstance(func, ast.Name):
        function = ctx.symbols.parameter_scope(func.id, scope)
        arguments = getattr(function.node, "args", None) if function is not None else None
        if arguments is not None:
            every = [*arguments.posonlyargs, *arguments.args]
            for parameter, default in zip(
                every[len(every) - len(arguments.defaults) :], arguments.defaults, strict=True
            ):
                if parameter.arg == func.id:
                    names.append(last_name(default))
    return [n for n in names if n]


def _fed_directly(call: ast.Call) -> bool:
    """`F.alpha_dropout(F.gelu(x))`"""
    first = call.args[0] if call.args else None
    return isinstance(first, ast.Call) and last_name(first.func).rstrip("_") in (
        "relu", "gelu", "silu", "tanh", "elu", "leaky_relu", "softmax", "hardswish", "mish", "sigmoid",
    )  # fmt: skip


def _selu_near(ctx: Context, node: ast.AST) -> bool:
    """A SELU in the same class (with its bases) or function, in those that call it, or anywhere where the place is no function."""
    scope = ctx.symbols.scope(node)
    owner = ctx.symbols.class_of(scope)
    places = [home.node for home in ctx.symbols.bases(owner)] if owner is not None else [scope.node]
    if owner is None and not scope.is_class:
        for site in ctx.symbols.call_sites(scope):
            caller = ctx.symbols.class_of(ctx.symbols.scope(site))
            places.append(caller.node if caller is not None else ctx.symbols.scope(site).node)
    return any(
        (isinstance(n, ast.Name | ast.Attribute) and last_name(n) in ("SELU", "selu", "selu_"))
        or (isinstance(n, ast.Constant) and isinstance(n.value, str) and n.value.lower() == "selu")
        for place in places
        for n in walk(place)
    )


def _finding(ctx: Context, call: ast.AST, fed: str) -> Finding:
    return ctx.finding(
        "R16", call, WARNING,
        f"AlphaDropout keeps the mean and variance of SELU outputs only, and it is fed by {fed}: after a ReLU the mean goes from "
        "0.40 to 0.33, the variance from 0.34 to 0.61, and dropped units become -1.46 instead of 0",
        "nn.Dropout(p)  # its keep rate is the same in float16 and float32",
    )  # fmt: skip


RULE = Rule(
    id="R16",
    name="alpha-dropout",
    title="AlphaDropout without SELU",
    how="code, model",
    belief="Dropout's keep rate shifts in float16: use AlphaDropout or turn dropout off under autocast.",
    truth=(
        "50 million draws keep 0.89994 in float32, float16 and bfloat16, with the same mask for the same seed. AlphaDropout after "
        "a ReLU changes the distribution (mean 0.398 to 0.330, variance 0.34 to 0.61, minimum -1.46) and hurt a toy regression "
        "from 0.15 to 0.37."
    ),
    experiment="Dropout's keep rate in three dtypes; AlphaDropout after ReLU and after SELU.",
    bad="nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.AlphaDropout(0.1))",
    good="nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1))",
    check=check,
    trigger=r"AlphaDropout|alpha_dropout",
)
