"""R28, beyond the order of events: the scaler in checkpoints."""

# ruff: noqa: E501  (messages are one piece of text)
from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, argument_for, dotted, last_name
from deploychain.audit.context import NOTE, WARNING, Context
from deploychain.audit.events import Event
from deploychain.audit.finding import Finding
from deploychain.audit.rules.saved_objects import ANY, looped_states, of_a_kind, own_name

_WRITTEN = re.compile(r"scaler\._\w+ *=[^=]")  # its state is put back by hand, which is R17
_TABLE = re.compile(r"checkpoint|ckpt|snapshot|to_save", re.IGNORECASE)
_SAVES = re.compile(r"(^|_)save|checkpoint|dump", re.IGNORECASE)


def checkpoints(ctx: Context) -> Iterator[Finding]:
    """The optimiser's state is saved or loaded, the scaler's is not."""
    if not any(g.events("scaler-step") for g in ctx.graphs):
        return
    if (
        not any(ctx.amp.call_enabled(c, ctx.symbols.scope(c)) is not False for c in ctx.amp.scaler_calls)
        and ctx.amp.scaler_calls
    ):
        return
    steps = [e for g in ctx.graphs for _, e in g.events("scaler-step")]
    stepped = {own_name(e.key) for e in steps} | {n for e in steps for n in _held_as(ctx, e)}
    scalers = {own_name(e.detail) for e in steps}
    into, out_of = (list(looped_states(ctx, m)) if m in ctx.text else [] for m in ("state_dict", "load_state_dict"))
    saved = next(_saved(ctx, stepped), None) or next(_without(into, stepped, scalers), None)
    scaler_saved, scaler_loaded = _of_scaler(ctx, "state_dict"), _of_scaler(ctx, "load_state_dict")
    scaler_saved = scaler_saved or any(_has_scaler(names, scalers) for _, names in into)
    scaler_loaded = scaler_loaded or any(_has_scaler(names - {ANY}, scalers) for _, names in out_of)
    if saved is not None and not scaler_saved and not _scaler_given(ctx):
        lost = "the resume asks for it and finds nothing" if scaler_loaded else (
            "after a resume the scale is the initial one again (65536 by default: 5 to 10 skipped steps), the growth counter 0"
        )  # fmt: skip
        yield ctx.finding(
            "R28", saved, WARNING,
            f"the checkpoint holds the optimiser's state but not the scaler's: {lost}",
            '"scaler": scaler.state_dict(),  # and scaler.load_state_dict(checkpoint["scaler"]) on resume',
        )  # fmt: skip
    elif saved is None and not scaler_saved and (kept := _kept(ctx, stepped)) is not None:
        yield ctx.finding(
            "R28", kept, NOTE,
            f"`{ctx.str(kept.targets[0])}` keeps the optimiser for checkpoints, and nothing keeps the scaler: after a resume the scale is the "
            "initial one again (65536 by default: 5 to 10 skipped steps), the growth counter 0",
            f'{ast.unparse(kept.targets[0].value)}["scaler"] = ...' if isinstance(kept.targets[0], ast.Subscript) else "",
        )  # fmt: skip
    elif scaler_saved and not scaler_loaded and not ctx.says(_WRITTEN) and not any(ANY in n for _, n in out_of):
        load = _loaded(ctx, stepped) or next(_without(out_of, stepped, scalers), None)
        if load is None:
            return
        yield ctx.finding(
            "R28", load, WARNING,
            "the optimiser's state is loaded but not the scaler's, which the checkpoint holds: the scale is the initial one again "
            "(65536 by default: 5 to 10 skipped steps), the growth counter 0",
            f'{ctx.str(load)}\nscaler.load_state_dict(checkpoint["scaler"])',
        )  # fmt: skip


def _kept(ctx: Context, stepped: set[str]) -> ast.Assign | None:
    """`self.checkpoint_modules["optimizer"] = self.optimizer`, and no such line for the scaler."""
    found: ast.Assign | None = None
    for node in ctx.symbols.nodes(ast.Assign):
        target = node.targets[0]
        if not isinstance(target, ast.Subscript) or not _TABLE.search(last_name(target.value)):
            continue
        if "scaler" in ast.unparse(node).lower():
            return None
        if found is None and last_name(node.value) in stepped and not isinstance(node.value, ast.Call):
            found = node
    return found


def _held_as(ctx: Context, step: Event) -> set[str]:
    """The name of the stepped optimiser in the object that holds it: `opt = state["optimizer"]`."""
    name = step.node.args[0] if isinstance(step.node, ast.Call) and step.node.args else None
    bindings = ctx.symbols.bindings(name.id, step.scope) if isinstance(name, ast.Name) else []
    return {own_name(text) for b in bindings if b.value is not None and (text := dotted(b.value)) is not None}


def _has_scaler(names: frozenset[str], scalers: set[str]) -> bool:
    return ANY in names or bool(names & scalers) or any("scaler" in n.lower() for n in names)


def _without(looped: list[tuple[ast.Call, frozenset[str]]], stepped: set[str], scalers: set[str]) -> Iterator[ast.Call]:
    """Loops over the optimiser and others, the scaler not among them."""
    return (call for call, names in looped if names & stepped and not _has_scaler(names, scalers))


def _of_scaler(ctx: Context, method: str) -> bool:
    return any(
        isinstance(call.func, ast.Attribute)
        and call.func.attr == method
        and (
            ctx.amp.is_scaler(call.func.value, ctx.symbols.scope(call))
            or "scaler" in (dotted(call.func.value) or "").lower()
            or "scaler" in _iterated(ctx, call.func.value, ctx.symbols.scope(call))
        )
        for call in ctx.symbols.calls
    )


def _iterated(ctx: Context, expr: ast.expr, scope: Scope) -> str:
    """The text of what a loop variable comes from: `for name, obj in {"scaler": scaler}.items()`."""
    for _, sites in _collected(ctx, expr, scope):
        return " ".join(ast.unparse(a) for s in sites for a in _given(s)).lower()
    bindings = [b for b in ctx.symbols.bindings(dotted(expr) or "", scope) if b.loop and b.value is not None]
    sources = [(_unwrapped(b.value), b.scope) for b in bindings if b.value is not None]
    refs = [r for source, home in sources if not of_a_kind(source) for r in ctx.symbols.resolve(source, home)]
    # what a parameter holds is not known, unless its calls say it (`**objects`): any of it may be the scaler
    texts: list[str] = []
    for ref in refs:
        given = [k for c in ctx.symbols.configs.callers(ref.expr, ref.scope) or () for k in c.keywords]
        shown = bool(given) and all(k.arg for k in given)
        unknown = "scaler" if isinstance(ref.expr, ast.Name) else ast.unparse(ref.expr)
        texts.append(" ".join(ast.unparse(k) for k in given) if shown else unknown)
    return " ".join(texts).lower()


def _unwrapped(value: ast.expr) -> ast.expr:
    return value.func.value if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) else value


def _scaler_given(ctx: Context) -> bool:
    """The scaler itself is handed to something that saves: `save(path, model=model, scaler=scaler)`."""
    for call in ctx.symbols.calls:
        if not _SAVES.search(last_name(call.func)):
            continue
        scope = ctx.symbols.scope(call)
        # What a function or class of this file does with an object that holds the scaler is shown there.
        shown = last_name(call.func) in ctx.symbols.classes or ctx.symbols.local_function(call.func, scope) is not None
        for argument in _given(call):
            each = [argument] if shown else [r.expr for r in ctx.symbols.resolve(argument, scope)]
            if any("scaler" in ast.unparse(e).lower() for e in each):
                return True
    return False


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(k.value for k in call.keywords)]


def _saved(ctx: Context, stepped: set[str]) -> Iterator[ast.AST]:
    """Where the state of an optimiser that a scaler steps goes into a dictionary, or the optimiser into a save call."""
    if "state_dict" in ctx.text:
        for node in ctx.symbols.nodes(ast.Dict, ast.Call, ast.Assign):
            if any(_is_state(ctx, v, stepped) for v in _values(node)):
                yield node
        yield from _of_each(ctx, stepped)
    for call in ctx.symbols.calls:
        if not _SAVES.search(last_name(call.func)) or last_name(call.func).endswith("hook"):
            continue
        given = {k.arg: k.value for k in call.keywords}
        for ref in [r for a in call.args[:2] for r in ctx.symbols.resolve(a, ctx.symbols.scope(call))]:
            if isinstance(ref.expr, ast.Dict):
                given |= {
                    ast.unparse(k): v for k, v in zip(ref.expr.keys, ref.expr.values, strict=True) if k is not None
                }
        names = {last_name(v) for v in given.values()}
        if names & stepped and any("model" in n or "net" in n for n in (*names, *map(str, given))):
            yield call


def _values(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):  # state["optimizer"] = optimizer.state_dict()
        return [node.value] if isinstance(node.targets[0], ast.Subscript) else []
    if isinstance(node, ast.Dict):
        return [] if any(k is None for k in node.keys) else node.values
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        return [k.value for k in node.keywords]
    return []


def _is_state(ctx: Context, value: ast.expr, stepped: set[str]) -> bool:
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr == "state_dict"
        and bool(_names(ctx, value.func.value, ctx.symbols.scope(value)) & stepped)
    )


def _names(ctx: Context, expr: ast.expr, scope: Scope, depth: int = 3) -> set[str]:
    """The last names that an object has: here, and where it was handed to this function or to this object."""
    text = dotted(expr)
    if text is None or not depth:
        return set()
    found = {text.rpartition(".")[2]}
    function = ctx.symbols.parameter_scope(text, scope)
    if function is not None:
        sites = ctx.symbols.call_sites(function)
        if function.name == "__init__" and function.owner is not None:
            sites = ctx.symbols.constructions(function.owner)
        for call in sites[:8]:
            given = argument_for(call, function, text)
            if given is not None:
                found |= _names(ctx, given, ctx.symbols.scope(call), depth - 1)
    elif text.startswith("self."):
        for binding in ctx.symbols.bindings(text, scope):
            if isinstance(binding.value, ast.Name) and not binding.loop and binding.place is None:
                found |= _names(ctx, binding.value, binding.scope, depth - 1)
    return found


def _of_each(ctx: Context, stepped: set[str]) -> Iterator[ast.AST]:
    """`save(path, model=model, optimizer=opt)` of a function that saves the state of each of its keywords."""
    for call, scope in ctx.calls_named("state_dict"):
        base = call.func.value if isinstance(call.func, ast.Attribute) else call
        for function, sites in _collected(ctx, base, scope):
            if _SAVES.search(function.name):
                yield from (s for s in sites if any(last_name(v) in stepped for v in _given(s)))


def _collected(ctx: Context, expr: ast.expr, scope: Scope) -> Iterator[tuple[Scope, list[ast.Call]]]:
    """Of a loop variable over `**objects`: the function, and its calls where none hides what it gives."""
    for binding in ctx.symbols.bindings(dotted(expr) or "", scope):
        source = _unwrapped(binding.value) if binding.loop and binding.value is not None else None
        function = binding.scope
        arguments = getattr(function.node, "args", None)
        if (
            not isinstance(source, ast.Name)
            or arguments is None
            or arguments.kwarg is None
            or arguments.kwarg.arg != source.id
        ):
            continue
        sites = ctx.symbols.call_sites(function)
        if sites and not any(k.arg is None for s in sites for k in s.keywords):
            yield function, sites


def _loaded(ctx: Context, stepped: set[str]) -> ast.Call | None:
    return next(
        (
            call
            for call, _ in ctx.calls_named("load_state_dict")
            if isinstance(call.func, ast.Attribute) and (dotted(call.func.value) or "").rpartition(".")[2] in stepped
        ),
        None,
    )
