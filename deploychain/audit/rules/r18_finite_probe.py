"""R18: tests for NaN do not belong in a forward that is exported."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, last_name, returns
from deploychain.audit.context import ERROR, NOTE, WARNING, Context, Rule
from deploychain.audit.finding import Finding
from deploychain.audit.rules.image_options import behind_option, is_off
from deploychain.audit.tree import children, walk

_TESTS = frozenset({"isnan", "isinf", "isfinite"})
_GUARDS = frozenset(
    {
        "is_exporting",
        "is_tracing",
        "is_compiling",
        "is_scripting",
        "is_dynamo_compiling",
        "is_torchdynamo_compiling",
        "is_in_onnx_export",
        "_is_tracing",
    }
)
_SWITCHES = frozenset({"training", "check_finite", "check_nan", "check_numerics", "sanity_check"})
# What stands for a loss or a measure is no part of the model that is exported.
_JUDGES = re.compile(r"(Loss(es)?|Criterion|Criteria|Metrics?|Objective|CTC|Evaluator|Scorer)$|Loss[A-Z]|^CTC|Metric")
# What a tensor is known by without its values.
_NOT_VALUES = frozenset(
    {"ndim", "shape", "dtype", "device", "numel", "dim", "size", "is_floating_point", "is_cuda", "requires_grad", "layout",
     "grad_fn", "is_sparse", "is_contiguous", "stride", "element_size"}
)  # fmt: skip
# These follow every branch, and fail on one that depends on the data.
_STRICT = ("torch.onnx", "torch.export", "torch_tensorrt.", "executorch.", "ai_edge_torch.", "torch._export")
_TELLS = frozenset(
    {"print", "warn", "warning", "error", "info", "debug", "critical", "exception", "breakpoint", "set_trace", "print_exc",
     "print_stack", "exit", "_exit", "abort"}
)  # fmt: skip
_LARGEST = frozenset({"max", "amax", "abs", "aminmax", "norm"})


def check(ctx: Context) -> Iterator[Finding]:
    names = [ctx.symbols.qual(c.func) or "" for c in ctx.symbols.calls]
    traced = bool(ctx.exports) and all(set(e.values("dynamo")) == {False} for e in ctx.exports)
    strict = (
        any(n.startswith(_STRICT) for n in names if not (traced and n.startswith("torch.onnx")))
        or ".to_onnx(" in ctx.text
    )
    done: set[int] = set()
    looked: dict[int, int] = {}
    for function in ctx.symbols.function_scopes:
        if function.owner is None or not _is_forward(function, function.owner) or not _is_module(ctx, function.owner):
            continue
        if _judges(ctx, function.owner) or _compares(function):
            continue  # what is exported is the model
        for node, home in _nodes_of_forward(ctx, function):
            test = _probed(ctx, node, strict)
            if (
                test is None
                or id(node) in done
                or not _is_probe(ctx, test, home, looked)
                or _guarded(ctx, node, home.node)
                or behind_option(ctx, node)
                or (isinstance(node, ast.If) and is_off(ctx, node.test, home))
            ):
                continue
            done.add(id(node))
            repair = _repairs(ctx, node)
            useful = not repair and ctx.says(_DEPLOYED)  # whether anybody exports it is not seen otherwise
            yield ctx.finding(
                "R18", node, ERROR if strict else WARNING if useful else NOTE,
                f"`{ctx.str(test)}` in forward depends on the data: torch.export and the ONNX exporter fail on it, and each call waits for "
                f"the GPU{'' if repair else '; and it misses overflow that only happens in the gradients'}",
                "the same without the question: where every value is finite it changes nothing" if repair else
                "probe from outside, in debug runs: module.register_forward_hook(lambda m, i, o: print(torch.isfinite(o).all())), or "
                "deploychain.monitor",
            )  # fmt: skip


def _is_forward(function: Scope, cls: Scope) -> bool:
    """The method forward, or the one that `forward = _forward_impl` in the class names."""
    if function.name == "forward":
        return True
    return any(b.value is not None and last_name(b.value) == function.name for b in cls.bindings.get("forward", ()))


def _judges(ctx: Context, cls: Scope) -> bool:
    return any(
        _JUDGES.search(name)
        for home in ctx.symbols.bases(cls)
        for name in (home.name, *(last_name(b) for b in getattr(home.node, "bases", [])))
    )


_PREDICTED = re.compile(r"^(logits?|preds?|predictions?|scores?|y_?(pred|hat)|log_?probs?)$")
_TARGET = re.compile(r"^(y|y_true|targets?|labels?|gt|ground_truth|tgt)$")


def _compares(forward: Scope) -> bool:
    """`forward(logits, y)`: what gets predictions and targets is a loss, whatever it is called."""
    given = [name for name in forward.parameters if name != "self"][:2]
    return len(given) == 2 and bool(_PREDICTED.match(given[0])) and bool(_TARGET.match(given[1]))


def _is_module(ctx: Context, cls: Scope) -> bool:
    """A torch module, or a class with such a name for a base that is not shown and a forward."""
    if ctx.is_module_class(cls):
        return True
    for home in ctx.symbols.bases(cls):
        for base in getattr(home.node, "bases", []):
            name = last_name(base)
            if name.endswith(("Model", "Net", "Module", "Backbone", "Encoder", "Decoder", "Head", "Block", "Layer")):
                return True
    return False


def _probed(ctx: Context, node: ast.AST, strict: bool) -> ast.expr | None:
    """The test of an assert, of a branch that raises or tells, and, where the model is exported, of any branch."""
    if isinstance(node, ast.Assert):
        return node.test
    if isinstance(node, ast.If):
        found = strict or _only_tells(node.body) or _raises(node.body) or _repairs(ctx, node)
        return node.test if found else None
    if isinstance(node, ast.IfExp | ast.While):
        return node.test if strict else None
    if isinstance(node, ast.Call) and node.args and ctx.symbols.qual(node.func) == "torch._assert":
        return node.args[0]
    return None


def _nodes_of_forward(ctx: Context, forward: Scope) -> Iterator[tuple[ast.AST, Scope]]:
    """The nodes of forward, of the functions of the file that it calls, and of its decorators, with the function of each."""
    queue, seen = [forward], {forward}
    for decorator in getattr(forward.node, "decorator_list", []):
        made = ctx.symbols.local_function(
            decorator.func if isinstance(decorator, ast.Call) else decorator, ctx.symbols.module
        )
        inner = [] if made is None else [f for f in ctx.symbols.function_scopes if f.parent is made or f.parent in seen]
        queue += inner
        seen |= set(inner)
    while queue:
        function = queue.pop()
        for node in _own_nodes(function.node):
            yield node, function
            called = ctx.symbols.local_function(node.func, function) if isinstance(node, ast.Call) else None
            if called is None or called in seen or _guarded(ctx, node, function.node):
                continue
            seen.add(called)
            queue.append(called)


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    stack = deque(children(function))
    while stack:
        node = stack.popleft()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            stack.extend(children(node))


def _raises(body: list[ast.stmt]) -> bool:
    return any(isinstance(s, ast.Raise) or (isinstance(s, ast.If) and _raises([*s.body, *s.orelse])) for s in body)


def _only_tells(body: list[ast.stmt]) -> bool:
    """Nothing but `print(...)`, counters and the like in it: a probe, and no repair of the values."""
    return all(
        (isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) and last_name(s.value.func) in _TELLS)
        or (isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Attribute))
        or (isinstance(s, ast.If) and _only_tells([*s.body, *s.orelse]))
        or isinstance(s, ast.Raise | ast.Import)
        for s in body
    )


_CLAMPS = frozenset({"clamp", "clip", "clamp_", "nan_to_num", "nan_to_num_", "where", "masked_fill", "masked_fill_"})


def _repairs(ctx: Context, node: ast.AST) -> bool:
    """`if torch.isinf(h).any(): h = torch.clamp(h, ...)`: what clamp would do without a question."""
    if not isinstance(node, ast.If) or node.orelse or not isinstance(node.test, ast.Call):
        return False
    asks = last_name(node.test.func) in ("any", "all") and any(
        isinstance(n, ast.Call) and last_name(n.func) in _TESTS for n in walk(node.test)
    )
    return asks and any(
        isinstance(s, ast.Assign)
        and isinstance(s.value, ast.Call)
        and last_name(s.value.func) in _CLAMPS
        and not (last_name(s.value.func) == "where" and len(s.value.args) < 2)  # which places
        for s in node.body
    )


def _is_probe(ctx: Context, test: ast.expr, scope: Scope, looked: dict[int, int], depth: int = 4) -> bool:
    """The test asks whether a tensor is finite, itself or through names that were bound to the answer.

    `looked`: the expressions that are known to ask nothing of the kind, and how deep that was followed.
    """
    if looked.get(id(test), -1) >= depth:
        return False
    looked[id(test)] = depth
    if _asks(ctx, test, scope, looked, depth):
        del looked[id(test)]
        return True
    return False


def _asks(ctx: Context, test: ast.expr, scope: Scope, looked: dict[int, int], depth: int) -> bool:
    for node in _about_values(test):
        if isinstance(node, ast.Call) and last_name(node.func) in _TESTS:
            name = ctx.symbols.qual(node.func) or ""
            if not name.startswith(("math.", "numpy.")) or _of_a_tensor(node):
                return True
        elif isinstance(node, ast.Call) and depth and isinstance(node.func, ast.Name | ast.Attribute):
            helper = ctx.symbols.local_function(node.func, scope)
            if helper is not None and any(_is_probe(ctx, v, helper, looked, depth - 1) for v in returns(helper)):
                return True
        elif isinstance(node, ast.Compare) and _finite_by_comparison(ctx, node):
            return True
        elif isinstance(node, ast.Name) and depth:
            home = ctx.symbols.scope(node)
            for binding in home.bindings.get(node.id, []):
                value = binding.value
                if value is None or binding.loop or not _answers(value):
                    continue
                if _is_probe(ctx, value, home, looked, depth - 1):
                    return True
    return False


def _about_values(test: ast.expr) -> Iterator[ast.AST]:
    """The nodes of a test, less those that ask for a rank, a shape, a type, or whether there is something at all."""
    stack: list[ast.AST] = [test]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Attribute) and node.attr in _NOT_VALUES:
            continue
        if isinstance(node, ast.Call) and last_name(node.func) in ("len", "isinstance", "hasattr", "type", "callable"):
            continue
        if isinstance(node, ast.Compare) and all(isinstance(o, ast.Is | ast.IsNot) for o in node.ops):
            continue
        yield node
        stack += children(node)


def _answers(value: ast.expr) -> bool:
    """A bool or a count: no tensor that was repaired with `torch.where(torch.isnan(x), ...)`."""
    return not any(
        isinstance(n, ast.Call) and last_name(n.func) in ("where", "masked_fill", "nan_to_num") for n in walk(value)
    )


def _of_a_tensor(call: ast.Call) -> bool:
    """`math.isfinite(y.sum().item())`, `np.isnan(y.detach().cpu().numpy())`, and no setting."""
    return any(
        isinstance(n, ast.Attribute) and n.attr in ("item", "numpy", "detach", "cpu")
        for a in call.args
        for n in walk(a)
    )


def _finite_by_comparison(ctx: Context, node: ast.Compare) -> bool:
    """`(y != y).any()`, `y.abs().max() < 65504`, `y.abs().max() == float("inf")`."""
    if len(node.ops) != 1:
        return False
    left, right = node.left, node.comparators[0]
    if isinstance(node.ops[0], ast.Eq | ast.NotEq) and isinstance(left, ast.Name | ast.Attribute):
        reduced = isinstance(ctx.symbols.parent.get(node), ast.Attribute | ast.Call)
        if ast.dump(left) == ast.dump(right) and reduced:
            return True
    largest = any(isinstance(n, ast.Call) and last_name(n.func) in _LARGEST for n in walk(left))
    if not largest:
        return False
    limit = ctx.symbols.const(right, ctx.symbols.scope(node))
    if isinstance(limit, int | float) and not isinstance(limit, bool):
        return abs(limit) >= 6e4
    text = ctx.str(right)
    return "finfo" in text or "inf" in text


def _guarded(ctx: Context, node: ast.AST, function: ast.AST) -> bool:
    """Under `if not torch.compiler.is_exporting()`, a debug flag, or after an early return."""
    current: ast.AST | None = node
    while current is not None and current is not function:
        tests = [current.test] if isinstance(current, ast.If | ast.IfExp) else []
        if isinstance(node, ast.Assert):
            tests.append(node.test)
        if any(_switches(test) for test in tests):
            return True
        current = ctx.symbols.parent.get(current)
    line = getattr(node, "lineno", 0)
    return any(
        isinstance(s, ast.If) and s.lineno < line and isinstance(s.body[-1], ast.Return) and _switches(s.test)
        for s in getattr(function, "body", [])
    )


def _switches(test: ast.expr) -> bool:
    """The test asks whether the model is being exported, or for a debug switch."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        first = test.values[0]  # `h.dtype == torch.float16 and torch.isinf(h).any()`: known without the data
        if isinstance(first, ast.Compare) and isinstance(first.left, ast.Attribute) and first.left.attr == "dtype":
            return True
    for inner in walk(test):
        name = last_name(inner) if isinstance(inner, ast.Attribute | ast.Name) else ""
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            name = inner.value if "DEBUG" in inner.value else ""
        if name in _GUARDS or "debug" in name.lower() or name in _SWITCHES:
            return True
    return False


def _mentioned(text: str) -> bool:
    if any(word in text for word in ("isnan", "isinf", "isfinite", "65504")):
        return True
    if "finfo(" in text and _FINFO_MAX.search(text):
        return True
    for found in _SAME_TWICE.finditer(text):  # `y != y`
        name = found[1]
        start = found.start() - 1 - len(name)
        if text[start : found.start()] == f"{name} " and not (
            start > 0 and (text[start - 1].isalnum() or text[start - 1] == "_")
        ):
            return True
    return False


_DEPLOYED = re.compile(
    r"autocast|GradScaler|\bhalf\(|fp16|bf16|onnx|export|torch\.compile|jit\.|backward\(|\bamp\b|training_step|Accelerator"
)
_FINFO_MAX = re.compile(r"finfo\([^)]*\)\.max")
_SAME_TWICE = re.compile(r"[!=]= (\w+)\b")

RULE = Rule(
    id="R18",
    name="finite-probe",
    title="A NaN test inside forward",
    how="code, run",
    belief="End forward with `assert not torch.isnan(output).any()`.",
    truth=(
        "It misses inf and everything that overflows in the backward pass (output finite, gradient inf), disappears under python -O "
        "and in a trace, and makes torch.export and the default ONNX exporter fail (data-dependent guard). Forward hooks see more "
        "and are outside of the model."
    ),
    experiment="torch.export of a module with and without the assert; a finite output with an inf gradient.",
    bad="def forward(self, x):\n    y = self.net(x)\n    assert not torch.isnan(y).any()\n    return y",
    good="with deploychain.monitor(model, optimizer, scaler) as m:\n    ...",
    check=check,
    trigger=_mentioned,
)
