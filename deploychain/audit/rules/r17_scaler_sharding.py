"""R17: who may touch the scale when there are several processes."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, dotted, last_name
from deploychain.audit.context import ERROR, Context, Rule
from deploychain.audit.finding import Finding

_FSDP1 = frozenset({"torch.distributed.fsdp.FullyShardedDataParallel", "fairscale.nn.FullyShardedDataParallel"})
_DDP = frozenset({"torch.nn.parallel.DistributedDataParallel", "torch.nn.parallel.distributed.DistributedDataParallel"})
_PRIVATE = frozenset(
    {"_scale", "_growth_tracker", "_init_scale", "_growth_factor", "_backoff_factor", "_growth_interval"}
)
_COLLECTIVES = frozenset({"all_reduce", "broadcast", "reduce", "all_gather"})
_IN_PLACE = frozenset({"fill_", "copy_", "mul_", "div_", "zero_", "set_", "clamp_"})


def check(ctx: Context) -> Iterator[Finding]:
    yield from _private(ctx)
    yield from _fsdp(ctx)
    yield from _outside_ddp(ctx)


def _private_of(ctx: Context, expr: ast.AST, scope: Scope) -> str | None:
    if isinstance(expr, ast.Attribute) and expr.attr in _PRIVATE and ctx.amp.is_scaler(expr.value, scope):
        return ctx.str(expr)
    if isinstance(expr, ast.Attribute) and expr.attr in _PRIVATE and "scaler" in (dotted(expr.value) or "").lower():
        # any object that is called a scaler and has these very attributes
        return (
            ctx.str(expr)
            if ctx.amp.scaler_calls or (dotted(expr.value) or "").rpartition(".")[2] in ("scaler", "grad_scaler")
            else None
        )
    return None


def _alias_of(ctx: Context, expr: ast.expr, scope: Scope) -> str | None:
    """The private tensor itself, or a name that was only ever bound to it: what is done in place is done to it."""
    name = _private_of(ctx, expr, scope)
    text = dotted(expr)
    if name is not None or text is None:
        return name
    bindings = ctx.symbols.bindings(text, scope)
    if len(bindings) != 1 or bindings[0].value is None or bindings[0].place is not None:
        return None
    if bindings[0].loop:
        each = bindings[0].value.elts if isinstance(bindings[0].value, ast.Tuple | ast.List) else []
        return next((name for e in each if (name := _private_of(ctx, e, bindings[0].scope))), None)
    return _private_of(ctx, bindings[0].value, bindings[0].scope)


def _private(ctx: Context) -> Iterator[Finding]:
    if "._" not in ctx.text:
        return
    for node in ctx.symbols.nodes(ast.Assign, ast.AugAssign, ast.Call):
        scope = ctx.symbols.scope(node)
        if isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                inside_own_class = isinstance(target, ast.Attribute) and dotted(target.value) == "self"
                name = _private_of(ctx, target, scope)
                if name and not inside_own_class:
                    yield _touched(ctx, node, name, "is written")
        elif isinstance(node, ast.Call):
            leaf = last_name(node.func)
            if leaf in _COLLECTIVES:
                for arg in node.args[:2]:
                    base = arg
                    while isinstance(base, ast.Call) and isinstance(base.func, ast.Attribute):
                        base = base.func.value
                    name = _alias_of(ctx, base, scope)
                    if name is not None:
                        yield _touched(ctx, node, name, f"goes through {leaf}")
            elif isinstance(node.func, ast.Attribute) and node.func.attr == "_init_scale":
                name = _private_of(ctx, node.func, scope)
                if name:
                    yield ctx.finding(
                        "R17", node, ERROR, "`_init_scale` is a number, not a method: TypeError: 'float' object is not callable",
                        f"{name.rpartition('.')[0]}.update(new_scale=65536.0)",
                    )  # fmt: skip
            elif leaf in _IN_PLACE and isinstance(node.func, ast.Attribute):
                name = _alias_of(ctx, node.func.value, scope)
                if name is not None:
                    yield _touched(ctx, node, name, "is written")


def _touched(ctx: Context, node: ast.AST, name: str, what: str) -> Finding:
    scaler = name.rpartition(".")[0]
    return ctx.finding(
        "R17", node, ERROR,
        f"private state `{name}` {what}: plain DDP needs nothing (all ranks see the same gradients, so they skip together); where "
        "ranks differ, equal scales hide that some ranks stepped and others did not, and the weights drift apart",
        f"for found in {scaler}._found_inf_per_device(optimizer).values():  # between unscale_ and step, outside DDP only\n"
        "    dist.all_reduce(found, op=dist.ReduceOp.MAX)",
    )  # fmt: skip


def _fsdp(ctx: Context) -> Iterator[Finding]:
    wraps = [c for c, _ in ctx.calls(*_FSDP1)]
    if not wraps or "ShardedGradScaler" in ctx.text:
        return
    for call in ctx.amp.scaler_calls:
        if ctx.amp.call_enabled(call, ctx.symbols.scope(call)) is False:
            continue
        yield ctx.finding(
            "R17", call, ERROR,
            f"a plain GradScaler with FullyShardedDataParallel (line {wraps[0].lineno}): each rank sees only its shard, so one rank can "
            "skip a step that the others make, and the shards of one weight drift apart",
            "from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler\nscaler = ShardedGradScaler()",
        )  # fmt: skip


def _outside_ddp(ctx: Context) -> Iterator[Finding]:
    """The forward pass of training goes round the DDP wrapper: gradients are not averaged, scales differ."""
    if not any(g.events("scaler-step") for g in ctx.graphs):
        return
    for call, scope in ctx.calls(*_DDP):
        parent = ctx.symbols.parent.get(call)
        if not isinstance(parent, ast.Assign) or not call.args:
            continue
        wrapper, inner = dotted(parent.targets[0]), dotted(call.args[0])
        if wrapper is None or _is_wrapped(ctx, call.args[0], scope):
            continue
        for use in ctx.symbols.calls:
            if ctx.symbols.scope(use) is not scope or use.lineno <= call.lineno:
                continue
            target = dotted(use.func)
            bypass = target == f"{wrapper}.module" or (inner is not None and inner != wrapper and target == inner)
            if bypass and _trains(ctx, use, scope):
                yield ctx.finding(
                    "R17", use, ERROR,
                    f"training runs `{target}` instead of the DDP wrapper `{wrapper}`: gradients stay local, so a non-finite one skips the "
                    "step on one rank only, and scale and weights drift apart",
                    f"{wrapper}({', '.join(ctx.str(a) for a in use.args)})",
                )  # fmt: skip
                return


def _is_wrapped(ctx: Context, inner: ast.expr, scope: Scope) -> bool:
    """What is wrapped here is a DDP module itself."""
    refs = ctx.symbols.resolve(inner, scope)
    return any(isinstance(r.expr, ast.Call) and ctx.symbols.qual(r.expr.func, r.scope) in _DDP for r in refs)


def _trains(ctx: Context, use: ast.Call, scope: Scope) -> bool:
    """A backward follows on the result, and no no_grad is around."""
    node: ast.AST | None = use
    while node is not None:
        node = ctx.symbols.parent.get(node)
        if isinstance(node, ast.With):
            for item in node.items:
                name = ctx.symbols.qual(item.context_expr.func) if isinstance(item.context_expr, ast.Call) else ""
                if name in ("torch.no_grad", "torch.inference_mode"):
                    return False
    backwards = [
        e
        for g in ctx.graphs
        for n in g.nodes
        for e in n.events
        if e.kind == "backward" and e.scope is scope and e.node.lineno > use.lineno
    ]
    return bool(backwards)


RULE = Rule(
    id="R17",
    name="scaler-sharding",
    title="The loss scale across processes",
    how="code, model",
    belief="The scale diverges under DDP; all_reduce(scaler._scale, MAX), or call scaler._init_scale.",
    truth=(
        "Under DDP with an inf on one rank both ranks found it, both skipped, scales and weights stayed equal. all_reduce of _scale "
        "made the numbers equal where ranks really differed, left growth trackers and weights apart, and pushed the scale up again. "
        "_init_scale is a float. Reducing found_inf keeps weights equal. FSDP1 needs ShardedGradScaler; FSDP2 does not."
    ),
    experiment="Two gloo processes with an inf on one: DDP, no DDP, the popular fix, and the right one.",
    bad="dist.all_reduce(scaler._scale, op=dist.ReduceOp.MAX)",
    good="model = DistributedDataParallel(model)  # and a plain GradScaler",
    check=check,
    trigger=r"FSDP|FullySharded|DistributedDataParallel|\._scale|\._init_scale|\._growth|\._backoff",
)
