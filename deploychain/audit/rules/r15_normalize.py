"""R15: images are normalised in float32, with constants of the right shape, on the CPU in workers."""

# ruff: noqa: E501, SIM102  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import UNKNOWN, Scope, dotted, keyword, last_name, returns, strip_module_calls
from deploychain.audit.context import ERROR, WARNING, Context, Rule
from deploychain.audit.finding import Finding

_TO_CHW = frozenset(
    {
        "ToTensor",
        "to_tensor",
        "pil_to_tensor",
        "PILToTensor",
        "ToImage",
        "read_image",
        "decode_image",
        "permute",
        "to_image",
    }
)


def check(ctx: Context) -> Iterator[Finding]:
    yield from _compose(ctx)
    yield from _half_before(ctx)
    yield from _flat_mean(ctx)
    yield from _gpu_constants(ctx)


def _compose(ctx: Context) -> Iterator[Finding]:
    """Compose([..., ConvertImageDtype(torch.half), Normalize(...)])"""
    for call in ctx.symbols.nodes(ast.Call, ast.AugAssign):
        if isinstance(call, ast.AugAssign):
            if not isinstance(call.value, ast.List | ast.Tuple):
                continue
        elif last_name(call.func) not in ("Compose", "Sequential", "append", "extend") or not call.args:
            continue
        items = _steps(ctx, call)
        half: ast.expr | None = None
        for item in items:
            if not isinstance(item, ast.Call):
                continue
            name, scope = last_name(item.func), ctx.symbols.scope(item)
            if name in ("ConvertImageDtype", "ToDtype", "ConvertDtype", "convert_image_dtype"):
                given = item.args[0] if item.args else keyword(item, "dtype")
                half = item if ctx.amp.dtype(given, scope) == "fp16" else None
            elif name == "Lambda" and item.args and any(_is_half(e) for e in _results(ctx, item.args[0], scope)):
                half = item
            elif name == "Normalize" and half is not None:
                yield _half(ctx, item, half)


def _steps(ctx: Context, call: ast.Call | ast.AugAssign) -> list[ast.expr]:
    """The transforms in a Compose: written there, in a list that is built once, or named before."""
    items, scope = call.args if isinstance(call, ast.Call) else [call.value], ctx.symbols.scope(call)
    refs = ctx.symbols.resolve(items[0], scope)
    if len(refs) == 1 and isinstance(refs[0].expr, ast.List | ast.Tuple) and not _reordered(ctx, dotted(items[0])):
        items, scope = refs[0].expr.elts, refs[0].scope
    named = [ctx.symbols.resolve(item, scope) for item in items]
    return [found[0].expr if len(found) == 1 else item for found, item in zip(named, items, strict=True)]


def _reordered(ctx: Context, name: str | None) -> bool:
    return name is not None and any(
        isinstance(c.func, ast.Attribute)
        and c.func.attr in ("insert", "remove", "pop", "clear", "reverse", "sort")
        and dotted(c.func.value) == name
        for c in ctx.symbols.calls
    )


def _results(ctx: Context, function: ast.expr, scope: Scope) -> list[ast.expr]:
    """What a lambda, or a function of this file, returns."""
    if isinstance(function, ast.Lambda):
        return [function.body]
    found = ctx.symbols.local_function(function, scope)
    return returns(found) if found is not None else []


def _is_half(expr: ast.expr) -> bool:
    return isinstance(expr, ast.Call) and isinstance(expr.func, ast.Attribute) and expr.func.attr == "half"


def _half(ctx: Context, node: ast.expr, half: ast.AST) -> Finding:
    return ctx.finding(
        "R15", node, WARNING,
        f"Normalize runs on an image that was made float16 before (line {getattr(half, 'lineno', 0)}): mean and std are cast to the "
        "image's dtype, which costs about 5e-4 of every pixel before the network starts",
        "normalise in float32 and let autocast cast the first convolution's input",
    )  # fmt: skip


def _half_before(ctx: Context) -> Iterator[Finding]:
    """x = x.half(); x = normalize(x), or (x.half() - mean) / std"""
    done: set[int] = set()
    for seen in ctx.seen:
        if id(seen.node) in done or not seen.args:
            continue
        first = seen.args[0]
        if isinstance(seen.node, ast.Call):
            name = last_name(seen.node.func).lower()
            full = ctx.symbols.qual(seen.node.func) or ""
            image = name in ("normalize", "norm_image", "normalize_image") and not full.startswith("torch.nn")
            image = image or any(
                isinstance(r.expr, ast.Call) and last_name(r.expr.func) == "Normalize"
                for r in ctx.symbols.resolve(seen.node.func, ctx.symbols.scope(seen.node))
            )
            operand = seen.node.args[0] if seen.node.args else None
            if image and first.dtype == "fp16" and first.sure and not first.module and operand is not None:
                done.add(id(seen.node))
                yield _half(ctx, seen.node, first.via or seen.node)
        elif isinstance(seen.node, ast.BinOp) and seen.name == "-" and first.dtype == "fp16" and first.sure:
            right = (dotted(seen.node.right) or _base_name(seen.node.right)).lower()
            if "mean" in right and _divided_by_std(ctx, seen.node):
                done.add(id(seen.node))
                yield _half(ctx, seen.node, first.via or seen.node)


def _base_name(expr: ast.expr) -> str:
    while isinstance(expr, ast.Call | ast.Attribute | ast.Subscript):
        if isinstance(expr, ast.Attribute) and dotted(expr):
            return dotted(expr) or ""
        expr = expr.func if isinstance(expr, ast.Call) else expr.value
    return expr.id if isinstance(expr, ast.Name) else ""


def _divided_by_std(ctx: Context, node: ast.BinOp) -> bool:
    parent = ctx.symbols.parent.get(node)
    return (
        isinstance(parent, ast.BinOp)
        and isinstance(parent.op, ast.Div)
        and parent.left is node
        and "std" in (dotted(parent.right) or _base_name(parent.right)).lower()
    )


def _flat_mean(ctx: Context) -> Iterator[Finding]:
    """(x - mean) / std with torch.tensor([a, b, c]) on channels-first data."""
    for node in ctx.symbols.nodes(ast.BinOp):
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)) or not _divided_by_std(ctx, node):
            continue
        scope = ctx.symbols.scope(node)
        if not _three_values(ctx, node.right, scope) or not _channels_first(ctx, node.left, scope):
            continue
        yield ctx.finding(
            "R15", node, ERROR,
            f"`{ctx.str(node.right)}` has shape (3,), the image (3, H, W): the subtraction raises for W != 3, and for W = 3 silently "
            "normalises columns instead of channels",
            f"{ctx.str(node.right)}.view(-1, 1, 1)  # the same for std; or torchvision.transforms.Normalize(mean, std)",
        )  # fmt: skip


def _three_values(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    """torch.tensor([a, b, c]) as it is, without view, reshape or indexing."""
    refs = ctx.symbols.resolve(expr, scope)
    for ref in refs:
        call = strip_module_calls(ref.expr)
        if not isinstance(call, ast.Call) or ctx.symbols.qual(call.func, ref.scope) not in (
            "torch.tensor",
            "torch.as_tensor",
            "torch.Tensor",
        ):
            return False
        value = ctx.symbols.const(call.args[0], ref.scope) if call.args else UNKNOWN
        if not (isinstance(value, list) and len(value) == 3 and all(isinstance(v, int | float) for v in value)):
            return False
    return bool(refs)


def _channels_first(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    """The image certainly came from ToTensor, read_image, permute(2, 0, 1) and the like."""
    function = scope.node
    for ref in ctx.symbols.resolve(expr, scope):
        for node in ast.walk(ref.expr):
            if isinstance(node, ast.Call) and _makes_chw(ctx, node, ref.scope):
                return True
    if isinstance(function, ast.Lambda):  # transforms.Lambda(lambda x: (x - mean) / std) after ToTensor()
        parent = ctx.symbols.parent.get(function)
        grand = ctx.symbols.parent.get(parent) if parent is not None else None
        if isinstance(grand, ast.List):
            before = grand.elts[: next((i for i, e in enumerate(grand.elts) if e is parent), 0)]
            return any(
                isinstance(e, ast.Call) and last_name(e.func) in ("ToTensor", "PILToTensor", "ToImage") for e in before
            )
    return False


def _makes_chw(ctx: Context, call: ast.Call, scope: Scope) -> bool:
    leaf = last_name(call.func)
    if leaf == "permute":
        order = [ctx.symbols.const(a, scope) for a in call.args]
        if len(order) == 1 and isinstance(order[0], list):
            order = order[0]
        return order in ([2, 0, 1], [0, 3, 1, 2])
    if leaf in _TO_CHW:
        return True
    if isinstance(call.func, ast.Call):
        return last_name(call.func.func) in _TO_CHW
    return any(
        isinstance(r.expr, ast.Call) and last_name(r.expr.func) in ("ToTensor", "PILToTensor", "ToImage")
        for r in ctx.symbols.resolve(call.func, scope)
    )


def _gpu_constants(ctx: Context) -> Iterator[Finding]:
    """CUDA tensors made in a Dataset or a transform, which run in worker processes."""
    if "cuda" not in ctx.text or ("Dataset" not in ctx.text and "Lambda" not in ctx.text):
        return
    for call in ctx.symbols.calls:
        scope = ctx.symbols.scope(call)
        if not _in_dataset(ctx, scope) and not _in_transform_lambda(ctx, call, scope):
            continue
        name = ctx.symbols.qual(call.func) or ""
        device = keyword(call, "device")
        made = name in ("torch.tensor", "torch.as_tensor", "torch.zeros", "torch.ones", "torch.full") and (
            device is not None and ctx.amp.device(device, scope) == "cuda"
        )
        moved = isinstance(call.func, ast.Attribute) and call.func.attr == "cuda" and not call.args and name == ""
        moved = moved or (
            isinstance(call.func, ast.Attribute) and call.func.attr == "to" and bool(call.args) and not name
            and isinstance(call.args[0], ast.Constant) and str(call.args[0].value).startswith("cuda")
        )  # fmt: skip
        if made or moved:
            yield ctx.finding(
                "R15", call, ERROR,
                f"`{ctx.str(call)}` makes a CUDA tensor in a dataset or transform: in DataLoader workers CUDA cannot be initialised again "
                "(fork), and it fails where no GPU is",
                "keep the constants on the CPU; move the batch to the GPU in the training loop",
            )  # fmt: skip


def _in_dataset(ctx: Context, scope: Scope) -> bool:
    cls = ctx.symbols.class_of(scope)
    if cls is None:
        return False
    for base in getattr(cls.node, "bases", []):
        name = ctx.symbols.qual(base, cls) or ""
        if (name.startswith("torch.utils.data.") and name.endswith("Dataset")) or name.startswith(
            "torchvision.datasets."
        ):
            return True
    return False


def _in_transform_lambda(ctx: Context, call: ast.Call, scope: Scope) -> bool:
    if isinstance(scope.node, ast.Lambda):
        parent = ctx.symbols.parent.get(scope.node)
        return isinstance(parent, ast.Call) and last_name(parent.func) == "Lambda" and not _v2(ctx, parent)
    # a constant used by such a lambda: mean = torch.tensor(..., device="cuda"); Lambda(lambda x: (x - mean) / std)
    parent = ctx.symbols.parent.get(call)
    while isinstance(parent, ast.Call | ast.Attribute):
        parent = ctx.symbols.parent.get(parent)
    if not isinstance(parent, ast.Assign):
        return False
    names = {dotted(t) for t in parent.targets}
    for node in ctx.symbols.nodes(ast.Call):
        if isinstance(node, ast.Call) and last_name(node.func) == "Lambda" and node.args and not _v2(ctx, node):
            if isinstance(node.args[0], ast.Lambda) and any(
                isinstance(n, ast.Name) and n.id in names for n in ast.walk(node.args[0].body)
            ):
                return True
    return False


def _v2(ctx: Context, call: ast.Call) -> bool:
    return "v2" in (ctx.symbols.qual(call.func) or "")


RULE = Rule(
    id="R15",
    name="normalize-input",
    title="Images are normalised in float16, with a flat mean, or with CUDA constants in workers",
    how="code, run",
    belief="Under autocast the std of Normalize becomes float16 and costs 1.2 % accuracy; use CUDA constants in a lambda.",
    truth=(
        "sub and div are on no autocast list: Normalize gives the same bits inside and outside. The fix breaks: a mean of shape (3,) "
        "does not broadcast over (3, 224, 224) and is silently wrong for W = 3, CUDA constants fail in workers, lambdas do not "
        "pickle. What is real: an image made half before Normalize."
    ),
    experiment="Normalize inside and outside autocast (equal bits); the flat mean on (3, 224, 224) and on (3, 224, 3).",
    bad="x = to_tensor(img).half()\nx = normalize(x)",
    good="x = normalize(to_tensor(img))",
    check=check,
    trigger=r"Normalize|normalize\(|(?i:mean\b.{0,60}\bstd\b)|Lambda\(|Dataset\)",
)
