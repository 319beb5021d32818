"""R25: weights that went through float16 are not the FP32 weights."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.astnames import SELF_RETURNING, Scope, dotted, keyword, last_name, strip_module_calls
from deploychain.audit.batchnorm import BatchNorms
from deploychain.audit.context import WARNING, Context, Rule
from deploychain.audit.finding import Finding
from deploychain.audit.rules.half_roundtrips import (
    from_helper,
    handed_over,
    is_full,
    parameters,
    quantised_after,
    rounded,
    state_dicts,
)
from deploychain.audit.rules.half_statistics import is_half
from deploychain.audit.rules.precision_helpers import PrecisionHelpers
from deploychain.audit.tree import walk

_MODULE = re.compile(
    r"(^|[._])(model|net|network|module|backbone|encoder|decoder|generator|discriminator|student|teacher|ema|classifier|"
    r"detector|unet|vit|bert|resnet)\d*$",
    re.IGNORECASE,
)
_METHODS = frozenset(
    {"parameters", "state_dict", "eval", "train", "load_state_dict", "modules", "named_parameters", "named_modules"}
)


_CASTS = frozenset({"half", "float", "double", "to", "type", "apply"})


def check(ctx: Context) -> Iterator[Finding]:
    done: set[int] = set()
    yield from _chains(ctx, done)
    yield from _walked(ctx, done)
    yield from _in_one_function(ctx, done)
    yield from _in_one_class(ctx, done)
    for node, shown, line in (*handed_over(ctx, _MODULE, done), *from_helper(ctx, done)):
        yield _finding(ctx, node, shown, line)
    yield from _loaded_half(ctx, done)
    for node, shown, line in (*parameters(ctx), *state_dicts(ctx)):
        yield _finding(ctx, node, shown, line)


def _finding(ctx: Context, node: ast.AST, shown: str, line: int) -> Finding:
    where = f" (made half in line {line})" if line != getattr(node, "lineno", 0) else ""
    return ctx.finding(
        "R25", node, WARNING,
        f"`{shown}`{where} is turned back to float32, but every weight is now rounded to float16: relative error 2e-4, small weights 0, "
        "large BatchNorm statistics inf, and 1.25 % of the INT8 codes change for nothing",
        "start QAT, calibration and export from the float32 state dict; use copy.deepcopy(model).half() for the float16 copy",
    )  # fmt: skip


def _chains(ctx: Context, done: set[int]) -> Iterator[Finding]:
    """model.half().float(), model.to(torch.float16).to(torch.float32)"""
    for call in ctx.symbols.calls:
        scope = ctx.symbols.scope(call)
        if isinstance(call.func, ast.Attribute) and is_full(ctx, call, scope):
            inner = rounded(ctx, call)
            if inner is not None and _is_module(ctx, strip_module_calls(inner), scope):
                done.add(id(call))
                yield _finding(ctx, call, ctx.str(inner), call.lineno)


def _is_module(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    if ctx.symbols.instance_class(expr, scope) is not None:
        return True
    for ref in ctx.symbols.resolve(expr, scope):
        made = strip_module_calls(ref.expr)
        if isinstance(made, ast.Call):
            name = ctx.symbols.qual(made.func, ref.scope) or last_name(made.func)
            if (
                name.startswith(("torchvision.models.", "timm.", "torch.nn.", "torch.hub."))
                and "functional" not in name
            ):
                return True
            if name.endswith(".from_pretrained"):
                return True
    text = dotted(expr)
    if text is None:
        return False
    return text in _used_as_modules(ctx) or _MODULE.search(text) is not None


def _used_as_modules(ctx: Context) -> set[str]:
    """Names on which a method is called that only modules have."""
    return {
        name
        for call in ctx.symbols.calls
        if isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS and (name := dotted(call.func.value))
    }


def _in_one_function(ctx: Context, done: set[int]) -> Iterator[Finding]:
    """The same pair in the statements of one function, also where the walk does not come by or the dtype is a choice."""
    halved: dict[tuple[int, str], ast.Call] = {}
    widened: dict[tuple[int, str], ast.Call] = {}
    helpers = PrecisionHelpers(ctx)
    for call in ctx.symbols.calls:
        scope = ctx.symbols.scope(call)
        cast = _cast(ctx, call, scope) or _cast_by_helper(helpers, call, scope)
        if cast is None:
            continue
        module, text, half = cast
        key = (id(scope), text)
        if half:
            if (module is None or _is_module(ctx, module, scope)) and _stays(ctx, call, text):
                if not helpers.is_fixed(call, scope):  # what the walk goes through in order anyway
                    halved.setdefault(key, call)
                first = widened.get(key)
                if first is not None and id(first) not in done and _again(ctx, first, call):
                    done.add(id(first))
                    yield _finding(ctx, first, text, call.lineno)
        else:
            widened.setdefault(key, call)
            made = halved.get(key)
            if made is None or id(call) in done or _exclusive(ctx, made, call) or _reloaded(ctx, made, call, text):
                continue
            if _stays(ctx, call, text):
                done.add(id(call))
                yield _finding(ctx, call, text, made.lineno)


def _cast(ctx: Context, call: ast.Call, scope: Scope) -> tuple[ast.expr | None, str, bool] | None:
    """(module, its name, whether it becomes half) of `m.half()`, `m.to(dtype)`, `m.apply(lambda x: x.half())`."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _CASTS:
        return None
    cast: ast.AST = call
    if call.func.attr == "apply":
        if len(call.args) != 1 or not isinstance(call.args[0], ast.Lambda):
            return None
        cast = call.args[0].body
    half = is_half(ctx, cast, scope)
    if not half and not is_full(ctx, cast, scope):
        return None
    module = strip_module_calls(call.func.value)
    text = dotted(module)
    if text is not None:
        return module, text, half
    kept = _kept_as(ctx, call) if half else None  # model = build().half()
    return (kept, kept.id, half) if kept is not None else None


def _kept_as(ctx: Context, call: ast.Call) -> ast.Name | None:
    below: ast.AST = call
    node: ast.AST | None = ctx.symbols.parent.get(call)
    while isinstance(node, ast.Call | ast.Attribute) and below is getattr(node, "func", getattr(node, "value", None)):
        below, node = node, ctx.symbols.parent.get(node)
    return node.targets[0] if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) else None


def _cast_by_helper(helpers: PrecisionHelpers, call: ast.Call, scope: Scope) -> tuple[None, str, bool] | None:
    cast = helpers.cast(call, scope)
    return (None, *cast) if cast is not None else None


def _stays(ctx: Context, call: ast.Call, text: str) -> bool:
    """`model.half()`, `model = model.half()`, `f(model.half())`: what is cast is the module that the name stands for."""
    if "deepcopy" in ctx.str(call.func):
        return False
    kept = _kept_as(ctx, call)
    return (kept is not None and kept.id == text) or not any(
        isinstance(n, ast.Call) and last_name(n.func) not in SELF_RETURNING for n in walk(call.func)
    )


def _again(ctx: Context, first: ast.Call, call: ast.Call) -> bool:
    """The next round of a loop comes from the second to the first."""
    loop = _loop_around(ctx, call)
    if loop is None or loop is not _loop_around(ctx, first):
        return False
    return not _exclusive(ctx, first, call) and not _exclusive(ctx, call, first)


def _loop_around(ctx: Context, node: ast.AST) -> ast.AST | None:
    found: ast.AST | None = node
    while found is not None and not isinstance(found, ast.For | ast.While | ast.FunctionDef):
        found = ctx.symbols.parent.get(found)
    return found if isinstance(found, ast.For | ast.While) else None


_BEGINS = ("__init__", "setup", "__enter__", "on_validation_start", "on_validation_epoch_start", "on_test_start", "on_train_start",
           "on_fit_start", "on_predict_start", "on_validation_begin", "on_evaluate_start")  # fmt: skip


def _in_one_class(ctx: Context, done: set[int]) -> Iterator[Finding]:
    """`self.model = model.half()` when it is made, `self.model.float()` in a later method; start and end of a hook."""
    halved: dict[tuple[int, str], ast.Call] = {}
    casts = []
    for call in ctx.symbols.calls:
        scope = ctx.symbols.scope(call)
        cls = scope.owner
        if cls is None or not isinstance(call.func, ast.Attribute):
            continue
        name = _kept_name(ctx, call, dotted(strip_module_calls(call.func.value)) or "")
        own = name.startswith("self.") or name in ("pl_module", "trainer.model", "model")
        if not own:
            continue
        begins = scope.name in _BEGINS or _kept_name(ctx, call, "").startswith("self.")
        if begins and is_half(ctx, call, scope) and "deepcopy" not in ctx.str(call):
            halved.setdefault((id(cls), name), call)
        elif is_full(ctx, call, scope):
            casts.append((call, call.func.value, (id(cls), name), scope.name))
    for call, module, key, method in casts:
        first = halved.get(key)
        if first is None or id(call) in done or method in ("forward", ctx.symbols.scope(first).name):
            continue
        start = ctx.symbols.scope(first).name
        ends = start.replace("start", "end").replace("begin", "end").replace("enter", "exit")
        follows = key[1].startswith("self.") if start == "__init__" else method == ends
        if start not in _BEGINS:
            follows = quantised_after(ctx, call, "")
        if _reloaded(ctx, first, call, key[1]):
            continue
        if follows and _is_module(ctx, strip_module_calls(module), ctx.symbols.scope(call)):
            done.add(id(call))
            yield _finding(ctx, call, key[1], first.lineno)


def _kept_name(ctx: Context, call: ast.Call, name: str) -> str:
    """`self.model` of `self.model = model.half().cuda()`."""
    node: ast.AST | None = ctx.symbols.parent.get(call)
    while isinstance(node, ast.Call | ast.Attribute):
        node = ctx.symbols.parent.get(node)
    if isinstance(node, ast.Assign) and (dotted(node.targets[0]) or "").startswith("self."):
        return dotted(node.targets[0]) or name
    return name


def _loaded_half(ctx: Context, done: set[int]) -> Iterator[Finding]:
    """`from_pretrained(name, torch_dtype=torch.float16)`, then float(), to train or to quantise it."""
    if "from_pretrained" not in ctx.text:
        return
    for call in ctx.symbols.calls:
        scope = ctx.symbols.scope(call)
        if id(call) in done or not isinstance(call.func, ast.Attribute) or not is_full(ctx, call, scope):
            continue
        name = dotted(strip_module_calls(call.func.value))
        if _chosen_part(ctx, name or "", call):
            continue
        for ref in BatchNorms(ctx.symbols).origins(call.func.value, scope):
            made = ref.expr
            if not isinstance(made, ast.Call) or last_name(made.func) != "from_pretrained":
                continue
            half = ctx.amp.dtype(keyword(made, "torch_dtype", "dtype"), ref.scope) == "fp16"
            if half and quantised_after(ctx, call, name or "") and not _peft(ctx):
                done.add(id(call))
                yield _finding(ctx, call, name or ctx.str(made.func), made.lineno)
                break


def _chosen_part(ctx: Context, name: str, call: ast.Call) -> bool:
    """Modules that a loop goes over and a test chooses, and adapters, are often new ones in a half model (LoRA, a new head)."""
    if re.search(r"lora|adapter", name, re.IGNORECASE):
        return True
    root = name.partition(".")[0]
    if not any(b.loop for b in ctx.symbols.bindings(root, ctx.symbols.scope(call))):
        return False
    node: ast.AST | None = call
    while node is not None and not isinstance(node, ast.For | ast.FunctionDef):
        node = ctx.symbols.parent.get(node)
        if isinstance(node, ast.If):
            return True
    return "." in name


def _peft(ctx: Context) -> bool:
    return any(v.startswith("peft") for names in ctx.symbols.imports.values() for v in names)


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
        is_module = seen.result.module or _is_module(ctx, module, scope) or _MODULE.search(same[1]) is not None
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
    if _left(ctx, first, second):
        return True
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


def _left(ctx: Context, first: ast.AST, second: ast.AST) -> bool:
    """`if fp16: return model.half()`, with the second further down: the function was left."""
    node, below = ctx.symbols.parent.get(first), first
    while node is not None and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        if isinstance(node, ast.If) and below is not node.test:
            branch = node.body if below in node.body else node.orelse
            after = getattr(second, "lineno", 0) > (node.end_lineno or node.lineno)
            if branch and isinstance(branch[-1], ast.Return | ast.Raise) and after:
                return True
        below, node = node, ctx.symbols.parent.get(node)
    return False


def _kept(ctx: Context, call: ast.Call, text: str) -> bool:
    """The half module replaces or is the original: not `copy = deepcopy(model).half()`."""
    return "deepcopy" not in ctx.str(call.func)


def _reloaded(ctx: Context, first: ast.Call, second: ast.Call, text: str) -> bool:
    """FP32 weights are loaded in between or directly after, or the name stands for another module by then."""
    scope, start = ctx.symbols.scope(second), first.lineno
    if ctx.symbols.scope(first) is not scope:  # from the call that leads there
        sites = [c.lineno for c in ctx.symbols.call_sites(ctx.symbols.scope(first)) if ctx.symbols.scope(c) is scope]
        start = max((line for line in sites if line <= second.lineno), default=second.lineno)
    for call in ctx.symbols.calls:
        if (
            isinstance(call.func, ast.Attribute)
            and call.func.attr == "load_state_dict"
            and ctx.symbols.scope(call) is scope
            and start < call.lineno <= second.lineno + 3
            and dotted(call.func.value) == text
        ):
            return True
    return any(
        b.scope is scope
        and b.value is not None
        and start < getattr(b.node, "lineno", 0) <= second.lineno
        and not any(dotted(n) == text for n in walk(b.value))
        for b in ctx.symbols.bindings(text, scope)
    )


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
    trigger=r"\.half\b|float16|HalfTensor",
)
