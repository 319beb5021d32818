"""R06: growth_interval has nothing to do with the batch size."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, dotted, last_name
from deploychain.audit.context import NOTE, Context, Rule
from deploychain.audit.finding import Finding
from deploychain.audit.loss_scale import number
from deploychain.audit.planned_steps import planned_steps
from deploychain.audit.scaler_settings import settings
from deploychain.audit.tree import walk
from deploychain.audit.values import words

_SHORTEST = 100  # at the ceiling about one step in `growth_interval` is skipped
_NEVER = 500_000  # longer than all but the longest trainings
_BATCH = words(
    "batch_size batch bs bsz batchsize batch_sz train_batch_size train_bs per_device_train_batch_size per_gpu_batch_size "
    "global_batch global_batch_size global_bs micro_batch micro_batch_size effective_batch effective_batch_size eff_batch "
    "total_batch_size samples_per_gpu imgs_per_gpu images_per_gpu batch_per_gpu mini_batch minibatch_size n_batch"
)


def check(ctx: Context) -> Iterator[Finding]:
    for value, _, scope, _ in settings(ctx, "growth_interval"):
        yield from _judge(ctx, value, scope)
    for call, scope in ctx.calls_named("set_growth_interval"):
        if isinstance(call.func, ast.Attribute) and ctx.amp.is_scaler(call.func.value, scope):
            for value in [*call.args, *(k.value for k in call.keywords)][:1]:
                yield from _judge(ctx, value, scope)


def _judge(ctx: Context, value: ast.expr, scope: Scope) -> Iterator[Finding]:
    fix = "GradScaler()  # growth_interval=2000"
    basis = _basis(ctx, value, scope)
    if basis:
        yield ctx.finding(
            "R06", value, NOTE,
            f"growth_interval is computed from the {basis} (`{ctx.str(value)}`): the scale depends on the size of the gradients, "
            "not on how many samples they come from", fix,
        )  # fmt: skip
        return
    interval = 2.0**63 if ctx.symbols.qual(value, scope) in ("sys.maxsize", "math.inf") else number(ctx, value, scope)
    if interval is None:
        return
    if interval < _SHORTEST:
        yield ctx.finding(
            "R06", value, NOTE,
            f"growth_interval={interval:g}: at its ceiling the scale is tried too high once per interval, so about "
            f"{100 / max(interval, 1):.3g} % of all steps are skipped (0.05 % at 2000)", fix,
        )  # fmt: skip
        return
    steps = planned_steps(ctx)
    if steps is not None and interval > steps:
        yield ctx.finding(
            "R06", value, NOTE,
            f"growth_interval={interval:g} is longer than the whole training ({steps:g} steps): the scale can fall, but never "
            "grows again", fix,
        )  # fmt: skip
    elif steps is None and interval >= _NEVER:
        yield ctx.finding(
            "R06", value, NOTE,
            f"growth_interval={interval:g} is longer than almost any training: the scale can fall, but never grows again", fix,
        )  # fmt: skip


def _basis(ctx: Context, value: ast.expr, scope: Scope, depth: int = 2) -> str:
    """ "batch size" or "number of batches" where the interval is computed from it."""
    exprs = [value, *(r.expr for r in ctx.symbols.resolve(value, scope))]
    text = dotted(value)
    if text is not None:
        exprs += [b.value for b in ctx.symbols.bindings(text, scope) if b.value is not None]
    for expr in exprs:
        for node in walk(expr):
            leaf = last_name(node).lower()
            if leaf in _BATCH or (isinstance(node, ast.Constant) and node.value in _BATCH):
                return "batch size"
            if (
                isinstance(node, ast.Call)
                and last_name(node.func) == "len"
                and node.args
                and "loader" in ctx.str(node.args[0]).lower()
            ):
                return "number of batches"
            if isinstance(expr, ast.BinOp) and isinstance(node, ast.Name) and depth:  # `steps = len(loader)` before
                basis = _basis(ctx, node, scope, depth - 1)
                if basis:
                    return basis
    return ""


RULE = Rule(
    id="R06",
    name="growth-interval",
    title="growth_interval is tied to the batch size, too short or too long",
    how="code",
    belief="growth_interval must match the batch size, as in max(1000, batch // 16).",
    truth=(
        "The scale doubles once after `growth_interval` clean steps. At the ceiling the skip rate is about 1/interval (measured "
        "0.185, 0.085, 0.035, 0.010 % for 500, 1000, 2000, 4000). Updates are the same bits at every scale. The formula is constant "
        "for every batch up to 16000. Leave it at 2000."
    ),
    experiment="The scale after 5000 clean steps, and the skip rate at a ceiling, for four intervals.",
    bad="scaler = GradScaler(growth_interval=max(1000, batch_size // 16))",
    good='scaler = torch.amp.GradScaler("cuda")',
    check=check,
    trigger=r"growth_interval|GradScaler\(|GradScalerKwargs\(|loss_scale_window",
)
