"""R17: who may touch the scale when there are several processes."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, dotted, keyword, last_name
from deploychain.audit.context import ERROR, NOTE, WARNING, Context, Rule
from deploychain.audit.finding import Finding
from deploychain.audit.rules.ddp_bypass import around_ddp
from deploychain.audit.tree import walk

_FSDP1 = frozenset(
    {
        "torch.distributed.fsdp.FullyShardedDataParallel",
        "fairscale.nn.FullyShardedDataParallel",
        "fairscale.nn.data_parallel.FullyShardedDataParallel",
        "fairscale.nn.data_parallel.fully_sharded_data_parallel.FullyShardedDataParallel",
    }
)
_PRIVATE = frozenset(
    {
        "_scale",
        "_growth_tracker",
        "_init_scale",
        "_growth_factor",
        "_backoff_factor",
        "_growth_interval",
        "_init_growth_tracker",
        "_per_optimizer_states",
        "_get_scale_async",
        "_enabled",
    }
)
_COLLECTIVES = frozenset({"all_reduce", "broadcast", "reduce", "all_gather", "broadcast_object_list"})
_IN_PLACE = frozenset({"fill_", "copy_", "mul_", "div_", "zero_", "set_", "clamp_", "add_", "sub_"})
# What a public method sets; and the start value, of which the scale is made at the first scale().
_SETTERS = {
    "_growth_factor": "set_growth_factor",
    "_backoff_factor": "set_backoff_factor",
    "_growth_interval": "set_growth_interval",
}
_OVERRIDES = frozenset({"__init__", "update", "step", "scale", "unscale_", "load_state_dict"})


def check(ctx: Context) -> Iterator[Finding]:
    yield from _private(ctx)
    yield from _agreed(ctx)
    yield from _fsdp(ctx)
    yield from around_ddp(ctx)


def _private_of(ctx: Context, expr: ast.AST, scope: Scope) -> str | None:
    if isinstance(expr, ast.Call) and last_name(expr.func) == "_get_scale_async":
        return _private_of(ctx, expr.func, scope)
    if isinstance(expr, ast.Attribute) and expr.attr in _PRIVATE and ctx.amp.is_scaler(expr.value, scope):
        return ctx.str(expr)
    if (
        isinstance(expr, ast.Attribute)
        and expr.attr in _PRIVATE
        and dotted(expr.value) == "self"
        and _is_subclass(ctx, scope)
    ):
        return ctx.str(expr)
    if isinstance(expr, ast.Attribute) and expr.attr in _PRIVATE and "scaler" in (dotted(expr.value) or "").lower():
        # any object that is called a scaler and has these very attributes
        return (
            ctx.str(expr)
            if ctx.amp.scaler_calls or (dotted(expr.value) or "").rpartition(".")[2] in ("scaler", "grad_scaler")
            else None
        )
    return None


def _is_subclass(ctx: Context, scope: Scope) -> bool:
    """A class of the file that is made from torch's scaler."""
    return any(
        (ctx.symbols.qual(base, cls) or "").endswith("GradScaler")
        for cls in ctx.symbols.bases(ctx.symbols.class_of(scope))
        for base in getattr(cls.node, "bases", [])
    )


def _own_business(ctx: Context, target: ast.expr, scope: Scope) -> bool:
    """A scaler class writes its own state: another design than torch's, or a method of torch's that it overrides."""
    if not (isinstance(target, ast.Attribute) and dotted(target.value) == "self"):
        return False
    return scope.name in _OVERRIDES or scope.name.startswith("_") or not _is_subclass(ctx, scope)


def _root(target: ast.expr) -> ast.expr:
    """`scaler._per_optimizer_states` of `scaler._per_optimizer_states[id(opt)]["stage"]`."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return target


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
            for written in targets:
                target = _root(written)
                name = _private_of(ctx, target, scope)
                # all of it emptied after an aborted batch: harmless
                whole = target is written and name is not None and name.endswith("._per_optimizer_states")
                if not name or whole or _own_business(ctx, target, scope):
                    continue
                if not name.endswith("._enabled"):
                    yield _written(ctx, node, name)
                elif _goes_on(ctx, node):
                    yield _switched_off(ctx, node, name)
        elif isinstance(node, ast.Call):
            leaf = last_name(node.func)
            if leaf in _COLLECTIVES:
                for arg in node.args[:2]:
                    base = arg
                    while (
                        isinstance(base, ast.Call)
                        and isinstance(base.func, ast.Attribute)
                        and base.func.attr != "_get_scale_async"
                    ):
                        base = base.func.value
                    name = _alias_of(ctx, base, scope)
                    if name is not None:
                        yield _reduced(ctx, node, name)
            elif isinstance(node.func, ast.Attribute) and node.func.attr == "_init_scale":
                name = _private_of(ctx, node.func, scope)
                if name:
                    yield ctx.finding(
                        "R17", node, ERROR, "`_init_scale` is a number, not a method: TypeError: 'float' object is not callable",
                        f"{name.rpartition('.')[0]}.update(new_scale=65536.0)",
                    )  # fmt: skip
            elif leaf in _IN_PLACE and isinstance(node.func, ast.Attribute):
                name = _alias_of(ctx, node.func.value, scope) or _found_inf(ctx, node.func.value, scope)
                if name is not None and not _own_business(ctx, node.func.value, scope):
                    yield _written(ctx, node, name)
            elif (
                leaf.endswith("_") and leaf.rstrip("_") + "_" in _IN_PLACE and node.args
            ):  # torch.clamp_(scaler._scale, ...)
                name = _private_of(ctx, node.args[0], scope)
                if name is not None:
                    yield _written(ctx, node, name)


def _found_inf(ctx: Context, expr: ast.expr, scope: Scope) -> str | None:
    """A loop variable over the found_inf tensors: to reduce them is right, to write them is not."""
    for binding in ctx.symbols.bindings(dotted(expr) or "", scope):
        if binding.loop and binding.value is not None and "found_inf_per_device" in ast.unparse(binding.value):
            names = (_private_of(ctx, n, binding.scope) for n in walk(binding.value))
            return next((n for n in names if n), None) or f"{_owner(binding.value)}._per_optimizer_states"
    return None


def _owner(expr: ast.expr) -> str:
    return next(
        (
            dotted(n) or "scaler"
            for n in walk(expr)
            if isinstance(n, ast.Name | ast.Attribute) and "scaler" in last_name(n)
        ),
        "scaler",
    )


def _agreed(ctx: Context) -> Iterator[Finding]:
    """The public scale goes through a collective and comes back with update(new_scale) or load_state_dict."""
    if not ("get_scale" in ctx.text or "state_dict" in ctx.text):
        return
    for call, scope in ctx.calls_named(*_COLLECTIVES):
        name = dotted(call.args[0]) if call.args else None
        if name is None or not any(_is_scale(ctx, b.value, b.scope) for b in ctx.symbols.bindings(name, scope)):
            continue
        for back, where in ctx.calls_named("update", "load_state_dict"):
            if (
                where is scope
                and back.lineno > call.lineno
                and isinstance(back.func, ast.Attribute)
                and ctx.amp.is_scaler(back.func.value, scope)
                and (back.args or back.keywords)
                and (back.func.attr == "load_state_dict" or _uses(back, name))
            ):
                scaler = ctx.str(back.func.value)
                yield _reduced(ctx, call, f"{scaler}._scale")
                break


def _is_scale(ctx: Context, value: ast.expr | None, scope: Scope) -> bool:
    """`torch.tensor(scaler.get_scale())`, `torch.tensor(state["scale"])` of a scaler's state_dict()."""
    if value is None:
        return False
    for node in walk(value):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get_scale":
            return ctx.amp.is_scaler(node.func.value, scope)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == "scale":
            return any(
                isinstance(r.expr, ast.Call)
                and isinstance(r.expr.func, ast.Attribute)
                and r.expr.func.attr == "state_dict"
                and ctx.amp.is_scaler(r.expr.func.value, r.scope)
                for r in ctx.symbols.resolve(node.value, scope)
            )
    return False


def _uses(call: ast.Call, name: str) -> bool:
    return any(dotted(n) == name for a in (*call.args, *(k.value for k in call.keywords)) for n in walk(a))


_REDUCE = "for found in {0}._found_inf_per_device(optimizer).values():  # between unscale_ and step, outside DDP only\n    dist.all_reduce(found, op=dist.ReduceOp.MAX)"  # fmt: skip


def _reduced(ctx: Context, node: ast.Call, name: str) -> Finding:
    """The scale goes through a collective: equal already under DDP, and multiplied by the ranks where it is a sum."""
    leaf = last_name(node.func)
    operation = keyword(node, "op") or (node.args[1] if leaf == "all_reduce" and len(node.args) > 1 else None)
    summed = leaf == "all_reduce" and (operation is None or last_name(operation) == "SUM")
    return ctx.finding(
        "R17", node, ERROR if summed else WARNING,
        f"private state `{name}` goes through {leaf}: plain DDP needs nothing (all ranks see the same gradients, so they skip together); "
        + ("a sum multiplies it by the number of ranks each time" if summed else
           "where ranks differ, equal scales hide that some ranks stepped and others did not, and the weights drift apart"),
        _REDUCE.format(name.rpartition(".")[0]),
    )  # fmt: skip


def _written(ctx: Context, node: ast.AST, name: str) -> Finding:
    scaler, _, leaf = name.rpartition(".")
    if leaf == "_init_scale":
        return ctx.finding(
            "R17", node, NOTE,
            f"`{name}` is private, and read once, at the first scale(): before that it is the start value, later it changes nothing",
            f"GradScaler(init_scale=...) where it is made (GradScalerKwargs with Accelerate); later {scaler}.update(new_scale=...)",
        )  # fmt: skip
    if leaf in _SETTERS:
        return ctx.finding(
            "R17", node, NOTE, f"`{name}` is private state: there is a method for it", f"{scaler}.{_SETTERS[leaf]}(...)"
        )
    return ctx.finding(
        "R17", node, WARNING,
        f"private state `{name}` is written: the scale is lowered and raised by itself, alike on all ranks under plain DDP; what is put in "
        "its place by hand leaves the rest of the state behind (scale, growth counter, found infs), and is None before the first scale()",
        f"{scaler}.update(new_scale=...) sets the scale; {scaler}.load_state_dict(state) puts back all of it",
    )  # fmt: skip


def _goes_on(ctx: Context, node: ast.Assign | ast.AugAssign) -> bool:
    """`scaler._enabled = False` where a float16 region of the file stays on."""
    if ctx.symbols.const(node.value, ctx.symbols.scope(node)) is not False:
        return False
    block = getattr(ctx.symbols.parent.get(node), "body", [])
    off = {t for s in block if isinstance(s, ast.Assign) and s is not node for t in map(dotted, s.targets) if t}
    for call, scope in ctx.calls_named("autocast"):
        region = ctx.amp.region(call, scope)
        switch = keyword(call, "enabled")
        if region is None or region.enabled is False or region.dtype not in ("fp16", "?"):
            continue
        if switch is None or not any(
            dotted(n) in off or last_name(n) in ("is_enabled", "_enabled") for n in walk(switch)
        ):
            return True
    return False


def _switched_off(ctx: Context, node: ast.AST, name: str) -> Finding:
    scaler = name.rpartition(".")[0]
    return ctx.finding(
        "R17", node, WARNING,
        f"`{name} = False` turns loss scaling off and leaves autocast on: from here on float16 gradients below 6e-8 are 0, and a step with "
        "inf in them is not skipped",
        f"torch.autocast(..., enabled={scaler}.is_enabled()), or bfloat16 or float32 from here on",
    )  # fmt: skip


def _fsdp1(ctx: Context, node: ast.AST) -> str:
    """The class, or the one that a class of the file is made from, by its full name."""
    assert isinstance(node, ast.expr)
    cls = ctx.symbols.classes.get(node.id) if isinstance(node, ast.Name) else None
    homes = ctx.symbols.bases(cls) if cls is not None else ()
    names = [ctx.symbols.qual(node), *(ctx.symbols.qual(b, h) for h in homes for b in getattr(h.node, "bases", []))]
    return next((n for n in names if n in _FSDP1 and n is not None), "")


def _wraps(ctx: Context, node: ast.AST) -> bool:
    """The class is called, or handed to something that will: `partial(FSDP, ...)`, `wrapper_cls=FSDP`, `FSDP if ... else DDP`."""
    if not isinstance(getattr(node, "ctx", None), ast.Load) or not _fsdp1(ctx, node):
        return False
    parent = ctx.symbols.parent.get(node)
    if isinstance(parent, ast.Call):
        return parent.func is node or last_name(parent.func) == "partial"
    if isinstance(parent, ast.keyword):
        return parent.arg == "wrapper_cls"
    return isinstance(parent, ast.IfExp | ast.Dict)


def _fsdp(ctx: Context) -> Iterator[Finding]:
    if not ctx.amp.scaler_calls or "FullySharded" not in ctx.text:
        return
    if "ShardedGradScaler" in ctx.text and any(
        (ctx.symbols.qual(n) or "").endswith("ShardedGradScaler") for n in ctx.symbols.nodes(ast.Name, ast.Attribute)
    ):
        return
    wraps = [n for n in ctx.symbols.nodes(ast.Name, ast.Attribute) if _wraps(ctx, n)]
    if not wraps:
        return
    fairscale = _fsdp1(ctx, wraps[0]).startswith("fairscale.")
    home = "fairscale.optim.grad_scaler" if fairscale else "torch.distributed.fsdp.sharded_grad_scaler"
    for call in ctx.amp.scaler_calls:
        if ctx.amp.call_enabled(call, ctx.symbols.scope(call)) is False:
            continue
        yield ctx.finding(
            "R17", call, ERROR,
            f"a plain GradScaler with FullyShardedDataParallel (line {wraps[0].lineno}): each rank sees only its shard, so one rank can "
            "skip a step that the others make, and the shards of one weight drift apart",
            f"from {home} import ShardedGradScaler\nscaler = ShardedGradScaler()",
        )  # fmt: skip


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
    trigger=r"FSDP|FullySharded|DistributedDataParallel|\._scale|\._init_|\._growth|\._backoff|\._per_opt|\._enabled|_found_inf|_scale_async"
    r"|get_scale\(|caler\.state_dict|unscale_|no_sync",
)
