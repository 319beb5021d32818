"""What a function that autocast knows nothing of does: compiled code that it calls, dtypes that it looks at."""

from __future__ import annotations

import ast
import re

from deploychain.audit.astnames import last_name
from deploychain.audit.context import Context
from deploychain.audit.tree import children, walk
from deploychain.audit.values import words

_ALLOCATES = words(
    "empty zeros ones full tensor arange empty_like zeros_like ones_like full_like new_empty new_zeros new_ones "
    "new_full as_tensor randn rand linspace eye"
)
_COMPILED = re.compile(r"^(_C|_ext|ext|_cuda|_kernels?)$|(_cuda|_ext|_cpp|_kernels?|_native)$|^cuda_")
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


def is_extension(ctx: Context, call: ast.Call) -> bool:
    """A call into compiled code: `_ext.forward(...)`, `torch.ops.lib.op(...)`, `load_inline`, Triton with tl.dot."""
    name = ctx.symbols.qual(call.func) or ""
    if name.startswith("torch.ops."):
        return not name.startswith(("torch.ops.aten.", "torch.ops.load_library"))
    parts = name.split(".")
    if len(parts) >= 2 and any(_COMPILED.search(p) for p in parts[:-1]):
        return not name.startswith("torch.")
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
                if any(isinstance(n, ast.Compare) for n in walk(node.func.value)):
                    stack.append(node.func.value)
                    continue
                if leaf in ("float", "type_as", "half") or any(names_dtype(n) for a in node.args for n in walk(a)):
                    return True
            if leaf == "autocast":
                return True
        stack += children(node)
    return False


def names_dtype(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and (node.attr == "dtype" or node.attr.startswith(("float", "bfloat")))
