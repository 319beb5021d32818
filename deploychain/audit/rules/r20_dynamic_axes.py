"""R20: dynamic_axes speaks of names, so the names must be given."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import Ref, strip_module_calls
from deploychain.audit.context import ERROR, Context, Rule
from deploychain.audit.exports import Export
from deploychain.audit.finding import Finding
from deploychain.audit.tables import keys, strings

_NAMES = 'input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}}'


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
    yield from _shapes(ctx, export)


def _none(ctx: Context, ref: Ref) -> bool:
    return ctx.symbols.const(ref.expr, ref.scope) is None or (isinstance(ref.expr, ast.Dict) and not ref.expr.keys)


def _axes(ctx: Context, export: Export, axes: list[Ref]) -> Iterator[Finding]:
    inputs, outputs = export.refs("input_names"), export.refs("output_names")
    if not any(not _none(ctx, r) for r in (*inputs, *outputs)):
        if not export.unknown_rest() and (not axes or any(_table(r.expr) for r in axes)):
            given = export.given("dynamic_axes")
            yield ctx.finding(
                "R20", given[0] if given is not None else axes[0].expr, ERROR,
                "dynamic_axes without input_names and output_names: the TorchScript exporter ignores it (the batch stays fixed), the dynamo "
                "exporter raises",
                f"torch.onnx.export(..., {_NAMES})",
            )  # fmt: skip
        return
    names: list[str] = []
    for expr, scope in _written(export, "input_names") + _written(export, "output_names"):
        found, known = strings(ctx.symbols, expr, scope)
        if not known:
            return
        names += [name for name, _ in found]
    for expr, scope in _written(export, "dynamic_axes"):
        unknown = {key: place for key, place in keys(ctx.symbols, expr, scope)[0] if key not in names}
        if unknown:
            shown = list(dict.fromkeys(names))
            yield ctx.finding(
                "R20", next(iter(unknown.values())), ERROR,
                f"dynamic_axes names {', '.join(map(repr, unknown))}, which is no input or output name ({', '.join(shown)}): the axis "
                "stays fixed",
                f"use one of {', '.join(map(repr, shown))}",
            )  # fmt: skip
            return


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
