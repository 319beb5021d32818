"""The mean or std of an image: the numbers of `torch.tensor([0.5, 0.4, 0.4])` where nothing gives it another shape."""

# ruff: noqa: E501  (docstrings show code)
from __future__ import annotations

import ast
import re

from deploychain.audit.astnames import Scope, dotted, last_name
from deploychain.audit.context import Context
from deploychain.audit.images import Images

_LISTS = re.compile(r"(IMAGENET|CLIP|INCEPTION)\w*_(MEAN|STD)$|image_(mean|std)$", re.IGNORECASE)
_RESHAPES = frozenset({"view", "reshape", "unsqueeze", "expand", "permute", "view_as"})
_MAKES = frozenset(
    {"torch.tensor", "torch.as_tensor", "torch.Tensor", "torch.FloatTensor", "numpy.array", "numpy.asarray", "torch.from_numpy",
     "numpy.float32"}
)  # fmt: skip


def flat_values(ctx: Context, images: Images, expr: ast.expr, scope: Scope, depth: int = 6) -> list[float] | None:
    """The numbers of `torch.tensor([a, b, c])` as it is, without view, reshape or indexing; [] where only their count is known."""
    if depth <= 0:  # `mean = np.array(mean)` is made of itself
        return None
    inner = expr
    while (
        isinstance(inner, ast.Call)
        and isinstance(inner.func, ast.Attribute)
        and inner.func.attr in ("to", "cuda", "float", "type_as", "half", "cpu")
    ):
        inner = inner.func.value
    if (isinstance(inner, ast.Subscript) and dotted(inner) is None) or (
        isinstance(inner, ast.Call) and last_name(inner.func) in _RESHAPES
    ):
        return None
    refs = ctx.symbols.resolve(inner, scope)
    buffer = images.buffer(dotted(inner) or "", scope)
    if buffer is not None:
        refs = [buffer]
    found: list[float] | None = None
    for ref in refs:
        call = ref.expr
        while (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr in ("to", "cuda", "float", "astype")
        ):
            call = call.func.value
        if not isinstance(call, ast.Call) or ctx.symbols.qual(call.func, ref.scope) not in _MAKES or not call.args:
            return None
        found = _numbers(ctx, images, call.args[0], ref.scope, depth - 1)
        if found is None:
            return None
    return found


def _numbers(ctx: Context, images: Images, expr: ast.expr, scope: Scope, depth: int) -> list[float] | None:
    value = ctx.symbols.const(expr, scope)
    if isinstance(value, list) and 2 <= len(value) <= 32 and (plain := _plain(value)) is not None:
        return plain
    refs = ctx.symbols.resolve(expr, scope)
    lists = [ctx.symbols.const(r.expr, r.scope) for r in refs]
    if len(refs) > 1 and all(isinstance(v, list) and 2 <= len(v) <= 32 for v in lists):  # of each caller its own
        return _plain(lists[0]) if len({len(v) for v in lists}) == 1 else None
    for ref in refs:
        if isinstance(ref.expr, ast.Name | ast.Attribute) and _LISTS.search(last_name(ref.expr)):
            return [0.485, 0.456, 0.406]
        if isinstance(ref.expr, ast.Call) and ref.expr is not expr:
            return flat_values(ctx, images, ref.expr, ref.scope, depth)
    return None


def _plain(values: list[object]) -> list[float] | None:
    return (
        [float(v) for v in values if isinstance(v, int | float)]
        if all(isinstance(v, int | float) for v in values)
        else None
    )
