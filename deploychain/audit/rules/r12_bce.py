"""R12: binary_cross_entropy is forbidden under CUDA autocast."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import argument, keyword, last_name
from deploychain.audit.context import ERROR, Context, Rule
from deploychain.audit.finding import Finding
from deploychain.audit.losses import loss_name
from deploychain.audit.values import Seen


def check(ctx: Context) -> Iterator[Finding]:
    done: set[int] = set()
    for seen in ctx.seen:
        region = seen.region
        if (
            region is None
            or region.enabled is False
            or not region.cuda
            or (region.dtype == "fp32" and not region.wide)  # (a float32 region of CUDA is active, and raises as well)
            or id(seen.node) in done
        ):
            continue
        if not _is_bce(ctx, seen):
            continue
        done.add(id(seen.node))
        assert isinstance(seen.node, ast.Call)
        given = [ctx.str(a) for a in seen.node.args[:2]]
        arguments = ", ".join(given) if len(given) == 2 else "logits, target"
        where = f"{region.framework} autocast" if region.framework else "a CUDA autocast region"
        yield ctx.finding(
            "R12", seen.node, ERROR,
            f"`{ctx.str(seen.node.func)}` is binary_cross_entropy and runs in {where}: torch raises RuntimeError "
            "(\"unsafe to autocast\")",
            f"F.binary_cross_entropy_with_logits({arguments})  # drop the sigmoid; or: with torch.autocast(\"cuda\", "
            "enabled=False): loss = criterion(p.float(), target)",
        )  # fmt: skip
    yield from _engines(ctx)


def _engines(ctx: Context) -> Iterator[Finding]:
    """Training loops that are given the loss and run it under autocast: ignite with amp_mode, fastai with to_fp16."""
    for call, scope in ctx.calls_named(
        "create_supervised_trainer", "supervised_training_step_amp", "to_fp16", "SupervisedTrainer"
    ):
        made, on = call, True
        name = last_name(call.func)
        if name == "to_fp16":
            learner = call.func.value if isinstance(call.func, ast.Attribute) else None
            refs = ctx.symbols.resolve(learner, scope) if learner is not None else []
            made = next((r.expr for r in refs if isinstance(r.expr, ast.Call)), call)
            loss = keyword(made, "loss_func")
        elif name == "SupervisedTrainer":
            on = ctx.symbols.const(keyword(call, "amp"), scope) is True
            loss = keyword(call, "loss_function")
        else:
            on = name != "create_supervised_trainer" or ctx.symbols.const(keyword(call, "amp_mode"), scope) in (
                "amp",
                "apex",
            )
            loss = argument(call, 2, "loss_fn")
        found = loss_name(ctx.symbols, loss, scope) if loss is not None and on else None
        if found is not None and found[0] == "binary_cross_entropy":
            yield ctx.finding(
                "R12", call, ERROR,
                f"`{ctx.str(loss)}` is binary_cross_entropy and `{name}` runs it under CUDA autocast: torch raises RuntimeError "  # type: ignore[arg-type]
                "(\"unsafe to autocast\")",
                "nn.BCEWithLogitsLoss() on the logits, without the sigmoid at the end of the model",
            )  # fmt: skip


def _is_bce(ctx: Context, seen: Seen) -> bool:
    if not isinstance(seen.node, ast.Call):
        return False
    if seen.name in (
        "torch.nn.functional.binary_cross_entropy",
        "torch.binary_cross_entropy",
        "loss:binary_cross_entropy",
    ):
        return True
    return seen.name == "layer:BCELoss"


RULE = Rule(
    id="R12",
    name="bce-under-autocast",
    title="BCELoss inside a CUDA autocast region",
    how="code, model",
    belief="Any loss may stand inside autocast.",
    truth="binary_cross_entropy and BCELoss raise a RuntimeError under CUDA autocast, in float16 and bfloat16. CPU autocast allows them.",
    experiment="The ban in the dispatcher of the installed torch, and the same loss under CPU autocast.",
    bad='with torch.autocast("cuda"):\n    loss = nn.BCELoss()(torch.sigmoid(model(x)), y)',
    good='with torch.autocast("cuda"):\n    loss = nn.BCEWithLogitsLoss()(model(x), y)',
    check=check,
    trigger=r"BCELoss|binary_cross_entropy",
)
