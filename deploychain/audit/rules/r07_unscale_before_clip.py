"""R07: gradients are clipped, measured and edited after scaler.unscale_."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, dotted, last_name
from deploychain.audit.context import ERROR, WARNING, Context, Rule
from deploychain.audit.events import Event
from deploychain.audit.finding import Finding
from deploychain.audit.paths import Graph, Path, search
from deploychain.audit.rules.gradient_logs import only_logged
from deploychain.audit.rules.parameter_owners import modules_of, other_parameters
from deploychain.audit.tree import walk
from deploychain.audit.values import words


def check(ctx: Context) -> Iterator[Finding]:
    done: set[int] = set()
    for graph in ctx.graphs:
        groups = list(_by_parameters(ctx, graph))
        for node, event in graph.events("backward", "gradients"):
            if event.scaled is not True or not (graph.events("scaler-step", "optimizer-step") or event.framework):
                continue
            for clips, unscales in groups:
                passed: set[int] = set()  # clips that no step follows
                while path := search(
                    graph, node, event,
                    goal=lambda e, clips=clips, passed=passed: id(e) in clips and id(e.node) not in done | passed,  # type: ignore[misc]
                    stop=lambda e, unscales=unscales: e.kind in ("scaler-step", "optimizer-step", "opaque") or id(e) in unscales,  # type: ignore[misc]
                    either=lambda n: not n.amp,
                ):  # fmt: skip
                    if event.framework or _used(graph, path):
                        done.add(id(path.goal.node))
                        yield _finding(ctx, graph, event, path.goal)
                    else:
                        passed.add(id(path.goal.node))
    yield from _lightning_hook(ctx, done)
    yield from _tensor_hooks(ctx)


def _used(graph: Graph, path: Path) -> bool:
    """A step follows: before the next backward, or after it where what was clipped is added to."""
    clip = path.goal.node
    clips = isinstance(clip, ast.Call) and last_name(clip.func) in ("clip_grad_norm_", "clip_grad_value_")
    return bool(search(
        graph, path.node, path.goal,
        goal=lambda e: e.kind in ("scaler-step", "optimizer-step"),
        stop=lambda e: e.kind in (("zero", "opaque") if clips else ("backward",)), strict=True,
    ))  # fmt: skip


def _by_parameters(ctx: Context, graph: Graph) -> Iterator[tuple[set[int], set[int]]]:
    """Clips of the same parameters, and the unscale_ calls that may be of these parameters."""
    groups: dict[tuple[frozenset[str], int], list[Event]] = {}
    for _, clip in graph.events("clip"):
        groups.setdefault((frozenset(modules_of(clip.node)), id(clip.scope)), []).append(clip)
    stepped = {e.key for _, e in graph.events("scaler-step", "optimizer-step")}
    for clips in groups.values():
        unscales = [
            e for _, e in graph.events("unscale") if stepped == {e.key} or not other_parameters(ctx, e, clips[0])
        ]
        yield {id(c) for c in clips}, {id(e) for e in unscales}


def _finding(ctx: Context, graph: Graph, event: Event, clip: Event) -> Finding:
    steps = [e for _, e in graph.events("scaler-step") if e.detail]
    unscaled = {e.key for _, e in graph.events("unscale")}
    step = next((e for e in steps if e.key not in unscaled), steps[0] if steps else None)
    scaler, optimizer = (step.detail, step.key) if step is not None else ("scaler", "optimizer")
    fix = f"{scaler}.unscale_({optimizer if optimizer != '*' else 'optimizer'})\n{ctx.str(clip.node)}"
    if event.framework == "accelerate":
        fix = "accelerator.clip_grad_norm_(model.parameters(), max_norm)  # unscales first"
    elif event.framework == "fabric":
        fix = "fabric.clip_gradients(model, optimizer, max_norm=...)"
    elif event.framework == "Lightning":
        fix = 'self.clip_gradients(optimizer, gradient_clip_val=1.0, gradient_clip_algorithm="norm")'
    if ctx.gradients.hides_overflow(clip.node, clip.scope):
        return ctx.finding(
            "R07", clip.node, ERROR,
            f"`{clip.detail}` takes out what is not finite before the scaler looks for it in unscale_: no overflow is seen, no step is skipped, "
            "and the scale never goes down", fix,
        )  # fmt: skip
    if only_logged(ctx, clip):
        return ctx.finding(
            "R07", clip.node, WARNING,
            f"`{clip.detail}` sees gradients that are still multiplied by the scale (65536 at the start, and it changes): what is logged is "
            "off by that factor", fix,
        )  # fmt: skip
    if (
        isinstance(clip.node, ast.Call)
        and "clip" in clip.detail
        and ctx.symbols.qual(clip.node.func, clip.scope) is None
    ):
        made = [r.expr for r in ctx.symbols.resolve(clip.node.func, clip.scope)]
        if made and all(isinstance(e, ast.Call) for e in made):
            return ctx.finding(
                "R07", clip.node, WARNING,
                f"`{clip.detail}` gets gradients that are still multiplied by the scale (65536 at the start): if it clips as its name says, "
                "its limit is 65536 times smaller than written", fix,
            )  # fmt: skip
    return ctx.finding(
        "R07", clip.node, ERROR,
        f"`{clip.detail}` works on gradients that are still multiplied by the scale (65536 at the start): a "
        "maximum norm of 1 becomes 1/65536, so the updates all but vanish, and logged norms are off by the scale", fix,
    )  # fmt: skip


def _lightning_hook(ctx: Context, done: set[int]) -> Iterator[Finding]:
    """Clipping in on_after_backward: Lightning unscales later, before on_before_optimizer_step."""
    if ctx.amp.framework.lightning != "fp16":
        return
    for graph in ctx.graphs:
        for _, event in graph.events("clip"):
            bases = {last_name(b) for b in getattr(event.scope.owner.node, "bases", [])} if event.scope.owner else set()
            if (
                event.scope.name == "on_after_backward"
                and bases & {"LightningModule", "Callback"}
                and id(event.node) not in done
            ):
                done.add(id(event.node))
                yield ctx.finding(
                    "R07", event.node, ERROR,
                    f"`{event.detail}` in on_after_backward sees gradients that are still multiplied by the loss scale",
                    "def on_before_optimizer_step(self, optimizer):  # gradients are unscaled here\n    " + (
                        ctx.str(event.node) if isinstance(event.node, ast.Call) else "..."
                    ),
                )  # fmt: skip


def _tensor_hooks(ctx: Context) -> Iterator[Finding]:
    """`p.register_hook(lambda g: g.clamp(-1, 1))`: it runs during the backward pass of the scaled loss."""
    if "register_" not in ctx.text:
        return
    if not any(g.events("scaler-step") and any(e.scaled is True for _, e in g.events("backward")) for g in ctx.graphs):
        return
    for call, scope in ctx.calls_named("register_hook", "register_post_accumulate_grad_hook"):
        if not (isinstance(call.func, ast.Attribute) and call.args and _is_parameter(ctx, call.func.value, scope)):
            continue
        body, given = _hook_of(ctx, call.args[0], scope)
        found = next((n for n in walk(body) if _bends(n, given)), None) if body is not None else None
        if found is not None and _TAKES_OUT.search(ctx.str(found)):
            yield ctx.finding(
                "R07", call, ERROR,
                f"`{ctx.str(found)}` in a gradient hook takes out what is not finite before the scaler looks for it: no overflow is seen, no step "
                "is skipped, and the scale never goes down",
                "no hook: the scaler skips the step in which a gradient is not finite, and lowers the scale",
            )  # fmt: skip
        elif found is not None:
            yield ctx.finding(
                "R07", call, ERROR,
                f"`{ctx.str(found)}` in a gradient hook sees gradients that are multiplied by the scale (65536 at the start), so "
                "its limit is 65536 times smaller than written",
                "scaler.unscale_(optimizer)\ntorch.nn.utils.clip_grad_value_(model.parameters(), 1.0)  # instead of the hook",
            )  # fmt: skip


def _is_parameter(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    return dotted(expr) is not None and any(
        b.loop and b.value is not None and "param" in ast.unparse(b.value) for b in ctx.symbols.bindings(dotted(expr) or "", scope)
    )  # fmt: skip


def _hook_of(ctx: Context, expr: ast.expr, scope: Scope) -> tuple[ast.AST | None, str]:
    """The body of a hook and the name that the gradient has in it."""
    if isinstance(expr, ast.Lambda):
        return expr.body, expr.args.args[0].arg if expr.args.args else ""
    function = ctx.symbols.local_function(expr, scope)
    own = [p for p in function.parameters if p not in ("self", "cls")] if function is not None else []
    return (function.node, own[0]) if function is not None and own else (None, "")


def _bends(node: ast.AST, name: str) -> bool:
    """A call that is not linear in the gradient: it clamps it, or asks for its norm."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):  # g[~torch.isfinite(g)] = 0
        node = node.targets[0].slice
    elif isinstance(node, ast.Call) and last_name(node.func) in _MASKS and node.args:
        node = node.args[0]
    elif not (isinstance(node, ast.Call) and last_name(node.func) in _BENDS):
        return False
    return any(isinstance(n, ast.Name) and n.id == name for n in walk(node))


_TAKES_OUT = re.compile(r"nan_to_num|isfinite|isnan|isinf")
_MASKS = words("masked_fill masked_fill_")
_BENDS = words("clamp clamp_ clip clip_ norm renorm nan_to_num clip_grad_norm_ clip_grad_value_ where")
RULE = Rule(
    id="R07",
    name="unscale-before-clip",
    title="Gradients are clipped or measured while they are still scaled",
    how="code",
    belief="clip_grad_norm_ goes between backward and step, as always.",
    truth=(
        "Between scaled backward and scaler.step the gradients are 65536 times too large, so max_norm=1 clips to 1/65536. Call "
        "scaler.unscale_(optimizer) once, directly before. Multiplying or averaging gradients is linear and needs no unscaling."
    ),
    experiment="The update of one step with clipping: unscaled first, and not.",
    bad="scaler.scale(loss).backward()\ntorch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\nscaler.step(optimizer)",
    good="scaler.scale(loss).backward()\nscaler.unscale_(optimizer)\n"
    "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\nscaler.step(optimizer)",
    check=check,
    trigger=r"scaler|Scaler|accelerat|fabric|Fabric|16-mixed|precision=16",
)
