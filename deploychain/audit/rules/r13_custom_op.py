"""R13: custom operators and autograd Functions know nothing of autocast unless told."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, last_name
from deploychain.audit.context import ERROR, NOTE, WARNING, Context, Rule
from deploychain.audit.finding import Finding
from deploychain.audit.values import words

_MIXING = words("mm matmul bmm addmm linear conv1d conv2d conv3d conv_transpose2d einsum baddbmm addmv mv t_mm")


def check(ctx: Context) -> Iterator[Finding]:
    for cls in ctx.symbols.classes.values():
        if _is_function(ctx, cls):
            yield from _function(ctx, cls)
        elif ctx.is_module_class(cls):
            yield from _module(ctx, cls)
    yield from _custom_ops(ctx)


def _methods(cls: Scope) -> dict[str, ast.FunctionDef]:
    return {s.name: s for s in cls.body if isinstance(s, ast.FunctionDef)}


def _decorators(ctx: Context, method: ast.FunctionDef) -> dict[str, ast.expr]:
    found = {}
    for decorator in method.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        found[last_name(target)] = decorator
        if isinstance(decorator, ast.Call) and last_name(target) == "partial" and decorator.args:
            found[last_name(decorator.args[0])] = decorator
    return found


def _is_function(ctx: Context, cls: Scope) -> bool:
    for base in getattr(cls.node, "bases", []):
        name = ctx.symbols.qual(base, cls) or ""
        if name in ("torch.autograd.Function", "torch.autograd.function.Function"):
            return True
    return False


def _function(ctx: Context, cls: Scope) -> Iterator[Finding]:
    methods = _methods(cls)
    forward, backward = methods.get("forward"), methods.get("backward")
    if forward is None or backward is None:
        return
    on_forward, on_backward = _decorators(ctx, forward), _decorators(ctx, backward)
    decorated = any("custom_fwd" in name or "amp" in name for name in on_forward)
    if decorated:
        stale = on_forward.get("custom_fwd")
        target = stale.func if isinstance(stale, ast.Call) else stale
        if target is not None and ctx.symbols.qual(target) == "torch.cuda.amp.custom_fwd" and not _old_torch(ctx):
            yield ctx.finding(
                "R13", stale or forward, NOTE,
                "torch.cuda.amp.custom_fwd looks at CUDA autocast only: under CPU or XPU autocast it does nothing",
                'torch.amp.custom_fwd(device_type="cuda"), with torch.amp.custom_bwd(device_type="cuda") on backward',
            )  # fmt: skip
        if not any("custom_bwd" in name or "amp" in name for name in on_backward):
            yield ctx.finding(
                "R13", backward, WARNING,
                f"{cls.name}.forward has custom_fwd, but backward has no custom_bwd: it runs with another autocast state than forward",
                '@staticmethod\n@torch.amp.custom_bwd(device_type="cuda")\ndef backward(ctx, ...):',
            )  # fmt: skip
        return
    if _casts(forward) or _casts(backward) or _only_raises(backward):
        return
    inputs = [a.arg for a in forward.args.args[1:]]
    reason = _mixes(ctx, forward, backward, cls)
    if reason and (len(inputs) >= 2 or reason.startswith("calls")):
        yield ctx.finding(
            "R13", cls.node, WARNING,
            f"autograd.Function {cls.name} {reason} and has no custom_fwd/custom_bwd: under autocast float16 and float32 tensors "
            "meet in it, which raises in backward (\"expected ... same dtype\") or misreads memory in a kernel without checks",
            '@staticmethod\n@torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)\ndef forward(ctx, ...):\n'
            '@staticmethod\n@torch.amp.custom_bwd(device_type="cuda")\ndef backward(ctx, ...):',
        )  # fmt: skip


def _mixes(ctx: Context, forward: ast.FunctionDef, backward: ast.FunctionDef, cls: Scope) -> str:
    for method in (forward, backward):
        for node in ast.walk(method):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
                return "multiplies matrices"
            if not isinstance(node, ast.Call):
                continue
            leaf = last_name(node.func)
            name = ctx.symbols.qual(node.func) or ""
            if leaf in _MIXING and (not name or name.startswith("torch.")):
                return "multiplies matrices"
            if _is_extension(ctx, node):
                return f"calls compiled code (`{ctx.str(node.func)}`)"
    return ""


def _is_extension(ctx: Context, call: ast.Call) -> bool:
    """A call into a compiled module: `_ext.forward(...)`, `torch.ops.lib.op(...)`, a `load_inline` module."""
    name = ctx.symbols.qual(call.func) or ""
    if name.startswith("torch.ops."):
        return not name.startswith("torch.ops.aten.")
    parts = name.split(".")
    if len(parts) >= 2 and any(p in ("_C", "_ext", "ext") or p.endswith(("_cuda", "_ext", "_cpp")) for p in parts[:-1]):
        return not name.startswith("torch.")
    if isinstance(call.func, ast.Attribute):
        for ref in ctx.symbols.resolve(call.func.value, ctx.symbols.scope(call)):
            if isinstance(ref.expr, ast.Call):
                made = ctx.symbols.qual(ref.expr.func, ref.scope) or ""
                if made.startswith("torch.utils.cpp_extension.load"):
                    return True
    return False


def _only_raises(method: ast.FunctionDef) -> bool:
    return isinstance(method.body[-1], ast.Raise)


def _casts(method: ast.FunctionDef) -> bool:
    """The code looks at dtypes or casts: it knows about mixed inputs."""
    for node in ast.walk(method):
        if isinstance(node, ast.Attribute) and node.attr == "dtype":
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("float", "type_as", "autocast", "half"):
                return True
            if node.func.attr == "to" and any(
                isinstance(n, ast.Attribute) and (n.attr == "dtype" or n.attr.startswith(("float", "bfloat")))
                for n in ast.walk(node)
            ):
                return True
    return False


def _module(ctx: Context, cls: Scope) -> Iterator[Finding]:
    forward = _methods(cls).get("forward")
    if forward is None:
        return
    decorator = _decorators(ctx, forward).get("custom_fwd")
    if decorator is not None:
        yield ctx.finding(
            "R13", decorator, ERROR,
            f"custom_fwd is made for autograd.Function; on {cls.name}.forward it does nothing outside autocast and writes private "
            "attributes on the module inside it",
            'def forward(self, x):\n    with torch.autocast("cuda", enabled=False):\n        return self._forward(x.float())',
        )  # fmt: skip


def _custom_ops(ctx: Context) -> Iterator[Finding]:
    if "custom_op" not in ctx.text and "Library(" not in ctx.text and "library.define" not in ctx.text:
        return
    if "register_autocast" in ctx.text or "Autocast" in ctx.text:
        return
    for function in ctx.symbols.function_scopes:
        node = function.node
        assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for decorator in node.decorator_list:
            if not isinstance(decorator, ast.Call) or ctx.symbols.qual(decorator.func) != "torch.library.custom_op":
                continue
            tensors = [a for a in node.args.args if a.annotation is not None and last_name(a.annotation) == "Tensor"]
            if len(tensors) >= 2 and "backward" not in node.name:  # autocast is off in the backward pass
                label = ctx.symbols.const(decorator.args[0], function) if decorator.args else node.name
                yield _unregistered(ctx, decorator, str(label), len(tensors))
    for call in ctx.symbols.calls:
        name = ctx.symbols.qual(call.func) or ""
        if name == "torch.library.define" and len(call.args) > 1:
            schema, label = (
                ctx.symbols.const(call.args[1], ctx.symbols.scope(call)),
                ctx.symbols.const(call.args[0], ctx.symbols.scope(call)),
            )
        elif (
            isinstance(call.func, ast.Attribute) and call.func.attr == "define" and call.args and _is_library(ctx, call)
        ):
            schema = label = ctx.symbols.const(call.args[0], ctx.symbols.scope(call))
        else:
            continue
        if (
            isinstance(schema, str) and schema.split("->")[0].count("Tensor") >= 2 and "!" not in schema
        ):  # out= is never cast
            yield _unregistered(ctx, call, str(label).split("(")[0], schema.split("->")[0].count("Tensor"))


def _is_library(ctx: Context, call: ast.Call) -> bool:
    assert isinstance(call.func, ast.Attribute)
    for ref in ctx.symbols.resolve(call.func.value, ctx.symbols.scope(call)):
        if isinstance(ref.expr, ast.Call) and ctx.symbols.qual(ref.expr.func, ref.scope) == "torch.library.Library":
            return True
    return False


def _unregistered(ctx: Context, node: ast.AST, label: str, tensors: int) -> Finding:
    return ctx.finding(
        "R13", node, WARNING,
        f"custom operator {label.strip()} takes {tensors} tensors and has no autocast rule: under autocast its kernel gets float16 "
        "activations next to float32 weights",
        f'torch.library.register_autocast("{label}", "cuda", torch.float32)',
    )  # fmt: skip


def _old_torch(ctx: Context) -> bool:
    from deploychain.audit.rules.r14_stale_api import supports_old_torch

    return supports_old_torch(ctx)


RULE = Rule(
    id="R13",
    name="custom-op-policy",
    title="A custom operator has no autocast rule",
    how="code, model, run",
    belief="Decorate forward with torch.cuda.amp.custom_fwd(cast_inputs=torch.float32).",
    truth=(
        "An unregistered operator gets mixed dtypes (x float16, w float32 reached the kernel). Built-in ops then raise; an "
        "autograd.Function fails in backward. custom_fwd is for autograd.Function: on a Module it is a no-op outside autocast. "
        "torch.library.register_autocast is the tool for operators."
    ),
    experiment="A custom operator of two tensors under autocast, before and after register_autocast.",
    bad='@torch.library.custom_op("lib::scale", mutates_args=())\ndef scale(x: Tensor, w: Tensor) -> Tensor: ...',
    good='torch.library.register_autocast("lib::scale", "cuda", torch.float32)',
    check=check,
    trigger=r"autograd\.|\(Function\)|custom_op|custom_fwd|Library\(|library\.define",
)
