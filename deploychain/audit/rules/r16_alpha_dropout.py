"""R16: AlphaDropout belongs after SELU."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import last_name
from deploychain.audit.context import WARNING, Context, Rule
from deploychain.audit.finding import Finding

_NAMES = frozenset({"AlphaDropout", "FeatureAlphaDropout"})
_BETWEEN = frozenset({"Linear", "Conv1d", "Conv2d", "Flatten", "BatchNorm1d", "BatchNorm2d", "Identity", "LayerNorm"})


def check(ctx: Context) -> Iterator[Finding]:
    if "class AlphaDropout" in ctx.text or "def alpha_dropout" in ctx.text:
        return  # where it is defined
    for call in ctx.symbols.calls:
        leaf = last_name(call.func)
        name = ctx.symbols.qual(call.func) or ""
        if leaf in _NAMES and name.startswith("torch."):
            fed = _sequential(ctx, call)
            if fed is None and not _selu_near(ctx, call):
                fed = "nothing that is a SELU"
            if fed is not None and fed != "SELU":
                yield _finding(ctx, call, fed)
        elif (
            leaf in ("alpha_dropout", "feature_alpha_dropout")
            and name.startswith("torch.")
            and not _selu_near(ctx, call)
        ):
            yield _finding(ctx, call, "nothing that is a SELU")


def _sequential(ctx: Context, call: ast.Call) -> str | None:
    """The activation before the AlphaDropout in a list of layers; None where there is no list."""
    parent = ctx.symbols.parent.get(call)
    items = (
        parent.args
        if isinstance(parent, ast.Call)
        else parent.elts
        if isinstance(parent, ast.List | ast.Tuple)
        else None
    )
    if not items or call not in items:
        return None
    for item in reversed(items[: items.index(call)]):
        leaf = last_name(item.func) if isinstance(item, ast.Call) else ""
        if leaf and leaf not in _BETWEEN and leaf not in _NAMES:
            return leaf
    return None


def _selu_near(ctx: Context, call: ast.Call) -> bool:
    """A SELU in the same class or function."""
    scope = ctx.symbols.scope(call)
    owner = ctx.symbols.class_of(scope)
    node = owner.node if owner is not None else scope.node
    return any(
        (isinstance(n, ast.Name | ast.Attribute) and last_name(n) in ("SELU", "selu", "selu_")) for n in ast.walk(node)
    )


def _finding(ctx: Context, call: ast.Call, fed: str) -> Finding:
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
