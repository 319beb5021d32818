"""R13: custom operators and autograd Functions know nothing of autocast unless told."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from deploychain.audit.astnames import Ref, Scope, last_name
from deploychain.audit.context import NOTE, WARNING, Context, Rule
from deploychain.audit.finding import Finding
from deploychain.audit.rules.compiled_code import autocast_is_off, casts, is_extension, run_by
from deploychain.audit.rules.custom_operators import INTEGERS, severity, unregistered_operators
from deploychain.audit.rules.direct_calls import direct_calls
from deploychain.audit.tree import walk
from deploychain.audit.values import words

_MIXING = words(
    "mm matmul bmm addmm linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d einsum baddbmm addmv mv "
    "t_mm addbmm tensordot inner outer ger dot conv1d_input conv2d_input conv3d_input conv1d_weight conv2d_weight conv3d_weight "
    "scaled_dot_product_attention bilinear chain_matmul multi_dot"
)
_CUDA_ONLY = "torch.cuda.amp.custom_fwd looks at CUDA autocast only"
_CUSTOM_FWD = frozenset({"torch.amp.custom_fwd", "torch.cuda.amp.custom_fwd"})


def check(ctx: Context) -> Iterator[Finding]:
    plain = _trains_in_fp32(ctx)
    classes = () if plain else ctx.symbols.classes.values()
    yield from _in_short(f for cls in classes if _is_function(ctx, cls) for f in _function(ctx, cls))
    yield from _misplaced(ctx)
    yield from _in_short(unregistered_operators(ctx))
    yield from direct_calls(ctx)


def _in_short(found: Iterable[Finding]) -> Iterator[Finding]:
    """Notes on the same thing are one: a file of operators may hold fifty that nothing is known to run under autocast."""
    notes: list[Finding] = []
    for finding in found:
        if finding.severity is NOTE and not finding.message.startswith(_CUDA_ONLY):
            notes.append(finding)
        else:
            yield finding
    if notes:
        first = min(notes, key=lambda f: f.order)
        rest = f" ({len(notes) - 1} more in this file)" if len(notes) > 1 else ""
        yield replace(first, message=first.message + rest)


_HALF = re.compile(r"autocast|half|float16|fp16|bf16|precision|[Ss]caler|\bamp\b|accelerat", re.IGNORECASE)


def _trains_in_fp32(ctx: Context) -> bool:
    """The training is in the file, and nothing of AMP is."""
    return ".backward(" in ctx.text and ".step(" in ctx.text and not ctx.says(_HALF)


def _methods(cls: Scope) -> dict[str, ast.FunctionDef]:
    return {s.name: s for s in cls.body if isinstance(s, ast.FunctionDef)}


def _decorators(ctx: Context, method: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, ast.expr]:
    """The decorators by the name of what they are, also where they were given another name or arguments before."""
    found = {}
    for decorator in method.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        found[last_name(target)] = decorator
        for ref in (
            Ref(decorator, ctx.symbols.scope(decorator)),
            *ctx.symbols.resolve(target, ctx.symbols.scope(target)),
        ):
            made = ref.expr
            if not isinstance(made, ast.Call):
                continue
            inner = made.args[0] if last_name(made.func) == "partial" and made.args else made.func
            name = ctx.symbols.qual(inner, ref.scope) or last_name(inner)
            found[name.rpartition(".")[2]] = decorator
    return found


def _is_function(ctx: Context, cls: Scope) -> bool:
    for home in ctx.symbols.bases(cls):
        for base in getattr(home.node, "bases", []):
            name = ctx.symbols.qual(base, home) or ""
            if name.startswith("torch.autograd.") and name.endswith("Function"):
                return True
    return False


def _function(ctx: Context, cls: Scope) -> Iterator[Finding]:
    methods = {name: m for home in reversed(list(ctx.symbols.bases(cls))) for name, m in _methods(home).items()}
    if not {"forward", "backward"} & _methods(cls).keys():
        return
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
                f"{_CUDA_ONLY}: under CPU or XPU autocast it does nothing",
                'torch.amp.custom_fwd(device_type="cuda"), with torch.amp.custom_bwd(device_type="cuda") on backward',
            )  # fmt: skip
        if not any("custom_bwd" in name or "amp" in name for name in on_backward):
            yield ctx.finding(
                "R13", backward, WARNING,
                f"{cls.name}.forward has custom_fwd, but backward has no custom_bwd: it runs with another autocast state than forward",
                '@staticmethod\n@torch.amp.custom_bwd(device_type="cuda")\ndef backward(ctx, ...):',
            )  # fmt: skip
        return
    run = [*run_by(ctx, forward), *run_by(ctx, backward)]
    if any(casts(method) for method in run) or _only_raises(backward):
        return
    first = 0 if "setup_context" in methods else 1
    reason = _mixes(ctx, run)
    frozen = not reason.startswith("calls")  # a second factor needs no gradient: the kernel of a blur
    mixed = _tensors(forward.args.args[first:], forward.args.defaults, None if frozen else backward) > 1
    level = severity(ctx)
    # One tensor and its indices: nothing else is there to meet, and the kernel may take float16.
    alone = level is NOTE and _tensors(forward.args.args[first:], forward.args.defaults, None) < 2
    if reason and (mixed or (not frozen and not alone)) and not _in_fp32_only(ctx, cls):
        what = (
            "under autocast float16 and float32 tensors meet in it, which raises in backward (\"expected ... same dtype\") or misreads "
            "memory in a kernel without checks"
        ) if mixed else "under autocast its kernel gets a float16 activation, which one that was written for float32 refuses or misreads"  # fmt: skip
        yield ctx.finding(
            "R13", cls.node, level,
            f"autograd.Function {cls.name} {reason} and has no custom_fwd/custom_bwd: {what}",
            '@staticmethod\n@torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)\ndef forward(ctx, ...):\n'
            '@staticmethod\n@torch.amp.custom_bwd(device_type="cuda")\ndef backward(ctx, ...):',
        )  # fmt: skip


_NO_TENSOR = words("int float bool str bytes dtype device Size Callable")


def _tensors(inputs: list[ast.arg], defaults: list[ast.expr], backward: ast.FunctionDef | None) -> int:
    """How many of the inputs may be floating-point tensors: no settings by annotation or default, nor the last ones,
    for which backward, where that tells, always returns None."""
    inside = walk(backward) if backward is not None else ()
    results = [n.value.elts for n in inside if isinstance(n, ast.Return) and isinstance(n.value, ast.Tuple)]
    same = bool(results) and all(len(r) <= len(inputs) for r in results)
    without = [
        same and all(isinstance(x, ast.Constant) for r in results for x in r[i : i + 1]) for i in range(len(inputs))
    ]
    while without and without[-1]:
        without.pop()
    given = dict(zip([a.arg for a in inputs][len(inputs) - len(defaults) :], defaults, strict=False))
    return sum(
        not (a.annotation is not None and last_name(a.annotation) in _NO_TENSOR)
        and getattr(given.get(a.arg), "value", None) is None
        and not INTEGERS.search(a.arg)
        for a in inputs[: len(without)]
    )


def _in_fp32_only(ctx: Context, cls: Scope) -> bool:
    """Every `Name.apply(...)` of the file is in a region with autocast off."""
    sites = [
        c
        for c in ctx.symbols.calls
        if isinstance(c.func, ast.Attribute) and c.func.attr == "apply" and last_name(c.func.value) == cls.name
    ]
    return bool(sites) and all(autocast_is_off(ctx, c) for c in sites)


def _mixes(ctx: Context, methods: Iterable[ast.FunctionDef | ast.AsyncFunctionDef]) -> str:
    for method in methods:
        for node in walk(method):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
                return "multiplies matrices"
            if not isinstance(node, ast.Call):
                continue
            leaf = last_name(node.func)
            name = ctx.symbols.qual(node.func) or ""
            if leaf in _MIXING and (not name or name.startswith("torch.")):
                return "multiplies matrices"
            if is_extension(ctx, node):
                return f"calls compiled code (`{ctx.str(node.func)}`)"
    return ""


def _only_raises(method: ast.FunctionDef) -> bool:
    return isinstance(method.body[-1], ast.Raise)


def _misplaced(ctx: Context) -> Iterator[Finding]:
    """custom_fwd on what is no autograd.Function: methods of modules, functions, and `Net.forward = custom_fwd(Net.forward)`."""
    if "custom_fwd" not in ctx.text:
        return
    for function in ctx.symbols.function_scopes:
        node = function.node
        assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        decorator = _decorators(ctx, node).get("custom_fwd") if node.decorator_list else None
        if decorator is None:
            continue
        if function.owner is not None and ctx.is_module_class(function.owner):
            yield _on_module(ctx, decorator, f"{function.owner.name}.{function.name}")
        elif function.owner is None and function.parameters and function.parameters[0] not in ("ctx", "self", "cls"):
            yield _on_module(ctx, decorator, f"the function {function.name}")
    for node in ctx.symbols.nodes(ast.Assign):
        target, value = node.targets[0], node.value
        if not (isinstance(target, ast.Attribute) and target.attr == "forward" and isinstance(value, ast.Call)):
            continue
        scope = ctx.symbols.scope(node)
        made = [
            value.func,
            *(r.expr.func for r in ctx.symbols.resolve(value.func, scope) if isinstance(r.expr, ast.Call)),
        ]
        owner = ctx.symbols.classes.get(last_name(target.value))
        if any(ctx.symbols.qual(f) in _CUSTOM_FWD for f in made) and (owner is None or not _is_function(ctx, owner)):
            yield _on_module(ctx, value, ctx.str(target))


def _on_module(ctx: Context, node: ast.AST, what: str) -> Finding:
    casts_inputs = "cast_inputs" in ast.unparse(node) or any(
        isinstance(r.expr, ast.Call) and "cast_inputs" in ast.unparse(r.expr)
        for part in walk(node) if isinstance(part, ast.Name | ast.Attribute)
        for r in ctx.symbols.resolve(part, ctx.symbols.scope(node))
    )  # fmt: skip
    told = (
        "casts under autocast only, so that outside of it the dtypes are the caller's, "
        if casts_inputs
        else "casts nothing and turns nothing off: the code runs as it would without it, "
    )
    return ctx.finding(
        "R13", node, NOTE if casts_inputs else WARNING,
        f"custom_fwd is made for autograd.Function; on {what} it {told}and it writes private attributes on the first argument",
        'def forward(self, x):\n    with torch.autocast("cuda", enabled=False):\n        return self._forward(x.float())',
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
    trigger=r"autograd\.|import .*\bFunction\b|custom_op|triton_op|custom_fwd|Library\(|library\.define|cpp_extension|CDLL|"
    r"import.*(_C|_ext|_cuda|_kernels?)\b|get_kernel|load_kernel",
)
