"""R20: dynamic_axes speaks of names, so the names must be given."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.astnames import Ref, argument_for, strip_module_calls
from deploychain.audit.context import ERROR, WARNING, Context, Rule
from deploychain.audit.exports import Export
from deploychain.audit.finding import Finding, Severity
from deploychain.audit.tables import keys, strings

_NAMES = 'input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}}'


_OUTPUT = re.compile(
    r"out|logit|pred|score|prob|label|box|mask|embed|class|result|depth|feat|hidden|^y|mel|wav|loss|present",
    re.IGNORECASE,
)


def check(ctx: Context) -> Iterator[Finding]:
    done: set[int] = set()
    for export in ctx.exports:
        together = [v for v in export.variants if v.settled("dynamic_axes", "input_names", "output_names")]
        for one in together if len(together) == len(export.variants) else [export]:
            for found in _one(ctx, one):
                if found.line not in done:
                    done.add(found.line)
                    yield found


def _one(ctx: Context, export: Export) -> Iterator[Finding]:
    axes = [r for r in export.refs("dynamic_axes") if not _none(ctx, r)]
    if axes or any(keys(ctx.symbols, *w)[0] for w in _written(export, "dynamic_axes")):
        yield from _axes(ctx, export, axes)
    elif not export.unknown_rest() and _of_caller(ctx, export) and not _some_names(ctx, export):
        yield _callers(ctx, export)
    yield from _shapes(ctx, export)


def _none(ctx: Context, ref: Ref) -> bool:
    return ctx.symbols.const(ref.expr, ref.scope) is None or (isinstance(ref.expr, ast.Dict) and not ref.expr.keys)


def _axes(ctx: Context, export: Export, axes: list[Ref]) -> Iterator[Finding]:
    nameless = all(_none(ctx, r) for r in export.refs("input_names"))
    given = export.given("dynamic_axes")
    named = [place for w in _written(export, "dynamic_axes") for place in keys(ctx.symbols, *w)[0]]
    if not _some_names(ctx, export):
        if export.unknown_rest():
            return
        severity = _severity(export, [key for key, _ in named])
        if axes and not any(_table(r.expr) for r in axes):
            if _of_caller(ctx, export):
                yield _callers(ctx, export)
        elif severity is not None:
            place = given[0] if given is not None else axes[0].expr
            yield ctx.finding("R20", place, severity, _nameless(severity), f"torch.onnx.export(..., {_NAMES})")
        return
    names: list[str] = []
    for expr, scope in _written(export, "input_names") + _written(export, "output_names"):
        found, known = strings(ctx.symbols, expr, scope)
        if not known:
            return
        names += [name for name, _ in found]
    unknown = {key: place for key, place in named if key not in names}
    severity = _severity(export, list(unknown)) if nameless else ERROR
    if unknown and severity is not None and not (nameless and export.unknown_rest()):
        shown = list(dict.fromkeys(names))
        yield ctx.finding(
            "R20", next(iter(unknown.values())), severity,
            f"dynamic_axes names {', '.join(map(repr, unknown))}, which is no input or output name ({', '.join(shown)}): the TorchScript "
            "exporter leaves the axis fixed, the dynamo exporter raises",
            f"use one of {', '.join(map(repr, shown))}",
        )  # fmt: skip


def _severity(export: Export, named: list[str]) -> Severity | None:
    """How sure it is that axes of inputs without names fail: the dynamo exporter takes those of inputs in their order."""
    given = set(export.values("dynamo"))
    if given == {False} or any(_OUTPUT.search(n) for n in named):
        return ERROR
    return None if given == {True} else WARNING


def _nameless(severity: Severity) -> str:
    ignored = (
        "dynamic_axes without input_names and output_names: the TorchScript exporter ignores it (the batch stays fixed)"
    )
    return (
        f"{ignored}, the dynamo exporter raises"
        if severity is ERROR
        else f"{ignored}; only the dynamo exporter takes it for inputs"
    )


def _some_names(ctx: Context, export: Export) -> bool:
    return any(not _none(ctx, r) for name in ("input_names", "output_names") for r in export.refs(name))


def _of_caller(ctx: Context, export: Export) -> bool:
    """A parameter of the function that exports, which no call in the file gives, and names are none."""
    if any(export.written(name) is not None for name in ("input_names", "output_names")):
        return False
    axes = export.written("dynamic_axes")
    function = ctx.symbols.parameter_scope(axes.id, export.scope) if isinstance(axes, ast.Name) else None
    if (
        function is None
        or function is not export.scope
        or not isinstance(axes, ast.Name)
        or axes.id in function.bindings
    ):
        return False
    return all(argument_for(site, function, axes.id) is None for site in ctx.symbols.call_sites(function))


def _callers(ctx: Context, export: Export) -> Finding:
    return ctx.finding(
        "R20", export.written("dynamic_axes") or export.call, WARNING,
        "dynamic_axes is the caller's, but the names that it speaks of are never passed on: the TorchScript exporter ignores it (the "
        "batch stays fixed), the dynamo exporter raises where it names an output",
        "take input_names and output_names as well, and pass them on",
    )  # fmt: skip


def _table(expr: ast.expr) -> bool:
    return isinstance(expr, ast.Dict | ast.DictComp | ast.Call)


def _written(export: Export, name: str) -> list[Ref]:
    """The expression of an argument as it is written, so that what is added to a list later counts as well."""
    given = export.given(name)
    return [given] if given is not None else export.refs(name)


def _shapes(ctx: Context, export: Export) -> Iterator[Finding]:
    """dynamic_shapes speaks of the parameters of `forward`, not of names in the file."""
    model, shapes = export.given("model"), export.given("dynamic_shapes")
    if model is None or shapes is None or export.method:
        return
    cls = ctx.symbols.instance_class(strip_module_calls(model[0]), model[1])
    forward = next((f for f in ctx.symbols.function_scopes if f.name == "forward" and f.owner is cls), None)
    if cls is None or forward is None or not ctx.is_module_class(cls):
        return
    arguments = forward.node.args  # type: ignore[attr-defined]
    if arguments.vararg is not None or arguments.kwarg is not None:
        return
    unknown = {k: place for k, place in keys(ctx.symbols, *shapes)[0] if k not in forward.parameters}
    if unknown:
        yield ctx.finding(
            "R20", next(iter(unknown.values())), ERROR,
            f"dynamic_shapes names {', '.join(map(repr, unknown))}, but the parameters of {cls.name}.forward are "
            f"{', '.join(forward.parameters[1:])}: torch.export raises",
            "name the parameters of forward, or give a tuple in their order",
        )  # fmt: skip


RULE = Rule(
    id="R20",
    name="dynamic-axes",
    title="dynamic_axes does not match the input and output names",
    how="code, graph",
    belief="dynamic_axes={'input': {0: 'batch'}} makes the batch dynamic.",
    truth="Only with input_names and output_names. Without them the TorchScript exporter ignores it and the dynamo exporter raises.",
    experiment="Export with dynamic_axes and no names; the shape in the file.",
    bad='torch.onnx.export(model, x, "m.onnx", dynamic_axes={"input": {0: "batch"}})',
    good='torch.onnx.export(model, x, "m.onnx", input_names=["input"], output_names=["y"], dynamic_axes={"input": {0: "batch"}})',
    check=check,
    trigger=r"dynamic_axes|dynamic_shapes",
)
