"""R26: BatchNorm statistics do not survive float16."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, dotted, last_name, strip_module_calls
from deploychain.audit.context import WARNING, Context, Rule
from deploychain.audit.finding import Finding

_NORMS = frozenset({"BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "LazyBatchNorm2d"})
_KNOWN = ("torchvision.models.resnet", "torchvision.models.mobilenet", "torchvision.models.densenet", "torchvision.models.efficientnet",
          "torchvision.models.regnet", "torchvision.models.shufflenet", "torchvision.models.segmentation", "torchvision.models.wide_resnet",
          "torchvision.models.resnext", "torchvision.models.inception")  # fmt: skip
_KNOWN_TIMM = ("resnet", "resnext", "wide_resnet", "efficientnet", "tf_efficientnet", "mobilenet", "regnet", "densenet")


def check(ctx: Context) -> Iterator[Finding]:
    if "half" not in ctx.text and "float16" not in ctx.text:
        return
    done: set[str] = set()
    for seen in ctx.seen:
        call = seen.node
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or not seen.name.startswith("."):
            continue
        if seen.result.dtype != "fp16" or _restored(ctx):
            continue
        scope: Scope = seen.function  # type: ignore[assignment]
        where = _batch_norm(ctx, call.func.value, scope)
        key = f"{call.lineno}"
        if where is None or key in done:
            continue
        done.add(key)
        yield ctx.finding(
            "R26", call, WARNING,
            f"`{ctx.str(call)}` also rounds the running statistics of BatchNorm ({where}) to float16: a variance above 65504 becomes inf "
            "(the output is then 0), one below 3e-8 becomes 0, and updates with a small momentum are lost",
            "for m in model.modules():\n    if isinstance(m, nn.modules.batchnorm._BatchNorm):\n        m.float()  # or fold it into the "
            "convolution first",
        )  # fmt: skip


def _batch_norm(ctx: Context, expr: ast.expr, scope: Scope) -> str | None:
    """Where the BatchNorm of a module expression is seen: a class of this file, an inline Sequential, a torchvision model."""
    for ref in ctx.symbols.resolve(strip_module_calls(expr), scope):
        made = strip_module_calls(ref.expr)
        if not isinstance(made, ast.Call):
            continue
        name = ctx.symbols.qual(made.func, ref.scope) or ""
        if name.startswith(_KNOWN):
            return name
        if name == "timm.create_model" and made.args:
            model = ctx.symbols.const(made.args[0], ref.scope)
            if isinstance(model, str) and model.startswith(_KNOWN_TIMM):
                return f"timm's {model}"
        leaf = last_name(made.func)
        if leaf in _NORMS and name.startswith("torch."):
            return f"line {made.lineno}"
        if name == "torch.nn.Sequential":
            found = _inside(ctx, made)
            if found is not None:
                return found
        if leaf in ctx.symbols.classes and not name:
            found = _in_class(ctx, leaf, set())
            if found is not None:
                return found
    return None


def _in_class(ctx: Context, name: str, seen: set[str]) -> str | None:
    if name in seen or name not in ctx.symbols.classes:
        return None
    seen.add(name)
    for cls in ctx.symbols.bases(ctx.symbols.classes[name]):
        found = _inside(ctx, cls.node)
        if found is not None:
            return found
        for node in ast.walk(cls.node):
            if isinstance(node, ast.Call) and last_name(node.func) in ctx.symbols.classes:
                deeper = _in_class(ctx, last_name(node.func), seen)
                if deeper is not None:
                    return deeper
    return None


def _inside(ctx: Context, node: ast.AST) -> str | None:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and last_name(inner.func) in _NORMS:
            return f"line {inner.lineno}"
    return None


def _restored(ctx: Context) -> bool:
    """BatchNorm modules are set back to float32, or folded."""
    if (
        "fuse_conv_bn" in ctx.text
        or "fuse_modules" in ctx.text
        or "fold_batch" in ctx.text
        or "fuse_conv_and_bn" in ctx.text
    ):
        return True
    for node in ctx.symbols.nodes(ast.If):
        if isinstance(node, ast.If) and any(
            isinstance(n, ast.Attribute | ast.Name) and (last_name(n) in _NORMS or last_name(n) == "_BatchNorm")
            for n in ast.walk(node.test)
        ):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Call) and last_name(inner.func) == "float" and dotted(inner.func) is not None:
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
    trigger=r"\.half\b|float16",
)
