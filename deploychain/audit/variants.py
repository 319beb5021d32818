"""What an export is given by each caller, turn of a loop, table entry or subclass: options that belong together."""

# ruff: noqa: SIM102  (nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from deploychain.audit.astnames import Ref, Scope, argument_for, last_name
from deploychain.audit.symbols import Symbols
from deploychain.audit.tables import changed

View = dict[str, Ref]  # the text of an expression in a call -> what it stands for this time
_MANY = 12


def views(symbols: Symbols, call: ast.Call) -> list[View]:
    """Every way in which the arguments of a call are known to come together; [{}] where there is only one."""
    scope = symbols.scope(call)
    parts = [p for a in (*call.args, *(k.value for k in call.keywords)) for p in ast.walk(a)]
    names = {p.id for p in parts if isinstance(p, ast.Name)}
    found: list[View] = [{}]
    for ways in (
        _of_callers(symbols, scope, names),
        _of_loops(symbols, call, scope, names),
        _of_choices(symbols, scope, names),
        _of_tables(symbols, call, scope, parts),
        _of_classes(symbols, scope, parts) if "self" in names else [],
    ):
        if ways:
            found = [{**one, **way} for one in found for way in ways][:_MANY]
    return found


def _of_callers(symbols: Symbols, scope: Scope, names: set[str]) -> list[View]:
    """The arguments of each call of the function that exports."""
    function = scope.node
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return []
    rest = function.args.kwarg.arg if function.args.kwarg is not None else ""
    rest = rest if rest in names and not changed(symbols, rest, scope) else ""
    used = [p for p in scope.parameters if p in names and p not in scope.bindings and p != "self"]
    used = [p for p in used if not changed(symbols, p, scope)]
    if not used and not rest:
        return []
    return [_given(symbols, site, scope, used, rest) for site in symbols.call_sites(scope)[:_MANY]]


def _given(symbols: Symbols, site: ast.Call, function: Scope, used: Iterable[str], rest: str = "") -> View:
    view: View = {}
    for name in used:
        given = argument_for(site, function, name)
        if given is not None:
            view[name] = Ref(given, symbols.scope(site))
        elif not any(k.arg is None for k in site.keywords):
            default = symbols.default(name, function)
            if default is not None:
                view[name] = Ref(default, function)
    if rest:
        further = [k for k in site.keywords if k.arg not in function.parameters]
        keys: list[ast.expr | None] = [ast.Constant(k.arg) if k.arg is not None else None for k in further]
        table = ast.Dict(keys, [k.value for k in further])
        view[rest] = Ref(ast.copy_location(table, site), symbols.scope(site))
    return view


def _of_loops(symbols: Symbols, call: ast.Call, scope: Scope, names: set[str]) -> list[View]:
    """`for name, spec in SPECS.items(): export(..., **spec)`."""
    loops: dict[int, ast.For] = {}
    for name in names:
        for binding in symbols.bindings(name, scope):
            if isinstance(binding.node, ast.For) and _inside(symbols, call, binding.node):
                loops[id(binding.node)] = binding.node
    ways: list[View] = []
    for loop in loops.values():
        ways += [_unpacked(loop.target, row) for row in _rows(symbols, loop.iter, symbols.scope(loop))]
    return ways[:_MANY] if len(loops) == 1 else []


def _of_choices(symbols: Symbols, scope: Scope, names: set[str]) -> list[View]:
    """`opset, dynamo = choose(target)` that returns pairs; both set in each branch of an `if`."""
    branches: dict[tuple[tuple[int, bool], ...], list[str]] = {}
    for name in names:
        bindings = symbols.bindings(name, scope)
        first = bindings[0] if bindings else None
        if len(bindings) == 1 and first is not None and isinstance(first.node, ast.Assign) and first.place is not None:
            rows = symbols.resolve(first.node.value, first.scope)
            ways = [_unpacked(first.node.targets[0], row) for row in rows if isinstance(row.expr, ast.Tuple)]
            if len(ways) == len(rows) > 1:
                return ways[:_MANY]
        elif len(bindings) > 1 and all(b.value is not None and b.place is None and not b.loop for b in bindings):
            branches.setdefault(tuple(_branch(symbols, b.node) for b in bindings), []).append(name)
    for together in branches.values():
        if len(together) > 1:
            made = zip(*(symbols.bindings(name, scope) for name in together), strict=True)
            return [{n: Ref(b.value, b.scope) for n, b in zip(together, row, strict=True) if b.value} for row in made]
    return []


def _branch(symbols: Symbols, node: ast.AST) -> tuple[int, bool]:
    """The `if` around a statement, and on which side of it this is."""
    above = symbols.parent.get(node)
    return id(above), isinstance(above, ast.If) and node in above.body


def _inside(symbols: Symbols, node: ast.AST, loop: ast.AST) -> bool:
    above: ast.AST | None = node
    while above is not None and above is not loop:
        above = symbols.parent.get(above)
    return above is not None


def _rows(symbols: Symbols, source: ast.expr, scope: Scope) -> Iterator[Ref]:
    method = source.func.attr if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) else ""
    if method in ("items", "values"):
        assert isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute)
        source = source.func.value
    if isinstance(source, ast.Call) and last_name(source.func) == "zip":
        lists = [
            [r for r in symbols.resolve(a, scope) if isinstance(r.expr, ast.List | ast.Tuple)] for a in source.args
        ]
        known = [refs[0] for refs in lists if len(refs) == 1]
        for i in range(min((len(getattr(r.expr, "elts", ())) for r in known), default=0)):
            parts = [
                refs[0].expr.elts[i] if len(refs) == 1 else a  # type: ignore[attr-defined]
                for refs, a in zip(lists, source.args, strict=True)
            ]
            yield Ref(ast.Tuple(parts), known[0].scope)
        return
    for ref in symbols.resolve(source, scope):
        if isinstance(ref.expr, ast.List | ast.Tuple) and not method:
            yield from (Ref(e, ref.scope) for e in ref.expr.elts)
        elif isinstance(ref.expr, ast.Dict) and method:
            for key, value in zip(ref.expr.keys, ref.expr.values, strict=True):
                if key is not None:
                    yield Ref(ast.Tuple([key, value]) if method == "items" else value, ref.scope)


def _unpacked(target: ast.expr, row: Ref) -> View:
    if isinstance(target, ast.Name):
        return {target.id: row}
    view: View = {}
    if isinstance(target, ast.Tuple | ast.List) and isinstance(row.expr, ast.Tuple | ast.List):
        if len(target.elts) == len(row.expr.elts):
            for part, value in zip(target.elts, row.expr.elts, strict=True):
                view.update(_unpacked(part, Ref(value, row.scope)))
    return view


def _of_tables(symbols: Symbols, call: ast.Call, scope: Scope, parts: list[ast.AST]) -> list[View]:
    """`**TARGETS[target]`; `spec = TARGETS[target]` before it."""
    for part in parts:
        entry: ast.AST | None = part
        if isinstance(part, ast.Name):
            bindings = symbols.bindings(part.id, scope)
            entry = bindings[0].value if len(bindings) == 1 and not bindings[0].loop else None
        if isinstance(entry, ast.Subscript) and not isinstance(entry.slice, ast.Constant):
            tables = [r for r in symbols.resolve(entry.value, scope) if isinstance(r.expr, ast.Dict)]
            ways = [{ast.unparse(part): Ref(v, r.scope)} for r in tables for v in getattr(r.expr, "values", [])]
            if ways and all(isinstance(w.expr, ast.Dict | ast.Call) for way in ways for w in way.values()):
                return ways[:_MANY]
    return []


def _of_classes(symbols: Symbols, scope: Scope, parts: list[ast.AST]) -> list[View]:
    """`self.opset` of each subclass, and of each instance that is made with other arguments."""
    owner = symbols.class_of(scope)
    attributes = {
        p.attr for p in parts if isinstance(p, ast.Attribute) and isinstance(p.value, ast.Name) and p.value.id == "self"
    }
    attributes = {a for a in attributes if not changed(symbols, f"self.{a}", scope)}
    if owner is None or not attributes:
        return []
    ways: list[View] = []
    for cls in symbols.classes.values():
        if owner not in symbols.bases(cls):
            continue
        made = symbols.constructions(cls)[:4]
        below = any(cls in list(symbols.bases(other))[1:] for other in symbols.classes.values())
        if not made and below:
            continue  # nothing but what its subclasses make of it
        sites: list[ast.Call | None] = [*made] if made else [None]
        ways += [_of_instance(symbols, cls, site, attributes) for site in sites]
    return ways[:_MANY]


def _of_instance(symbols: Symbols, cls: Scope, site: ast.Call | None, attributes: set[str]) -> View:
    view: View = {}
    for attribute in attributes:
        for home in symbols.bases(cls):
            bindings = home.bindings.get(f"self.{attribute}") or home.bindings.get(attribute, [])
            if not bindings:
                continue
            binding = bindings[0]
            if len(bindings) == 1 and binding.value is not None and binding.place is None and not binding.loop:
                view[f"self.{attribute}"] = _argument(symbols, Ref(binding.value, binding.scope), cls, home, site)
            break
    return view


def _argument(symbols: Symbols, ref: Ref, cls: Scope, home: Scope, site: ast.Call | None) -> Ref:
    """What a parameter of `__init__` is for this instance."""
    init = ref.scope
    if not isinstance(ref.expr, ast.Name) or ref.expr.id not in init.parameters or init.name != "__init__":
        return ref
    own = [f for f in symbols.function_scopes if f.name == "__init__" and f.owner is cls and cls is not home]
    for call in symbols.calls if own else ():
        if isinstance(call.func, ast.Attribute) and call.func.attr == "__init__" and symbols.scope(call) is own[0]:
            return _given(symbols, call, init, [ref.expr.id]).get(ref.expr.id, ref)
    return _given(symbols, site, init, [ref.expr.id]).get(ref.expr.id, ref) if site is not None and not own else ref
