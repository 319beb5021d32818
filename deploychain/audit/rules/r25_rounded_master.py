"""R25: weights that went through float16 are not the FP32 weights."""

# ruff: noqa: E501, SIM102  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, dotted, last_name, strip_module_calls
from deploychain.audit.context import WARNING, Context, Rule
from deploychain.audit.finding import Finding


def check(ctx: Context) -> Iterator[Finding]:
    if "half" not in ctx.text and "float16" not in ctx.text:
        return
    done: set[int] = set()
    yield from _chains(ctx, done)
    yield from _walked(ctx, done)
    yield from _state_dicts(ctx)
    yield from _parameters(ctx)


def _parameters(ctx: Context) -> Iterator[Finding]:
    """`for p in model.parameters(): p.data = p.data.half().float()`, or p.copy_(p.half().float())."""
    for node in ctx.symbols.nodes(ast.Assign, ast.Call):
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            if not (isinstance(target, ast.Attribute) and target.attr == "data"):
                continue
        elif last_name(node.func) == "copy_" and isinstance(node.func, ast.Attribute) and node.args:
            target, value = node.func.value, node.args[0]
        else:
            continue
        source = _rounded(value)
        name = (dotted(target) or "").removesuffix(".data")
        if source is None or not name or (dotted(source) or "").removesuffix(".data") != name:
            continue
        for binding in ctx.symbols.bindings(name, ctx.symbols.scope(node)):
            if binding.loop and binding.value is not None and any(
                isinstance(n, ast.Attribute) and n.attr in ("parameters", "named_parameters", "state_dict")
                for n in ast.walk(binding.value)
            ):  # fmt: skip
                yield _finding(ctx, node, ctx.str(source), node.lineno)
                break


def _rounded(value: ast.expr) -> ast.expr | None:
    """The x of `x.half().float()`."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "float":
        inner = value.func.value
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr == "half":
            return inner.func.value
    return None


def _finding(ctx: Context, node: ast.AST, shown: str, line: int) -> Finding:
    where = f" (made half in line {line})" if line != getattr(node, "lineno", 0) else ""
    return ctx.finding(
        "R25", node, WARNING,
        f"`{shown}`{where} is turned back to float32, but every weight is now rounded to float16: relative error 2e-4, small weights 0, "
        "large BatchNorm statistics inf, and 1.25 % of the INT8 codes change for nothing",
        "start QAT, calibration and export from the float32 state dict; use copy.deepcopy(model).half() for the float16 copy",
    )  # fmt: skip


def _chains(ctx: Context, done: set[int]) -> Iterator[Finding]:
    """model.half().float()"""
    for call in ctx.symbols.calls:
        if not (isinstance(call.func, ast.Attribute) and call.func.attr == "float" and not call.args):
            continue
        inner: ast.expr = call.func.value
        while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
            if inner.func.attr == "half" and not inner.args:
                if _is_module(ctx, inner.func.value, ctx.symbols.scope(call)):
                    done.add(id(call))
                    yield _finding(ctx, call, ctx.str(inner.func.value), call.lineno)
                break
            if inner.func.attr not in ("cuda", "cpu", "to", "eval", "train"):
                break
            inner = inner.func.value


def _is_module(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    if ctx.symbols.instance_class(expr, scope) is not None:
        return True
    text = dotted(expr)
    if text is None:
        return False
    leaf = text.rpartition(".")[2].lower()
    for call in ctx.symbols.calls:
        if (
            isinstance(call.func, ast.Attribute)
            and call.func.attr
            in (
                "parameters",
                "state_dict",
                "eval",
                "train",
                "load_state_dict",
                "modules",
                "named_parameters",
            )
            and dotted(call.func.value) == text
        ):
            return True
    return leaf in ("model", "net", "network", "module", "backbone", "encoder")


def _walked(ctx: Context, done: set[int]) -> Iterator[Finding]:
    """model.half() ... model.float() on the same object, also in two functions that one run goes through."""
    halved: dict[tuple[object, tuple[int, str]], tuple[ast.Call, bool]] = {}
    for seen in ctx.seen:
        call = seen.node
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or not seen.name.startswith("."):
            continue
        scope: Scope = seen.function  # type: ignore[assignment]
        module = strip_module_calls(call.func.value)  # of `net.eval().half()`
        text = dotted(module)
        same = ctx.symbols.identity(module, scope)
        if text is None or same is None:
            continue
        is_module = seen.result.module or _is_module(ctx, module, scope)
        key = (seen.root, same)
        if seen.result.dtype == "fp16":
            if _kept(ctx, call, text):
                halved.setdefault(key, (call, is_module))
        elif seen.result.dtype == "fp32" and key in halved and id(call) not in done:
            first, was_module = halved[key]
            if not (is_module or was_module):
                continue  # a tensor
            here = ctx.symbols.scope(first) is ctx.symbols.scope(call)
            if here and (first.lineno >= call.lineno or _exclusive(ctx, first, call)):
                continue
            if not _reloaded(ctx, first, call, text):
                done.add(id(call))
                yield _finding(ctx, call, text, first.lineno)


def _exclusive(ctx: Context, first: ast.AST, second: ast.AST) -> bool:
    """`model.half() if fp16 else model.float()`: never both."""
    chain: dict[int, ast.AST] = {}
    node, below = ctx.symbols.parent.get(first), first
    while node is not None:
        chain[id(node)] = below
        below, node = node, ctx.symbols.parent.get(node)
    node, below = ctx.symbols.parent.get(second), second
    while node is not None:
        other = chain.get(id(node))
        if other is not None:
            if isinstance(node, ast.If):
                return (other in node.body) != (below in node.body)
            return isinstance(node, ast.IfExp)
        below, node = node, ctx.symbols.parent.get(node)
    return False


def _kept(ctx: Context, call: ast.Call, text: str) -> bool:
    """The half module replaces or is the original: not `copy = deepcopy(model).half()`."""
    return "deepcopy" not in ctx.str(call.func)


def _reloaded(ctx: Context, first: ast.Call, second: ast.Call, text: str) -> bool:
    """FP32 weights are loaded in between or directly after."""
    scope = ctx.symbols.scope(second)
    for call in ctx.symbols.calls:
        if (
            ctx.symbols.scope(call) is scope
            and first.lineno < call.lineno <= second.lineno + 3
            and (
                isinstance(call.func, ast.Attribute)
                and call.func.attr == "load_state_dict"
                and dotted(call.func.value) == text
            )
        ):
            return True
    for binding in ctx.symbols.bindings(text, scope):
        if first.lineno < getattr(binding.node, "lineno", 0) <= second.lineno and binding.value is not None:
            if not any(isinstance(n, ast.Name) and n.id == text for n in ast.walk(binding.value)):
                return True
    return False


def _state_dicts(ctx: Context) -> Iterator[Finding]:
    """{k: v.half() for ...} and {k: v.half().float() ...} of a state dict."""
    for node in ctx.symbols.nodes(ast.DictComp):
        if not isinstance(node, ast.DictComp) or not node.generators:
            continue
        source = node.generators[0].iter
        if "state_dict" not in ctx.str(source):
            continue
        value = node.value
        if (
            isinstance(value, ast.Call)
            and last_name(value.func) == "float"
            and isinstance(value.func, ast.Attribute)
            and isinstance(value.func.value, ast.Call)
            and last_name(value.func.value.func) == "half"
        ):
            yield _finding(ctx, node, ctx.str(value), node.lineno)
        elif _rounds(value, "half"):
            yield from _loaded_back(ctx, node, source)


def _rounds(value: ast.expr, method: str) -> bool:
    return isinstance(value, ast.Call) and last_name(value.func) == method and not value.args


def _loaded_back(ctx: Context, halved: ast.DictComp, source: ast.expr) -> Iterator[Finding]:
    """`h = {k: v.half() ... model.state_dict()}`; `model.load_state_dict({k: v.float() ... h.items()})`."""
    owners = {dotted(n.value) for n in ast.walk(source) if isinstance(n, ast.Attribute) and n.attr == "state_dict"} - {
        None
    }
    for call in ctx.symbols.calls:
        if not (isinstance(call.func, ast.Attribute) and call.func.attr == "load_state_dict" and call.args):
            continue
        if dotted(call.func.value) not in owners:
            continue  # a copy, to measure the rounding
        for ref in ctx.symbols.resolve(call.args[0], ctx.symbols.scope(call)):
            widened = ref.expr
            if not (isinstance(widened, ast.DictComp) and _rounds(widened.value, "float")):
                continue
            items = widened.generators[0].iter
            table = items.func.value if isinstance(items, ast.Call) and isinstance(items.func, ast.Attribute) else items
            if any(r.expr is halved for r in ctx.symbols.resolve(table, ref.scope)):
                yield _finding(ctx, call, dotted(call.func.value) or "", halved.lineno)


RULE = Rule(
    id="R25",
    name="rounded-master",
    title="A model is made half and then float again",
    how="code, model",
    belief="The road to INT8 is AMP, then model.half().float(), then QAT.",
    truth=(
        "half() works in place and rounds for good: relative error 2e-4 (1.7e-3 for std 1e-5), a weight of 7e4 becomes inf, BatchNorm "
        "variances of 1e5 inf and 1e-9 zero. AMP parameters are float32 all along: start from their state dict."
    ),
    experiment="A model through half().float(): the error of its weights, and a BatchNorm with running_var 1e5 and 1e-9.",
    bad="model.half().float()\nprepare_qat(model)",
    good="model.load_state_dict(load_file('weights.safetensors'))  # float32\nprepare_qat(model)",
    check=check,
    trigger=r"\.half\b|float16",
)
