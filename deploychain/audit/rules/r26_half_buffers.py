"""R26: BatchNorm statistics do not survive float16."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, keyword, last_name
from deploychain.audit.batchnorm import NORMS, BatchNorms
from deploychain.audit.batchnorm_tests import chosen, tested_for
from deploychain.audit.branches import taken
from deploychain.audit.context import WARNING, Context, Rule
from deploychain.audit.finding import Finding
from deploychain.audit.rules.half_statistics import halved_statistics, is_half
from deploychain.audit.tree import walk

_FOLDS = (
    "fuse_conv_bn",
    "fuse_modules",
    "fold_batch",
    "fold_bn",
    "fuse_bn",
    "fuse_conv_and_bn",
    "fuse_model",
    ".fuse()",
    "optimization import fuse",
    "optimization.fuse",
    "switch_to_deploy",
    "reparameterize_model",
    "merge_bn",
    "fp16_utils",
)


def check(ctx: Context) -> Iterator[Finding]:
    norms = BatchNorms(ctx.symbols)
    restored = _restored(ctx)
    lines: set[int] = set()
    for call in ctx.symbols.calls:
        scope = ctx.symbols.scope(call)
        module = _made_half(ctx, call, scope)
        if module is None or restored or call.lineno in lines or taken(ctx.amp, call) is False:
            continue
        asked = chosen(ctx.symbols, call)
        where = "named in the test" if asked else norms.where(module, scope) if asked is None else None
        if where is not None:
            lines.add(call.lineno)
            yield _finding(ctx, call, where)
    yield from _whole_run(ctx, norms, restored)
    yield from _by_default(ctx, norms, restored)
    for node, what in halved_statistics(ctx, norms):
        if getattr(node, "lineno", 0) not in lines:
            lines.add(getattr(node, "lineno", 0))
            yield _stored(ctx, node, what)


def _made_half(ctx: Context, call: ast.Call, scope: Scope) -> ast.expr | None:
    """The module of `x.half()`, `x.to(torch.float16)`, `x.apply(lambda m: m.half())`, `BatchNorm2d(n, dtype=torch.half)`."""
    if isinstance(call.func, ast.Attribute):
        if call.func.attr == "apply" and len(call.args) == 1 and isinstance(call.args[0], ast.Lambda):
            return call.func.value if is_half(ctx, call.args[0].body, scope) else None
        if call.func.attr in ("half", "to", "type"):
            return call.func.value if is_half(ctx, call, scope) else None
        if call.func.attr == "init_inference" and call.args:  # DeepSpeed casts the module
            dtype = keyword(call, "dtype")
            return call.args[0] if dtype is not None and ctx.amp.dtype(dtype, scope) == "fp16" else None
    name = ctx.symbols.qual(call.func, scope) or ""
    dtype = keyword(call, "dtype", "torch_dtype")
    if dtype is None or not (
        name.endswith("from_pretrained") or (name.startswith("torch.nn.") and last_name(call.func) in NORMS)
    ):
        return None
    return call if ctx.amp.dtype(dtype, scope) == "fp16" else None


def _whole_run(ctx: Context, norms: BatchNorms, restored: bool) -> Iterator[Finding]:
    """`Trainer(precision="16-true")`: Lightning and Fabric make the module half, buffers and all."""
    if restored or "16-true" not in ctx.text:
        return
    for call, scope in ctx.calls_named("Trainer", "Fabric"):
        if ctx.symbols.const(keyword(call, "precision"), scope) != "16-true":
            continue
        for cls in ctx.symbols.classes.values():
            where = norms.of_class(cls) if ctx.is_module_class(cls) else None
            if where is not None:
                yield _finding(ctx, call, where)
                break


def _by_default(ctx: Context, norms: BatchNorms, restored: bool) -> Iterator[Finding]:
    """`torch.set_default_dtype(torch.float16)`: modules that are made after it get float16 buffers."""
    if restored or "set_default_" not in ctx.text:
        return
    changes = list(ctx.calls("torch.set_default_dtype", "torch.set_default_tensor_type"))
    for call, scope in changes:
        if not call.args or ctx.amp.dtype(call.args[0], scope) != "fp16":
            continue
        until = min((c.lineno for c, _ in changes if c.lineno > call.lineno), default=1 << 30)
        for made in ctx.symbols.calls:
            same = call.lineno < made.lineno < until and ctx.symbols.scope(made) is scope
            where = norms.where(made, scope) if same else None
            if where is not None:
                yield _finding(ctx, call, where)
                break


def _finding(ctx: Context, call: ast.Call, where: str) -> Finding:
    return ctx.finding(
        "R26", call, WARNING,
        f"`{ctx.str(call)}` also rounds the running statistics of BatchNorm ({where}) to float16: a variance above 65504 becomes inf "
        "(the output is then 0), one below 3e-8 becomes 0, and updates with a small momentum are lost",
        "for m in model.modules():\n    if isinstance(m, nn.modules.batchnorm._BatchNorm):\n        m.float()  # or fold it into the "
        "convolution first",
    )  # fmt: skip


def _stored(ctx: Context, node: ast.AST, what: str) -> Finding:
    return ctx.finding(
        "R26", node, WARNING,
        f"{what} put into float16: a running variance above 65504 becomes inf (the output is then 0), one below 3e-8 becomes 0, and "
        "turning them back to float32 does not bring them back",
        "keep `running_mean` and `running_var` in float32 (they are a thousandth of the file), or fold BatchNorm first",
    )  # fmt: skip


def _restored(ctx: Context) -> bool:
    """BatchNorm modules are set back to float32, or folded."""
    if any(word in ctx.text for word in _FOLDS):
        return True
    for node in ctx.symbols.nodes(ast.If, ast.ListComp, ast.GeneratorExp):
        tests = [node.test] if isinstance(node, ast.If) else [t for g in node.generators for t in g.ifs]
        if not any(tested_for(test, ctx.symbols) for test in tests):
            continue
        body = node.body if isinstance(node, ast.If) else [node.elt]
        for inner in (n for part in body for n in walk(part)):
            if (
                isinstance(inner, ast.Call)
                and last_name(inner.func) == "float"
                and isinstance(inner.func, ast.Attribute)
            ):
                return True
            if isinstance(inner, ast.Attribute) and inner.attr == "float32":
                return True
    return False


RULE = Rule(
    id="R26",
    name="half-buffers",
    title="BatchNorm statistics in float16",
    how="code, model",
    belief="Declare eps and momentum as float32 so that half() leaves them alone.",
    truth=(
        "eps and momentum are Python floats that half() never touches. What it does change are parameters and buffers: running_var "
        "9e4 becomes inf and the eval output all 0; with momentum 1e-4 the statistics reach 1.293 instead of 1.236."
    ),
    experiment="A BatchNorm with running_var 9e4, half() and float(), in eval mode.",
    bad="model = resnet50().half().eval()",
    good="model.half()\nfor m in model.modules():\n    if isinstance(m, nn.BatchNorm2d):\n        m.float()",
    check=check,
    trigger=r"\.half\b|float16|HalfTensor|16-true",
)
