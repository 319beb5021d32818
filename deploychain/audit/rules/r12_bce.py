"""R12: binary_cross_entropy is forbidden under CUDA autocast."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.context import ERROR, Context, Rule
from deploychain.audit.finding import Finding
from deploychain.audit.values import Seen


def check(ctx: Context) -> Iterator[Finding]:
    done: set[int] = set()
    for seen in ctx.seen:
        region = seen.region
        if (
            region is None
            or region.enabled is False
            or not region.cuda
            or region.dtype == "fp32"
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
