"""What a function that autocast knows nothing of does: compiled code that it calls, dtypes that it looks at."""

from __future__ import annotations

import ast
import re

from deploychain.audit.astnames import Scope, last_name
from deploychain.audit.context import Context
from deploychain.audit.tree import children, walk
from deploychain.audit.values import words

_ALLOCATES = words(
    "empty zeros ones full tensor arange empty_like zeros_like ones_like full_like new_empty new_zeros new_ones "
    "new_full as_tensor randn rand linspace eye"
)
_COMPILED = re.compile(r"^(_C|_ext|ext|_cuda|_kernels?)$|(_cuda|_ext|_cpp|_kernels?|_native)$|^cuda_")
_PRIVATE = re.compile(r"^(_C|_ext|ext|_cuda)$")  # whatever is below such a module is compiled as well
_NO_TENSOR = words("shape size dim ndim numel device dtype stride itemsize element_size nbytes len")
_DEEP = 3
ASKS_AUTOCAST = words("is_autocast_enabled get_autocast_dtype get_autocast_gpu_dtype")
_LOADERS = ("torch.utils.cpp_extension.load", "ctypes.", "cupy.Raw")
_LOADER_LEAVES = words("load_ext load_inline CDLL RawKernel RawModule get_kernel load_kernel")


def autocast_is_off(ctx: Context, node: ast.AST) -> bool:
    """Inside `with torch.autocast("cuda", enabled=False):`"""
    current = ctx.symbols.parent.get(node)
    while current is not None and not isinstance(current, ast.FunctionDef | ast.ClassDef):
        if isinstance(current, ast.With):
            for item in current.items:
                region = ctx.amp.region(item.context_expr, ctx.symbols.scope(current))
                if region is not None:
                    return region.enabled is False
        current = ctx.symbols.parent.get(current)
    return False


def autocast_is_used(ctx: Context) -> bool:
    """Some region of the file turns autocast on."""
    for call in ctx.symbols.calls:
        if last_name(call.func) == "autocast":
            region = ctx.amp.region(call, ctx.symbols.scope(call))
            if region is not None and region.enabled is not False:
                return True
    return False


def is_extension(ctx: Context, call: ast.Call) -> bool:
    """A call into compiled code: `_ext.forward(...)`, `torch.ops.lib.op(...)`, `load_inline`, Triton with tl.dot."""
    name = ctx.symbols.qual(call.func) or ""
    if name.startswith("torch.ops."):
        return not name.startswith(("torch.ops.aten.", "torch.ops.load_library"))
    parts = name.split(".")
    if len(parts) >= 2 and (_COMPILED.search(parts[-2]) or any(_PRIVATE.match(p) for p in parts[:-1])):
        return not name.startswith("torch.") and _gets_tensors(ctx, call)
    if isinstance(call.func, ast.Subscript):  # kernel[grid](...)
        kernel = ctx.symbols.local_function(call.func.value, ctx.symbols.scope(call))
        return kernel is not None and any(
            isinstance(n, ast.Call) and last_name(n.func) == "dot" for n in walk(kernel.node)
        )
    holder = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    for ref in ctx.symbols.resolve(holder, ctx.symbols.scope(call)):
        if isinstance(ref.expr, ast.Call):
            made = ctx.symbols.qual(ref.expr.func, ref.scope) or ""
            if made.startswith(_LOADERS) or last_name(ref.expr.func) in _LOADER_LEAVES:
                return True
    return False


def _gets_tensors(ctx: Context, call: ast.Call) -> bool:
    """Some argument may be a tensor: `block_size(x.shape[-1])` and `core_count()` compute settings."""
    given = [a.value if isinstance(a, ast.Starred) else a for a in (*call.args, *(k.value for k in call.keywords))]
    return any(_may_be_tensor(ctx, a, ctx.symbols.scope(call)) for a in given)


def _may_be_tensor(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    for ref in ctx.symbols.resolve(expr, scope):
        e: ast.AST = ref.expr
        while isinstance(e, ast.Subscript):
            e = e.value
        if isinstance(e, ast.Call):
            e = e.func
        if isinstance(e, ast.Constant | ast.Compare | ast.Lambda) or last_name(e) in _NO_TENSOR:
            continue
        binding = ctx.symbols.bindings(e.id, ref.scope) if isinstance(e, ast.Name) else []
        if binding and all(b.value is not None and last_name(b.value) in _NO_TENSOR for b in binding):
            continue  # `rows, columns = x.shape`
        return True
    return False


def run_by(
    ctx: Context, method: ast.FunctionDef | ast.AsyncFunctionDef, deep: int = 1, kernels: bool = False
) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """A function, and the functions of the file that it calls by name, `deep` calls down."""
    found = [method]
    last = found
    for _ in range(deep):
        below: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
        for node in (n for f in last for n in walk(f)):
            target = node.func if isinstance(node, ast.Call) else None
            if isinstance(target, ast.Subscript) and kernels:  # kernel[grid](...)
                target = target.value
            if isinstance(target, ast.Name):
                called = ctx.symbols.local_function(target, ctx.symbols.scope(node))
                if called is not None and isinstance(called.node, ast.FunctionDef) and called.node not in found:
                    found.append(called.node)
                    below.append(called.node)
        last = below
    return found


def sees_to_dtypes(ctx: Context, method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """The function, or one that it hands its work to, casts or looks at dtypes, or is told the dtype to use."""
    every = (*method.args.posonlyargs, *method.args.args, *method.args.kwonlyargs)
    if any(a.annotation is not None and last_name(a.annotation) == "dtype" for a in every):
        return True
    return any(casts(f) for f in run_by(ctx, method, _DEEP, kernels=True))


def casts(method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """The code looks at the dtypes of its inputs, or casts them: it knows about mixed inputs.

    Memory that is made in the dtype of an input, and a mask that becomes a number, say nothing of the kind.
    """
    stack: list[ast.AST] = list(method.body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Attribute) and node.attr == "dtype":
            return True
        if isinstance(node, ast.Call):
            leaf = last_name(node.func)
            if leaf in _ALLOCATES:
                stack += node.args
                continue
            if isinstance(node.func, ast.Attribute) and leaf in ("to", "type_as", "float", "half", "type"):
                loaded = isinstance(node.func.value, ast.Call) and last_name(node.func.value.func) == "load"
                if not loaded and any(isinstance(n, ast.Compare) for n in walk(node.func.value)):
                    stack.append(node.func.value)
                    continue
                if leaf in ("float", "type_as", "half") or any(
                    names_dtype(n) for a in (*node.args, *(k.value for k in node.keywords)) for n in walk(a)
                ):
                    return True
            if leaf == "autocast" or leaf in ASKS_AUTOCAST:
                return True
        stack += children(node)
    return False


def names_dtype(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and (node.attr == "dtype" or node.attr.startswith(("float", "bfloat")))
