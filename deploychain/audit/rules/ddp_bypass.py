"""R17: parameters that are trained beside the DistributedDataParallel wrapper."""

# ruff: noqa: E501  (messages are one piece of text)
from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, dotted, strip_module_calls
from deploychain.audit.context import ERROR, WARNING, Context
from deploychain.audit.finding import Finding
from deploychain.audit.paths import search
from deploychain.audit.tree import walk

_DDP = frozenset({"torch.nn.parallel.DistributedDataParallel", "torch.nn.parallel.distributed.DistributedDataParallel"})
_SHARDED_BY_DESIGN = re.compile(r"partial_?fc|shard|parallel|moe|expert", re.IGNORECASE)


def around_ddp(ctx: Context) -> Iterator[Finding]:
    if not any(g.events("scaler-step") for g in ctx.graphs):
        return
    yield from _outside_ddp(ctx)
    yield from _never_synchronised(ctx)
    yield from _reduced_too_late(ctx)


def _outside_ddp(ctx: Context) -> Iterator[Finding]:
    """The forward pass of training goes round the DDP wrapper: gradients are not averaged, scales differ."""
    for call, scope in ctx.calls(*_DDP):
        parent = ctx.symbols.parent.get(call)
        if not isinstance(parent, ast.Assign) or not call.args:
            continue
        wrapper, inner = dotted(parent.targets[0]), dotted(call.args[0])
        if wrapper is None or _is_wrapped(ctx, call.args[0], scope):
            continue
        yield from _unwrapped_head(ctx, wrapper)
        inner = dotted(strip_module_calls(call.args[0])) or inner
        for use in ctx.symbols.calls:
            where = ctx.symbols.scope(use)
            if not _sees(ctx, where, scope, wrapper) or (where is scope and use.lineno <= call.lineno):
                continue
            target = dotted(use.func)
            bypass = target == f"{wrapper}.module" or (inner is not None and inner != wrapper and target == inner)
            bypass = bypass or _method_of_module(ctx, use, where, wrapper)
            if bypass and _trains(ctx, use, where):
                yield ctx.finding(
                    "R17", use, ERROR,
                    f"training runs `{target}` instead of the DDP wrapper `{wrapper}`: gradients stay local, so a non-finite one skips the "
                    "step on one rank only, and scale and weights drift apart",
                    f"{wrapper}({', '.join(ctx.str(a) for a in use.args)})",
                )  # fmt: skip
                return


def _sees(ctx: Context, where: Scope, scope: Scope, wrapper: str) -> bool:
    """The same function, or for an attribute another method of the class."""
    if where is scope:
        return True
    return wrapper.startswith("self.") and ctx.symbols.class_of(where) is ctx.symbols.class_of(scope) is not None


def _method_of_module(ctx: Context, use: ast.Call, where: Scope, wrapper: str) -> bool:
    """`model.module.compute_loss(x)` or `core = model.module; core.compute_loss(x)`, where the wrapper is never called."""
    if not isinstance(use.func, ast.Attribute):
        return False
    module = any(dotted(r.expr) == f"{wrapper}.module" for r in ctx.symbols.resolve(use.func.value, where))
    module = module or dotted(use.func.value) == f"{wrapper}.module"
    if not module or not re.search(r"forward|loss|step", use.func.attr):
        return False
    return not any(dotted(c.func) == wrapper and ctx.symbols.scope(c) is where for c in ctx.symbols.calls)


def _unwrapped_head(ctx: Context, wrapper: str) -> Iterator[Finding]:
    """An optimiser of the wrapped model and of a second module that is not wrapped."""
    wrapped = {dotted(c.args[0]) for c, _ in ctx.calls(*_DDP) if c.args}
    for graph in ctx.graphs:
        for _, event in graph.events("scaler-step"):
            if not isinstance(event.node, ast.Call) or not event.node.args:
                continue
            for ref in ctx.symbols.resolve(event.node.args[0], event.scope):
                if not isinstance(ref.expr, ast.Call):
                    continue
                modules = [
                    n.func.value for n in walk(ref.expr)
                    if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "parameters"
                ]  # fmt: skip
                if wrapper not in {(dotted(m) or "").removesuffix(".module") for m in modules}:
                    continue
                for module in modules:
                    name = dotted(module)
                    if (
                        name is None
                        or name.removesuffix(".module") == wrapper
                        or name in wrapped
                        or not _made_alone(ctx, module, ref.scope)
                    ):
                        continue
                    if not any(dotted(c.func) == name for c in ctx.symbols.calls):
                        continue
                    yield ctx.finding(
                        "R17", ref.expr, WARNING,
                        f"the optimiser also trains `{name}`, which is not inside the DDP wrapper `{wrapper}`: its gradients stay local, so "
                        "its weights drift apart, and a non-finite one skips the step on one rank only",
                        f"{name} = DistributedDataParallel({name}, device_ids=[rank])",
                    )  # fmt: skip
                    return


def _made_alone(ctx: Context, module: ast.expr, scope: Scope) -> bool:
    """Every value of the name is a module that this file makes, and none of them is wrapped or sharded by design."""
    if "all_reduce" in ctx.text:
        return False
    bindings = ctx.symbols.bindings(dotted(module) or "", scope)
    made = [strip_module_calls(b.value) for b in bindings if b.value is not None and not b.loop]
    return (
        len(made) == 1 == len(bindings)
        and isinstance(made[0], ast.Call)
        and (
            ctx.symbols.qual(bindings[0].value.func, bindings[0].scope) not in _DDP
            if isinstance(bindings[0].value, ast.Call)
            else True
        )
        and not _SHARDED_BY_DESIGN.search(ast.unparse(made[0]))
    )


def _never_synchronised(ctx: Context) -> Iterator[Finding]:
    """`with model.no_sync():` around backward and step."""
    for block in ctx.symbols.nodes(ast.With):
        if not any(isinstance(i.context_expr, ast.Call) and dotted(i.context_expr.func) is not None
                   and (dotted(i.context_expr.func) or "").endswith(".no_sync") for i in block.items):  # fmt: skip
            continue
        inside = {id(n) for n in walk(block)}
        for graph in ctx.graphs:
            step = next((e for _, e in graph.events("scaler-step") if id(e.node) in inside), None)
            backwards = [e for _, e in graph.events("backward")]
            if step is not None and backwards and all(id(e.node) in inside for e in backwards):
                yield ctx.finding(
                    "R17", block, ERROR,
                    f"`{ctx.str(step.node)}` runs inside no_sync(): gradients are never averaged, so each rank trains on its own and skips "
                    "on its own",
                    "use no_sync() only for the micro-batches that no step follows",
                )  # fmt: skip
                return


def _reduced_too_late(ctx: Context) -> Iterator[Finding]:
    """Gradients are all-reduced by hand after unscale_, which has looked for inf in the local ones."""
    if "all_reduce" not in ctx.text or "found_inf" in ctx.text:
        return
    for graph in ctx.graphs:
        for node, event in graph.events("unscale"):
            path = search(
                graph, node, event,
                goal=lambda e: e.kind == "reduce", stop=lambda e: e.kind in ("scaler-step", "update", "backward", "opaque"),
            )  # fmt: skip
            if path is not None:
                yield ctx.finding(
                    "R17", path.goal.node, ERROR,
                    "gradients are all-reduced after unscale_ has looked for inf in the local ones: a rank without any steps on the inf "
                    "that another rank sent it",
                    "all-reduce the gradients before scaler.unscale_, or the found_inf tensors (MAX) before scaler.step",
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
