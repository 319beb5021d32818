"""R18: tests for NaN do not belong in a forward that is exported."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, last_name
from deploychain.audit.context import ERROR, WARNING, Context, Rule
from deploychain.audit.finding import Finding

_TESTS = frozenset({"isnan", "isinf", "isfinite"})
_GUARDS = frozenset(
    {
        "is_exporting",
        "is_tracing",
        "is_compiling",
        "is_scripting",
        "is_dynamo_compiling",
        "is_in_onnx_export",
        "_is_tracing",
    }
)
_EXPORTS = (
    "torch.onnx.",
    "torch.export.",
    "torch.jit.trace",
    "torch.jit.script",
    "torch.onnx",
    "torch.export",
    "torch.compile",
)


def check(ctx: Context) -> Iterator[Finding]:
    if not any(t in ctx.text for t in _TESTS):
        return
    exported = any((ctx.symbols.qual(c.func) or "").startswith(_EXPORTS) for c in ctx.symbols.calls)
    for function in ctx.symbols.function_scopes:
        if function.name != "forward" or function.owner is None or not ctx.is_module_class(function.owner):
            continue
        for node, home in _nodes_of_forward(ctx, function):
            if isinstance(node, ast.Assert) or (
                isinstance(node, ast.If) and (any(isinstance(s, ast.Raise) for s in node.body) or _only_tells(node))
            ):
                test = node.test
            else:
                continue
            if not _is_probe(ctx, test) or _guarded(ctx, node, home.node):
                continue
            yield ctx.finding(
                "R18", node, ERROR if exported else WARNING,
                f"`{ctx.str(test)}` in forward depends on the data: torch.export and the ONNX exporter fail on it, each call waits for the "
                "GPU, and it misses overflow that only happens in the gradients",
                "probe from outside, in debug runs: module.register_forward_hook(lambda m, i, o: print(torch.isfinite(o).all())), or "
                "deploychain.monitor",
            )  # fmt: skip


def _nodes_of_forward(ctx: Context, forward: Scope) -> Iterator[tuple[ast.AST, Scope]]:
    """The nodes of forward, and of the methods of its class that it calls, with the function that each is in."""
    queue, seen = [forward], {forward}
    while queue:
        function = queue.pop()
        for node in _own_nodes(function.node):
            yield node, function
            called = ctx.symbols.local_function(node.func, function) if isinstance(node, ast.Call) else None
            if called is None or called.owner is None or called in seen or _guarded(ctx, node, function.node):
                continue
            seen.add(called)
            queue.append(called)


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    stack = list(ast.iter_child_nodes(function))
    while stack:
        node = stack.pop(0)
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            stack.extend(ast.iter_child_nodes(node))


def _only_tells(node: ast.If) -> bool:
    """Nothing but `print(...)` and the like in it: a probe, and no repair of the values."""
    return not node.orelse and all(
        isinstance(s, ast.Expr)
        and isinstance(s.value, ast.Call)
        and last_name(s.value.func) in ("print", "warn", "warning", "error", "info", "debug", "critical", "breakpoint")
        for s in node.body
    )


def _is_probe(ctx: Context, test: ast.expr) -> bool:
    for node in ast.walk(test):
        if isinstance(node, ast.Call) and last_name(node.func) in _TESTS:
            name = ctx.symbols.qual(node.func) or ""
            if not name.startswith(("math.", "numpy.")):
                return True
        if isinstance(node, ast.Name):
            scope = ctx.symbols.scope(node)
            for binding in scope.bindings.get(node.id, []):
                if (
                    binding.value is not None
                    and not binding.loop
                    and any(isinstance(n, ast.Call) and last_name(n.func) in _TESTS for n in ast.walk(binding.value))
                ):
                    return True
    return False


def _guarded(ctx: Context, node: ast.AST, function: ast.AST) -> bool:
    """Under `if not torch.compiler.is_exporting()`, a debug flag, or after an early return."""
    current: ast.AST | None = node
    while current is not None and current is not function:
        tests = [current.test] if isinstance(current, ast.If | ast.IfExp) else []
        if isinstance(node, ast.Assert):
            tests.append(node.test)
        for test in tests:
            for inner in ast.walk(test):
                name = last_name(inner) if isinstance(inner, ast.Attribute | ast.Name) else ""
                if (
                    name in _GUARDS
                    or "debug" in name.lower()
                    or name in ("training", "check_finite", "check_nan", "sanity_check")
                ):
                    return True
        current = ctx.symbols.parent.get(current)
    return False


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
    trigger=r"isnan|isinf|isfinite",
)
