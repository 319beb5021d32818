"""R15: images are normalised in float32, with constants of the right shape, on the CPU in workers."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from deploychain.audit.astnames import Scope, dotted, last_name
from deploychain.audit.context import ERROR, NOTE, WARNING, Context, Rule
from deploychain.audit.finding import Finding
from deploychain.audit.images import CHW, HWC, Images
from deploychain.audit.rules.channel_constants import flat_values
from deploychain.audit.rules.image_options import only_by_option
from deploychain.audit.rules.transform_lists import COMPOSES, composed, last_dtype, normalises_first, step_dtype
from deploychain.audit.rules.worker_constants import Workers, cuda_in_workers, made_for_each_item, worker_processes
from deploychain.audit.tree import walk

# Means of the training sets that images are usually normalised with (ImageNet, as numbers up to 255 too, CLIP).
_IMAGE_MEANS = (
    (0.485, 0.456),
    (123.675, 116.28),
    (123.68, 116.779),
    (0.48145466, 0.4578275),
    (0.5, 0.5),
    (103.53, 116.28),
)
_SEVERITY = {Workers.SOME: ERROR, Workers.BY_SETTING: WARNING, Workers.NOT_SHOWN: NOTE}
_IMAGE_NAME = re.compile(
    r"im(g|age)|pixel|frame|rgb|photo|picture|crop|patch|tile|scan|slide|video|clip|sample|^x", re.IGNORECASE
)
_CONVERTS = frozenset({"ToTensor", "PILToTensor", "ToImage"})


class Normalisation(NamedTuple):
    """`(image - mean) / std` in any form; `node` is the subtraction."""

    node: ast.expr
    image: ast.expr
    mean: ast.expr
    std: ast.expr


def check(ctx: Context) -> Iterator[Finding]:
    images = Images(ctx.symbols, ctx.amp, lambda images, call: last_dtype(ctx, images, call))
    yield from _compose(ctx, images)
    done: set[int] = set()
    yield from _called_on_half(ctx, images, done)
    for norm in _normalisations(ctx):
        yield from _arithmetic(ctx, images, norm, done)
    workers = worker_processes(ctx)
    for call in cuda_in_workers(ctx, images) if workers is not Workers.NONE else ():
        if workers is Workers.NOT_SHOWN and not made_for_each_item(ctx, call):
            continue  # a set that lives on the GPU
        yield ctx.finding(
            "R15", call, _SEVERITY[workers],
            f"`{ctx.str(call)}` makes a CUDA tensor in a dataset or transform: in DataLoader workers CUDA cannot be initialised again "
            "(fork), and it fails where no GPU is",
            "keep the constants on the CPU; move the batch to the GPU in the training loop",
        )  # fmt: skip
        if workers is Workers.NOT_SHOWN:
            return


def _compose(ctx: Context, images: Images) -> Iterator[Finding]:
    """Compose([..., ConvertImageDtype(torch.half), Normalize(...)])"""
    if "Normalize" not in ctx.text:
        return
    done: set[int] = set()
    for _, found in composed(ctx):
        half: ast.AST | None = None
        for step in found:
            if isinstance(step.expr, ast.Call) and last_name(step.expr.func) == "Normalize":
                if half is not None and id(step.expr) not in done:
                    done.add(id(step.expr))
                    yield _half(ctx, step.expr, half)
                continue
            dtype = step_dtype(ctx, images, step)
            half = step.expr if dtype == "fp16" else half if dtype is None else None


def _half(ctx: Context, node: ast.expr, half: ast.AST) -> Finding:
    return ctx.finding(
        "R15", node, NOTE if only_by_option(ctx, half) else WARNING,
        f"Normalize runs on an image that was made float16 before (line {getattr(half, 'lineno', 0)}): mean and std are cast to the "
        "image's dtype, which costs about 5e-4 of every pixel before the network starts",
        "normalise in float32 and let autocast cast the first convolution's input",
    )  # fmt: skip


def _called_on_half(ctx: Context, images: Images, done: set[int]) -> Iterator[Finding]:
    """x = x.half(); x = normalize(x)"""
    kept = _names_of_transforms(ctx)
    for call in ctx.symbols.calls:
        known = (
            isinstance(call.func, ast.Call) or last_name(call.func) in kept or "norm" in last_name(call.func).lower()
        )
        if known and call.args and _normalises(ctx, images, call):
            half = images.made_half(call.args[0], ctx.symbols.scope(call))
            if half is not None and not _of_model(ctx, half):
                done.add(id(call))
                yield _half(ctx, call, half)
    for seen in ctx.seen if "ormali" in ctx.text else ():  # through functions of the file
        if not isinstance(seen.node, ast.Call) or id(seen.node) in done or not seen.args or not seen.node.args:
            continue
        first = seen.args[0]
        if first.dtype == "fp16" and first.sure and not first.module and _normalises(ctx, images, seen.node):
            done.add(id(seen.node))
            yield _half(ctx, seen.node, first.via or seen.node)


def _names_of_transforms(ctx: Context) -> set[str]:
    """The last parts of the names that a Normalize, or a list of transforms, was bound to."""
    found: set[str] = set()
    for call in ctx.symbols.calls:
        if last_name(call.func) == "Normalize" or last_name(call.func) in COMPOSES:
            above = ctx.symbols.parent.get(call)
            while isinstance(above, ast.Call | ast.Attribute | ast.Tuple | ast.IfExp | ast.keyword):
                above = ctx.symbols.parent.get(above)
            if isinstance(above, ast.Assign):
                found |= {
                    last_name(n) for t in above.targets for n in walk(t) if isinstance(n, ast.Name | ast.Attribute)
                }
            elif isinstance(above, ast.Return):
                found |= {last_name(t) for t in _taking(ctx, ctx.symbols.scope(call))}
    return found


def _taking(ctx: Context, function: Scope) -> Iterator[ast.AST]:
    """The names that the results of a function are bound to."""
    for site in ctx.symbols.call_sites(function):
        above = ctx.symbols.parent.get(site)
        if isinstance(above, ast.Assign):
            yield from above.targets


def _of_model(ctx: Context, half: ast.expr) -> bool:
    return isinstance(half, ast.Call) and "model" in ctx.str(half.func).lower()


def _normalises(ctx: Context, images: Images, call: ast.Call) -> bool:
    if last_name(call.func).lower() in _NORMALISERS and _of_an_image(ctx, call):
        return True
    for ref in ctx.symbols.resolve(call.func, ctx.symbols.scope(call)):
        if isinstance(ref.expr, ast.Call):
            leaf = last_name(ref.expr.func)
            if leaf == "Normalize" or (leaf in COMPOSES and normalises_first(ctx, images, ref.expr)):
                return True
    return False


_NORMALISERS = ("normalize", "norm_image", "normalize_image", "normalise")


def _of_an_image(ctx: Context, call: ast.Call) -> bool:
    """Called with a mean and a std, of a library for images, or a function of the file that subtracts and divides; of
    what is not shown, one that gets an image alone."""
    full = ctx.symbols.qual(call.func) or ""
    if full:
        return full.startswith(("torchvision.", "kornia.", "albumentations.")) or "transform" in full
    if len(call.args) >= 3 or {k.arg for k in call.keywords} & {"mean", "std"}:
        return True
    shown = ctx.symbols.local_function(call.func, ctx.symbols.scope(call))
    if shown is not None:
        inside = list(walk(shown.node))
        return any(isinstance(n, ast.Call) and last_name(n.func) in ("Normalize", "normalize") for n in inside) or any(
            isinstance(n, ast.Name | ast.Attribute) and "std" in last_name(n).lower() for n in inside
        )
    return len(call.args) == 1 and not call.keywords and bool(_IMAGE_NAME.search(_base_name(call.args[0])))


def _normalisations(ctx: Context) -> Iterator[Normalisation]:
    """Every subtraction of a mean that a division by a std goes with."""
    for node in ctx.symbols.nodes(ast.BinOp):
        if isinstance(node.op, ast.Sub):
            std = _divided_by(ctx, node) or _divided_later(ctx, node)
            if std is not None:
                yield Normalisation(node, node.left, node.right, std)
    for node in ctx.symbols.nodes(ast.AugAssign):
        if isinstance(node.op, ast.Sub) and (std := _divided_later(ctx, node)) is not None:
            yield Normalisation(node.target, node.target, node.value, std)
    for call in ctx.symbols.calls:
        leaf = last_name(call.func)
        if leaf not in ("sub", "sub_", "subtract") or not isinstance(call.func, ast.Attribute) or not call.args:
            continue
        function = len(call.args) > 1 and (ctx.symbols.qual(call.func) or "").startswith(("torch.", "numpy."))
        image, mean = (call.args[0], call.args[1]) if function else (call.func.value, call.args[0])
        std = _divided_by(ctx, call) or _divided_later(ctx, call)
        if std is not None:
            yield Normalisation(call, image, mean, std)


def _divided_by(ctx: Context, node: ast.AST) -> ast.expr | None:
    """The std of `(x - mean) / std`, `x.sub(mean).div(std)`, `torch.div(x - mean, std)`."""
    parent = ctx.symbols.parent.get(node)
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Div) and parent.left is node:
        return parent.right
    if isinstance(parent, ast.Attribute) and parent.attr in ("div", "div_", "divide", "true_divide"):
        call = ctx.symbols.parent.get(parent)
        return call.args[0] if isinstance(call, ast.Call) and call.args else None
    if isinstance(parent, ast.Call) and last_name(parent.func) in ("div", "divide") and len(parent.args) > 1:
        return parent.args[1] if parent.args[0] is node else None
    return None


def _divided_later(ctx: Context, node: ast.AST) -> ast.expr | None:
    """The std of `x = x - mean` with `x = x / std`, `x /= std` or `x.div_(std)` in one of the next statements."""
    statement = node
    while not isinstance(statement, ast.stmt):
        above = ctx.symbols.parent.get(statement)
        if above is None:
            return None
        statement = above
    if isinstance(statement, ast.Assign):
        name = dotted(statement.targets[0]) if statement.value is node else None
    elif isinstance(statement, ast.AugAssign):
        name = dotted(statement.target) if statement is node else None
    elif isinstance(statement, ast.Expr) and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = dotted(node.func.value)
    else:
        name = None
    if name is None:
        return None
    body = getattr(ctx.symbols.parent.get(statement), "body", [])
    after = body[body.index(statement) + 1 :][:3] if isinstance(body, list) and statement in body else []
    for later in after:
        for n in walk(later):
            if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div) and dotted(n.left) == name:
                return n.right
            if isinstance(n, ast.AugAssign) and isinstance(n.op, ast.Div) and dotted(n.target) == name:
                return n.value
            if not (isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in ("div", "div_")):
                continue
            if n.args and dotted(n.func.value) == name:
                return n.args[0]
    return None


def _arithmetic(ctx: Context, images: Images, norm: Normalisation, done: set[int]) -> Iterator[Finding]:
    scope = ctx.symbols.scope(norm.node)
    flat = flat_values(ctx, images, norm.mean, scope)
    if not flat and not ("mean" in _base_name(norm.mean).lower() and "std" in _base_name(norm.std).lower()):
        return
    images.channels = len(flat or ())
    layout = images.layout(norm.image, scope) or _layout_of_parameter(ctx, images, norm, scope, flat)
    if flat and layout == CHW:
        n = len(flat)
        yield ctx.finding(
            "R15", norm.node, ERROR,
            f"`{ctx.str(norm.mean)}` has shape ({n},), the image ({n}, H, W): the subtraction raises for W != {n}, and for W = {n} silently "
            "normalises columns instead of channels",
            f"{ctx.str(norm.mean)}.view(-1, 1, 1)  # the same for std; or torchvision.transforms.Normalize(mean, std)",
        )  # fmt: skip
        return
    if _of_itself(ctx, norm.mean, scope):
        return  # a layer that normalises by the statistics of its input: R21
    half: ast.AST | None = images.made_half(norm.image, scope)
    for seen in ctx.seen if half is None else ():
        if seen.node is norm.node and seen.args and seen.args[0].dtype == "fp16" and seen.args[0].sure:
            half = seen.args[0].via or seen.node
    if half is not None and id(norm.node) not in done:
        done.add(id(norm.node))
        yield _half(ctx, norm.node, half)


def _of_itself(ctx: Context, mean: ast.expr, scope: Scope) -> bool:
    """`x.mean(-1, keepdim=True)`"""
    return any(
        isinstance(n, ast.Call) and last_name(n.func) in ("mean", "var_mean", "std_mean", "amin", "min", "median")
        for r in ctx.symbols.resolve(mean, scope)
        for n in walk(r.expr)
    )


def _base_name(expr: ast.expr) -> str:
    while isinstance(expr, ast.Call | ast.Attribute | ast.Subscript):
        if isinstance(expr, ast.Attribute) and dotted(expr):
            return dotted(expr) or ""
        expr = expr.func if isinstance(expr, ast.Call) else expr.value
    return expr.id if isinstance(expr, ast.Name) else ""


def _layout_of_parameter(
    ctx: Context, images: Images, norm: Normalisation, scope: Scope, flat: list[float] | None
) -> str | None:
    """The image is what a transform, a module or a loop over batches is given."""
    function = scope.node
    if isinstance(function, ast.Lambda):  # transforms.Lambda(lambda x: (x - mean) / std) after ToTensor()
        return _after_to_tensor(ctx, lambda step: step.expr is ctx.symbols.parent.get(function))
    cls = ctx.symbols.class_of(scope)
    if cls is not None and scope.name in ("__call__", "forward"):
        after = _after_to_tensor(ctx, lambda s: isinstance(s.expr, ast.Call) and last_name(s.expr.func) == cls.name)
        if after is not None:
            return after
        for call in ctx.symbols.calls:
            if call.args and ctx.symbols.instance_class(call.func, ctx.symbols.scope(call)) is cls:
                given = images.layout(call.args[0], ctx.symbols.scope(call))
                if given is not None:
                    return given
    if scope.owner is None:
        after = _after_to_tensor(ctx, lambda s: last_name(s.expr) == scope.name and bool(scope.name))
        if after is not None:
            return after
    common = flat is not None and any(abs(flat[0] - m[0]) < 2e-3 and abs(flat[1] - m[1]) < 2e-3 for m in _IMAGE_MEANS)
    if not common or _made_channels_first_later(ctx, scope):
        return None
    root = norm.image
    while isinstance(root, ast.Call) and isinstance(root.func, ast.Attribute):
        root = root.func.value
    while isinstance(root, ast.BinOp):
        root = root.left
    if cls is not None and scope.name == "forward" and ctx.is_module_class(cls):
        return CHW if isinstance(root, ast.Name) and root.id in scope.parameters else None
    if isinstance(root, ast.Name):
        for binding in ctx.symbols.bindings(root.id, scope):
            if binding.loop and binding.value is not None and "loader" in ctx.str(binding.value).lower():
                return CHW
    return None


def _made_channels_first_later(ctx: Context, scope: Scope) -> bool:
    """The function still turns an image from channels last to channels first, so it had the channels last before."""
    return any(
        isinstance(n, ast.Call) and last_name(n.func) in ("permute", "transpose", "moveaxis", "movedim", "rearrange")
        for n in walk(scope.node)
    )


def _after_to_tensor(ctx: Context, wanted: object) -> str | None:
    """Whether a step of a Compose comes after one that puts the channels first."""
    assert callable(wanted)
    for _, found in composed(ctx):
        converts = [isinstance(s.expr, ast.Call) and last_name(s.expr.func) in _CONVERTS for s in found]
        for index, step in enumerate(found):
            if wanted(step) and any(converts):
                return CHW if any(converts[:index]) else HWC
    return None


def _mentioned(text: str) -> bool:
    if any(word in text for word in ("Normalize", "Lambda(", "Dataset)", "Compose(")):
        return True
    low = text.lower()
    return bool(
        ("normali" in text and _NORMALISE.search(text))
        or ("mean" in low and (_LESS_MEAN.search(low) or ("std" in low and _PAIR.search(low))))
        or _LESS_MU.search(low)
    )


_NORMALISE = re.compile(r"normali[sz]e\w*\(")
_LESS_MEAN = re.compile(r"(?:-=?|sub_?\(|subtract\(\w+,)\s*[\w.]*mean")
_LESS_MU = re.compile(r"(?:-=?|sub_?\(|subtract\(\w+,)\s*(?:\w+\.)*mu?\b")
_PAIR = re.compile(r"mean\b.{0,60}\bstd\b")

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
    trigger=_mentioned,
)
