"""R23: the coordinates of grid_sample need float32."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.astnames import Ref, Scope, argument, last_name
from deploychain.audit.context import WARNING, Context, Rule
from deploychain.audit.finding import Finding
from deploychain.audit.tree import walk
from deploychain.audit.values import Seen

SMALL_MAP = 256  # coordinate error 0.03 pixels at width 256, 0.23 at 1920

_KEEP_SIZE = ("half", "to", "cuda", "float", "contiguous", "detach", "clone", "type")
_SIZE = re.compile(r"\b(\d{1,4}) ?[x\u00d7*] ?(\d{1,4})\b")
_SAMPLERS = frozenset({"grid_sample", "affine_grid", "grid_sampler", "grid_sampler_2d", "grid_sampler_3d"})


def check(ctx: Context) -> Iterator[Finding]:
    done: set[int] = set()
    for seen in ctx.seen:
        call = seen.node
        leaf = seen.name.rpartition(".")[2]
        if not isinstance(call, ast.Call) or leaf not in _SAMPLERS or id(call) in done:
            continue
        grid = _grid(seen, leaf)
        if grid is None or seen.args[grid].dtype != "fp16" or not seen.args[grid].sure:
            continue
        if _small(ctx, call, leaf):
            continue
        done.add(id(call))
        shown = ctx.str(call.args[grid]) if grid < len(call.args) else "grid"
        yield ctx.finding(
            "R23", call, WARNING,
            f"the sampling coordinates `{shown}` are float16: they are off by 0.03 pixels at width 256, 0.125 at 1024 and 0.23 at 1920, and "
            "casting later does not bring them back",
            "with torch.autocast(\"cuda\", enabled=False):\n    y = F.grid_sample(image.float(), grid)  # grid computed in float32",
        )  # fmt: skip


def _grid(seen: Seen, leaf: str) -> int | None:
    assert isinstance(seen.node, ast.Call)
    call = seen.node
    wanted, position = ("theta", 0) if leaf == "affine_grid" else ("grid", 1)
    for offset, k in enumerate(call.keywords):
        if k.arg == wanted:
            return len(call.args) + offset
    return position if position < len(call.args) else None


def _small(ctx: Context, call: ast.Call, leaf: str) -> bool:
    """The size is written in the code and at most 256."""
    scope: Scope = ctx.symbols.scope(call)
    if _said_to_be_small(ctx, scope) or _resized_small(ctx):
        return True
    if leaf == "affine_grid" and len(call.args) > 1:
        size = ctx.symbols.const(call.args[1], scope)
        if isinstance(size, list) and len(size) >= 4 and all(isinstance(v, int) for v in size[2:]):
            return bool(max(size[2:]) <= SMALL_MAP)
    if leaf != "affine_grid" and call.args:
        sides = [_size(ctx, r) for r in ctx.symbols.resolve(call.args[0], scope)]
        if sides and all(0 < side <= SMALL_MAP for side in sides):
            return True
    if leaf != "affine_grid" and len(call.args) > 1:
        for ref in ctx.symbols.resolve(call.args[1], scope):
            for node in walk(ref.expr):
                if isinstance(node, ast.Call) and (ctx.symbols.qual(node.func, ref.scope) or "").endswith(
                    ("affine_grid", "linspace")
                ):
                    sizes = [ctx.symbols.const(a, ref.scope) for a in node.args[1:]]
                    sizes = [s[2:] if isinstance(s, list) and len(s) >= 4 else s for s in sizes]  # of N, C, H, W
                    flat = [v for s in sizes for v in (s if isinstance(s, list) else [s])]
                    numbers = [v for v in flat if isinstance(v, int)]
                    if numbers and len(numbers) == len(flat):
                        return max(numbers) <= SMALL_MAP
    return False


def _said_to_be_small(ctx: Context, scope: Scope) -> bool:
    """The class or function says the size of its images: "aligns 32x32 crops"."""
    around: Scope | None = scope
    while around is not None and around is not ctx.symbols.module:
        node = around.node
        said = ast.get_docstring(node) if isinstance(node, ast.ClassDef | ast.FunctionDef) else None
        sides = [int(n) for found in _SIZE.findall(said or "") for n in found]
        if sides:
            return max(sides) <= SMALL_MAP
        around = around.parent
    return False


def _resized_small(ctx: Context) -> bool:
    """Every image that the file resizes or crops gets a size that is written in it, and none is larger."""
    sides: list[int] = []
    for call, scope in ctx.calls_named("resize", "Resize", "RandomResizedCrop", "RandomCrop", "CenterCrop"):
        given = [*call.args[:2], *(k.value for k in call.keywords if k.arg in ("size", "dsize"))]
        sizes = [ctx.symbols.const(a, scope) for a in given]
        known = [v for s in sizes for v in (s if isinstance(s, list | tuple) else [s]) if isinstance(v, int) and v > 1]
        if not known:
            return False
        sides += known
    return bool(sides) and max(sides) <= SMALL_MAP


def _size(ctx: Context, image: Ref) -> int:
    """The larger side of an image that is made or resized with numbers, 0 where it is not known."""
    e = image.expr
    while isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute) and e.func.attr in _KEEP_SIZE:
        e = e.func.value
    if not isinstance(e, ast.Call):
        return 0
    name = last_name(e.func)
    if name in ("interpolate", "resize"):
        given = argument(e, 1, "size")
        size = ctx.symbols.const(given, image.scope)
    elif name in ("rand", "randn", "zeros", "ones", "empty", "full"):
        given = e.args[0] if len(e.args) == 1 or name == "full" else ast.List(e.args, ast.Load())
        size = ctx.symbols.const(given, image.scope)
    else:
        return 0
    numbers = size[-2:] if isinstance(size, list) else [size]
    return max(numbers) if all(isinstance(n, int) for n in numbers) else 0


RULE = Rule(
    id="R23",
    name="grid-precision",
    title="grid_sample with float16 coordinates",
    how="code, graph, run",
    belief="TensorRT's GridSample has no FP16, or custom_opsets pins it to FP32; replace it by interpolate.",
    truth=(
        "TensorRT's GridSample takes FP16. The hazard is the grid: float16 coordinates are off by 0.23 pixels at width 1920 (image "
        "error 0.20 against 3e-4 for a float16 image with a float32 grid). interpolate is another operation."
    ),
    experiment="The pixel error of float16 coordinates for four widths.",
    bad="y = F.grid_sample(img.half(), grid.half())",
    good="y = F.grid_sample(img.float(), grid.float()).to(img.dtype)",
    check=check,
    trigger=r"grid_sample|affine_grid",
)
