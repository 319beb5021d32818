"""R19: the opset in the file is what counts, not the argument."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, argument, last_name
from deploychain.audit.context import NOTE, WARNING, Context, Rule
from deploychain.audit.exports import Export
from deploychain.audit.finding import Finding
from deploychain.audit.tree import walk

DYNAMO_LOWEST = 18
_CHECKS = re.compile(r"opset_import|full_check=True|convert_version")
_LOOKS = re.compile(r"checker\.check_model|onnx\.load|InferenceSession")
_OF_DYNAMO = ("dynamic_shapes", "custom_translation_table", "report", "optimize", "verify", "profile", "artifacts_dir")


def check(ctx: Context) -> Iterator[Finding]:
    if "onnx" not in ctx.text:
        return
    if ctx.exports and not _compared(ctx):
        for export in ctx.exports:
            found = next((f for one in export.variants if (f := _below(ctx, one)) is not None), None)
            if found is not None:
                yield found
    yield from _relabelled(ctx)


def _below(ctx: Context, export: Export) -> Finding | None:
    """An opset below 18 that the dynamo exporter is asked for."""
    opsets = [v for v in export.values("opset_version") if isinstance(v, int) and not isinstance(v, bool)]
    low = [v for v in opsets if v < DYNAMO_LOWEST]
    if not low or (len(low) != len(opsets) and (export.given("opset_version") is None or _chosen_together(export))):
        return None  # or settings that are changed before they are used
    given = export.values("dynamo")
    if False in given and (True not in given or export.given("dynamo") is None):
        return None
    if True in given or _implied(ctx, export):
        return ctx.finding(
            "R19", export.call, WARNING,
            f"the dynamo exporter only tries to go below opset 18: with opset_version={max(low)} the file can stay at 18 (mean, pad, "
            "normalize) or be invalid (split, chunk), both without an exception",
            f"torch.onnx.export(..., opset_version=18, dynamo=True); where {max(low)} is needed: dynamo=False, then check the file",
        )  # fmt: skip
    if export.method or export.refs("dynamo") or export.unknown_rest() or ctx.says(_CHECKS):
        return None
    if ctx.says(_LOOKS) and not _claimed(ctx, export):
        return None
    unseen = (
        "nothing here reads its opset, though one is written down"
        if ctx.says(_LOOKS)
        else "nothing here looks at the file"
    )
    return ctx.finding(
        "R19", export.call, NOTE,
        f"from torch 2.9 on this call uses the dynamo exporter, which may leave the file at opset 18 in spite of "
        f"opset_version={max(low)}, and {unseen}",
        f"torch.onnx.export(..., opset_version={max(low)}, dynamo=False), then onnx.checker.check_model(path, full_check=True)",
    )  # fmt: skip


def _claimed(ctx: Context, export: Export) -> bool:
    """What was asked for is written down as what the file has: `{"opset_version": opset_version}`."""
    opset = export.written("opset_version")
    return isinstance(opset, ast.Name) and any(
        isinstance(value, ast.Name) and value.id == opset.id and isinstance(key, ast.Constant) and "opset" in str(key.value)
        for table in ctx.symbols.nodes(ast.Dict) if ctx.symbols.scope(table) is export.scope
        for key, value in zip(table.keys, table.values, strict=True)
    )  # fmt: skip


def _compared(ctx: Context) -> bool:
    """The opset of the file is compared with what was asked for: the difference does not stay unseen."""
    return any("opset_import" in ast.unparse(c) for c in ctx.symbols.nodes(ast.Compare)) or any(
        isinstance(n, ast.Compare) and any(_opset(ctx, e, ctx.symbols.scope(n)) for e in (n.left, *n.comparators))
        for n in ctx.symbols.nodes(ast.Compare)
    )


def _opset(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    if not isinstance(expr, ast.Name | ast.Call):
        return False
    return any("opset_import" in ast.unparse(r.expr) for r in ctx.symbols.resolve(expr, scope))


def _chosen_together(export: Export) -> bool:
    """`opset_version=20 if dynamo else 17, dynamo=dynamo`, also by a function of it or an `if` statement before."""
    opset, dynamo = export.written("opset_version"), export.written("dynamo")
    if opset is None or dynamo is None:
        return False
    choice = dynamo.operand if isinstance(dynamo, ast.UnaryOp) else dynamo
    told = re.compile(rf"(?<![\w.]){re.escape(ast.unparse(choice))}\b")
    decided: list[ast.expr] = [opset]
    for binding in export.symbols.bindings(opset.id, export.scope) if isinstance(opset, ast.Name) else ():
        above: ast.AST | None = binding.node
        while above is not None:
            decided += [above.test] if isinstance(above, ast.If) else []
            above = export.symbols.parent.get(above)
        decided += [binding.value] if binding.value is not None else []
    return any(told.search(ast.unparse(d)) for d in decided)


def _implied(ctx: Context, export: Export) -> bool:
    """An exported program, or an argument that only the dynamo exporter has."""
    if export.method or export.refs("dynamo"):
        return False
    if any(
        r for name in _OF_DYNAMO for r in export.refs(name) if ctx.symbols.const(r.expr, r.scope) not in (None, False)
    ):
        return True
    model = export.given("model")
    return model is not None and any(_program(ctx, r.expr, r.scope) for r in ctx.symbols.resolve(*model))


def _program(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    while isinstance(expr, ast.Call):
        if (ctx.symbols.qual(expr.func, scope) or "") == "torch.export.export":
            return True
        if not (isinstance(expr.func, ast.Attribute) and expr.func.attr in ("run_decompositions", "module")):
            return False
        if expr.func.attr == "module":
            return False
        inner = ctx.symbols.resolve(expr.func.value, scope)
        expr, scope = inner[0]
    return False


def _relabelled(ctx: Context) -> Iterator[Finding]:
    """`model.opset_import[0].version = 13`: the number changes, the operators do not."""
    if "opset_import" not in ctx.text or "make_model" in ctx.text:
        return  # of a graph that is made here the label is what one says
    for node in ctx.symbols.nodes(ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Attribute) and target.attr == "version" and _of_a_file(ctx, target.value):
                scope = ctx.symbols.scope(node)
                if not _of_a_label(ctx, node.value, scope) and not _rewrites(ctx, scope):
                    yield _label(ctx, node)
    for deleted in ctx.symbols.nodes(ast.Delete):
        if any("opset_import" in ast.unparse(t) for t in deleted.targets):
            scope = ctx.symbols.scope(deleted)
            if any(_is_given(ctx, e, scope) for e in _new_numbers(ctx, scope)) and not _rewrites(ctx, scope):
                yield _label(ctx, deleted)


def _new_numbers(ctx: Context, scope: Scope) -> Iterator[ast.expr]:
    """The versions that a function makes labels of: `make_opsetid("", 13)`, `make_operatorsetid(domain, version)`."""
    for call, where in ctx.calls_named("make_opsetid", "make_operatorsetid", "OperatorSetIdProto"):
        if where is scope or where.parent is scope:
            number = argument(call, 1, "version")
            if number is not None:
                yield number


def _is_given(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    """A number that is written in the file, or that the function is given."""
    return isinstance(ctx.symbols.const(expr, scope), int) or (
        isinstance(expr, ast.Name) and expr.id in scope.parameters
    )


def _of_a_label(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    """The number is one that a model has already: its own, or that of one that it is merged with."""
    seen = [expr, *(r.expr for n in walk(expr) if isinstance(n, ast.Name) for r in ctx.symbols.resolve(n, scope))]
    return any("opset_import" in ast.unparse(e) or ".version" in ast.unparse(e) for e in seen)


_OF_NODES = re.compile(r"\b(nodes?|attrs?|attributes?|inputs?|outputs?)(\[[^\]]*\])?$")
_CHANGES = frozenset({"pop", "remove", "insert", "append", "extend", "CopyFrom", "clear", "MergeFrom"})


def _rewrites(ctx: Context, scope: Scope) -> bool:
    """The function, one that it calls, or one that calls it changes the operators as well."""
    near = {scope, *(ctx.symbols.scope(c) for c in ctx.symbols.call_sites(scope))}
    for call in ctx.symbols.calls:
        if ctx.symbols.scope(call) in near:
            called = ctx.symbols.local_function(call.func, ctx.symbols.scope(call))
            near |= {called} if called is not None else set()
    return any(_changes_nodes(n) for s in near for n in _own(ctx, s))


def _own(ctx: Context, scope: Scope) -> Iterator[ast.AST]:
    return (n for n in ctx.symbols.nodes(ast.Call, ast.Assign, ast.Delete) if ctx.symbols.scope(n) is scope)


def _changes_nodes(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        if last_name(node.func) in ("make_node", "convert_version"):
            return True
        func = node.func
        return (
            isinstance(func, ast.Attribute)
            and func.attr in _CHANGES
            and bool(_OF_NODES.search(ast.unparse(func.value)))
        )
    targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else []
    return any(
        (isinstance(t, ast.Attribute) and t.attr in ("op_type", "op", "attrs", "inputs"))
        or (isinstance(t, ast.Subscript) and bool(_OF_NODES.search(ast.unparse(t.value))))
        for t in targets
    )


def _of_a_file(ctx: Context, holder: ast.expr) -> bool:
    if isinstance(holder, ast.Subscript):
        return "opset_import" in ast.unparse(holder.value)
    if not isinstance(holder, ast.Name):
        return False
    return any(
        b.loop and b.value is not None and "opset_import" in ast.unparse(b.value)
        for b in ctx.symbols.bindings(holder.id, ctx.symbols.scope(holder))
    )


def _label(ctx: Context, node: ast.AST) -> Finding:
    return ctx.finding(
        "R19", node, WARNING,
        "only the label of the opset is changed: the operators stay those of the opset that the file was written in, so it is invalid "
        "or means something else where one has changed since (ReduceMean-18 takes its axes as an input, Split-18 has num_outputs)",
        "onnx.version_converter.convert_version(model, 17), then onnx.checker.check_model(model, full_check=True)",
    )  # fmt: skip


RULE = Rule(
    id="R19",
    name="opset-contract",
    title="The opset in the file is not the one that was asked for",
    how="code, graph, log",
    belief="opset_version=17 gives an opset 17 file; opset 11 has no FP16.",
    truth=(
        "The dynamo exporter (default since torch 2.9) stays at 18 for mean, pad and normalize, and writes an invalid file for split "
        "and chunk, without raising. Half models at opset 9, 11 and 13 export and run; the real reasons for 17 are "
        "LayerNormalization (17) and GridSample (16)."
    ),
    experiment="Export of x.mean(-1) with dynamo and opset 17, and the opset in the file.",
    bad='torch.onnx.export(model, x, "m.onnx", opset_version=17, dynamo=True)',
    good='torch.onnx.export(model, x, "m.onnx", opset_version=17, dynamo=False)\nonnx.checker.check_model("m.onnx", full_check=True)',
    check=check,
    trigger=r"onnx\.export|onnx import|to_onnx|opset_import|opset_version",
)
