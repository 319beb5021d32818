"""CUDA tensors that are made in a Dataset or a transform, which run in worker processes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum

from deploychain.audit.astnames import UNKNOWN, Scope, argument, dotted, keyword, last_name
from deploychain.audit.context import Context
from deploychain.audit.images import Images
from deploychain.audit.rules.transform_lists import COMPOSES, steps
from deploychain.audit.tree import walk

_MAKES = frozenset(
    {"torch.tensor", "torch.as_tensor", "torch.zeros", "torch.ones", "torch.full", "torch.cuda.FloatTensor",
     "torch.randn", "torch.empty", "torch.eye", "torch.arange", "torch.rand"}
)  # fmt: skip
_FROM_PIL = frozenset({"ToTensor", "PILToTensor", "ToImage", "Resize", "RandomResizedCrop", "ToPILImage"})


class Workers(Enum):
    """What a file shows of the processes that load its data."""

    SOME = 1
    NONE = 2  # its loaders work in the main process
    BY_SETTING = 3
    NOT_SHOWN = 4  # no loader in this file


def worker_processes(ctx: Context) -> Workers:
    """Whether some DataLoader of the file has worker processes that are forked."""
    numbers: list[object] = []
    for call, scope in ctx.calls_named("DataLoader", "WebLoader"):
        if any(k.arg is None for k in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args):
            numbers.append(UNKNOWN)
            continue
        given = argument(call, 5, "num_workers")
        numbers.append(0 if given is None else ctx.symbols.const(given, scope))
    if not numbers:
        return Workers.NOT_SHOWN
    if any(isinstance(n, int) and n > 0 for n in numbers):
        return Workers.BY_SETTING if "spawn" in ctx.text else Workers.SOME
    return Workers.BY_SETTING if any(not isinstance(n, int) for n in numbers) else Workers.NONE


def made_for_each_item(ctx: Context, call: ast.Call) -> bool:
    """Where one item is made, or a constant that is used there."""
    scope = ctx.symbols.scope(call)
    return (
        _is_constant(ctx, call)
        or _in_lambda(ctx, scope)
        or scope.name in ("__getitem__", "__iter__", "__call__", "forward")
    )


def cuda_in_workers(ctx: Context, images: Images) -> Iterator[ast.Call]:
    """The calls that make or move a tensor to CUDA there."""
    if "cuda" not in ctx.text or not any(w in ctx.text for w in ("Dataset", "Lambda", "Compose")):
        return
    transforms = _transform_classes(ctx)
    shared = {name for cls in _datasets(ctx) for name in _names_read(cls)} | set(_names_in_lambdas(ctx))
    for cls in transforms:
        shared |= set(_names_read(cls))
    for call in ctx.symbols.calls:
        scope = ctx.symbols.scope(call)
        if not _on_cuda(ctx, call, scope):
            continue
        owner = ctx.symbols.class_of(scope)
        if owner is None and not _in_lambda(ctx, scope):
            known = bool(_bound_to(ctx, call) & shared) or _of_helper(ctx, scope)
            found = known and _is_constant(ctx, call)
        else:
            found = owner is None or _is_dataset(ctx, owner) or owner in transforms or _in_lambda(ctx, scope)
        if found:
            yield call


def _on_cuda(ctx: Context, call: ast.Call, scope: Scope) -> bool:
    name = ctx.symbols.qual(call.func) or ""
    if name == "torch.cuda.FloatTensor":
        return True
    device = keyword(call, "device")
    if name in _MAKES:
        return device is not None and _may_be_cuda(ctx, device, scope)
    if not isinstance(call.func, ast.Attribute) or name:
        return False
    if call.func.attr == "cuda":
        return not call.args
    given = argument(call, 0, "device")
    return call.func.attr == "to" and given is not None and _may_be_cuda(ctx, given, scope)


def _may_be_cuda(ctx: Context, expr: ast.expr, scope: Scope, depth: int = 4) -> bool:
    if str(ctx.symbols.const(expr, scope)).startswith("cuda"):
        return True
    for ref in ctx.symbols.resolve(expr, scope) if depth else ():  # `device = torch.device(device)`
        value = ref.expr
        if isinstance(value, ast.Call) and ctx.symbols.qual(value.func, ref.scope) == "torch.device" and value.args:
            if _may_be_cuda(ctx, value.args[0], ref.scope, depth - 1):
                return True
        elif ctx.amp.device(value, ref.scope) == "cuda":
            return True
    return False


def _is_constant(ctx: Context, call: ast.Call) -> bool:
    """The call starts from a tensor that is written there, and not from a model or a batch."""
    inner: ast.expr = call
    while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and not ctx.symbols.qual(inner.func):
        inner = inner.func.value
    return isinstance(inner, ast.Call) and (ctx.symbols.qual(inner.func) or "") in _MAKES


def _bound_to(ctx: Context, call: ast.AST) -> set[str]:
    parent = ctx.symbols.parent.get(call)
    while isinstance(parent, ast.Call | ast.Attribute | ast.Subscript):
        parent = ctx.symbols.parent.get(parent)
    return {name for t in parent.targets if (name := dotted(t))} if isinstance(parent, ast.Assign) else set()


def _of_helper(ctx: Context, function: Scope) -> bool:
    """A function that a dataset calls for its constants."""
    owners = [ctx.symbols.class_of(ctx.symbols.scope(site)) for site in ctx.symbols.call_sites(function)]
    return any(owner is not None and _is_dataset(ctx, owner) for owner in owners)


def _datasets(ctx: Context) -> list[Scope]:
    return [c for c in ctx.symbols.classes.values() if _is_dataset(ctx, c)]


def _is_dataset(ctx: Context, cls: Scope) -> bool:
    for home in ctx.symbols.bases(cls):
        for base in getattr(home.node, "bases", []):
            name = ctx.symbols.qual(base, home) or ""
            if name.startswith("torchvision.datasets.") or (
                name.startswith("torch.utils.data.") and name.endswith(("Dataset", "MapDataPipe", "IterDataPipe"))
            ):
                return True
    return False


def _transform_classes(ctx: Context) -> list[Scope]:
    """Classes of this file that are a step of a Compose for images from files, or a dataset's `transform`."""
    found: list[Scope] = []
    datasets = _datasets(ctx)
    for call in ctx.symbols.calls:
        if last_name(call.func) in COMPOSES and call.args:
            made = [s.expr for s in steps(ctx, call) if isinstance(s.expr, ast.Call)]
            names = [last_name(e.func) for e in made]
            if not _FROM_PIL & set(names):
                continue
        else:
            given = keyword(call, "transform")
            names = [last_name(given.func)] if isinstance(given, ast.Call) else []
            cls = ctx.symbols.classes.get(last_name(call.func))
            if cls is not None and cls in datasets:  # Photos(rows, ToneNormalize())
                names += _made(ctx, call)
        found += [ctx.symbols.classes[n] for n in names if n in ctx.symbols.classes]
    return found


def _made(ctx: Context, call: ast.Call) -> Iterator[str]:
    """The callable objects of this file, no modules, that a dataset is given."""
    for given in (*call.args, *(k.value for k in call.keywords)):
        for ref in ctx.symbols.resolve(given, ctx.symbols.scope(call)):
            made = ref.expr
            cls = ctx.symbols.classes.get(last_name(made.func)) if isinstance(made, ast.Call) else None
            if cls is None or ctx.is_module_class(cls):
                continue
            if any(isinstance(s, ast.FunctionDef) and s.name == "__call__" for s in cls.body):
                yield cls.name


def _names_read(cls: Scope) -> Iterator[str]:
    for node in walk(cls.node):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id


def _names_in_lambdas(ctx: Context) -> Iterator[str]:
    for call in ctx.symbols.calls:
        if (
            last_name(call.func) == "Lambda"
            and call.args
            and isinstance(call.args[0], ast.Lambda)
            and not _v2(ctx, call)
        ):
            for node in walk(call.args[0].body):
                if isinstance(node, ast.Name):
                    yield node.id


def _in_lambda(ctx: Context, scope: Scope) -> bool:
    parent = ctx.symbols.parent.get(scope.node) if isinstance(scope.node, ast.Lambda) else None
    return isinstance(parent, ast.Call) and last_name(parent.func) == "Lambda" and not _v2(ctx, parent)


def _v2(ctx: Context, call: ast.Call) -> bool:
    return "v2" in (ctx.symbols.qual(call.func) or "")
