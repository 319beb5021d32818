"""What an export is given by each caller, turn of a loop, table entry or subclass: options that belong together."""

# ruff: noqa: SIM102  (nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from deploychain.audit.astnames import Ref, Scope, argument_for, last_name, returns
from deploychain.audit.symbols import Symbols
from deploychain.audit.tables import changed
from deploychain.audit.tree import walk

View = dict[str, Ref]  # the text of an expression in a call -> what it stands for this time
_MANY = 12


def views(symbols: Symbols, call: ast.Call, depth: int = 3) -> list[View]:
    """Every way in which the arguments of a call are known to come together; [{}] where there is only one."""
    return _views(symbols, call, _arguments(call), depth)


def _views(symbols: Symbols, call: ast.Call, arguments: Iterable[ast.expr], depth: int) -> list[View]:
    scope = symbols.scope(call)
    parts = [p for a in arguments for p in walk(a)]
    names = {p.id for p in parts if isinstance(p, ast.Name)}
    found: list[View] = [{}]
    for ways in (
        _of_callers(symbols, scope, names, depth),
        _of_loops(symbols, call, scope, names),
        _of_choices(symbols, scope, names),
        _of_tables(symbols, call, scope, parts),
        _of_classes(symbols, scope, parts, depth) if "self" in names else [],
    ):
        if ways:
            found = [{**one, **way} for one in found for way in ways][:_MANY]
    return found


def viewed(symbols: Symbols, view: View, expr: ast.expr, scope: Scope) -> Ref:
    """What an expression is this time: the argument of one caller, `spec["axes"]` of one table entry."""
    if view:
        known = view.get(ast.unparse(expr))
        if known is not None:
            return known
        if isinstance(expr, ast.Subscript | ast.Attribute):
            holder = viewed(symbols, view, expr.value, scope)
            key = expr.attr if isinstance(expr, ast.Attribute) else getattr(expr.slice, "value", None)
            found: list[Ref] = []
            if holder.expr is expr.value:
                pass
            elif isinstance(key, str):
                found = symbols.configs.values(holder.expr, key, holder.scope, 5, frozenset())
            elif isinstance(key, int):
                held = [r for r in symbols.resolve(*holder) if isinstance(r.expr, ast.Tuple | ast.List)]
                found = [Ref(e, r.scope) for r in held for e in getattr(r.expr, "elts", [])[key : key + 1]]
            if len(found) == 1:
                return found[0]
    return Ref(expr, scope)


def _of_callers(symbols: Symbols, scope: Scope, names: set[str], depth: int) -> list[View]:
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
    sites = symbols.call_sites(scope)[:_MANY]
    return [given for site in sites for given in _given_by(symbols, site, scope, used, rest, depth)][:_MANY]


def _given_by(
    symbols: Symbols, site: ast.Call, function: Scope, used: Iterable[str], rest: str, depth: int
) -> list[View]:
    """What a function gets from one caller, which may do it in a loop or be called in several ways itself."""
    view = _given(symbols, site, function, used, rest)
    home = symbols.scope(site)
    own = [ref.expr for ref in view.values() if ref.scope is home and not isinstance(ref.expr, ast.Constant)]
    if not own or depth <= 1:
        return [view]
    return [
        {n: viewed(symbols, above, *ref) if ref.scope is home else ref for n, ref in view.items()}
        for above in _views(symbols, site, own, depth - 1)
    ]


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
    loops: dict[int, ast.For | ast.comprehension] = {}
    for name in names:
        for binding in symbols.bindings(name, scope):
            if isinstance(binding.node, ast.For | ast.comprehension) and _inside(symbols, call, binding.node):
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
    loop = symbols.parent[loop] if isinstance(loop, ast.comprehension) else loop
    while above is not None and above is not loop:
        above = symbols.parent.get(above)
    return above is not None


def _rows(symbols: Symbols, source: ast.expr, scope: Scope) -> Iterator[Ref]:
    method = source.func.attr if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) else ""
    if method in ("items", "values"):
        assert isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute)
        source = source.func.value
    if isinstance(source, ast.Call) and last_name(source.func) == "enumerate" and source.args:
        for i, row in enumerate(_rows(symbols, source.args[0], scope)):
            yield Ref(ast.Tuple([ast.Constant(i), row.expr]), row.scope)
        return
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
        elif isinstance(ref.expr, ast.ListComp | ast.GeneratorExp) and not method:
            yield Ref(ref.expr.elt, ref.scope)  # `[Job(n) for n in NAMES]`: what they have in common
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


def _of_classes(symbols: Symbols, scope: Scope, parts: list[ast.AST], depth: int) -> list[View]:
    """`self.opset`, `self.axes()` of each subclass, and of each instance that is made with other arguments."""
    owner = symbols.class_of(scope)
    of_self = [p for p in parts if isinstance(p, ast.Attribute) and last_name(p.value) == "self"]
    methods = {ast.unparse(c): last_name(c.func) for c in parts if isinstance(c, ast.Call) and c.func in of_self}
    attributes = {p.attr for p in of_self if not changed(symbols, f"self.{p.attr}", scope)}
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
        returned = _of_methods(symbols, cls, {**methods, **{f"self.{a}": a for a in attributes}})
        sites: list[ast.Call | None] = [*made] if made else [None]
        for site in sites:
            ways += [{**returned, **way} for way in _of_instance(symbols, cls, site, attributes, depth)]
    return ways[:_MANY]


def _of_methods(symbols: Symbols, cls: Scope, wanted: dict[str, str]) -> View:
    """What `self.axes()`, or a property `self.axes`, gives in the methods that this class has or inherits."""
    view: View = {}
    for text, name in wanted.items():
        method = next((m for home in symbols.bases(cls) if (m := _method(symbols, home, name)) is not None), None)
        values = returns(method) if method is not None else []
        if method is None or len(values) != 1 or _is_property(method) is text.endswith(")"):
            continue
        inside = {p.attr for p in walk(values[0]) if isinstance(p, ast.Attribute) and last_name(p.value) == "self"}
        if all(_home(symbols, cls, a) is _home(symbols, method.owner, a) for a in inside):  # none of them overridden
            view[text] = Ref(values[0], method)
    return view


def _is_property(method: Scope) -> bool:
    return any(last_name(d) in ("property", "cached_property") for d in getattr(method.node, "decorator_list", ()))


def _method(symbols: Symbols, cls: Scope, name: str) -> Scope | None:
    return next((f for f in symbols.functions.get(name, ()) if f.owner is cls), None)


def _home(symbols: Symbols, cls: Scope | None, name: str) -> Scope | None:
    """The class that gives an attribute its value, or a method its body."""
    for home in symbols.bases(cls):
        if f"self.{name}" in home.bindings or name in home.bindings or _method(symbols, home, name) is not None:
            return home
    return None


def _of_instance(symbols: Symbols, cls: Scope, site: ast.Call | None, attributes: set[str], depth: int) -> list[View]:
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
    own = [r.expr for r in view.values() if site is not None and any(r.expr is a for a in _arguments(site))]
    if site is None or not own or depth <= 1:
        return [view]
    return [
        {n: viewed(symbols, above, *ref) if ref.expr in own else ref for n, ref in view.items()}
        for above in _views(symbols, site, own, depth - 1)
    ]


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(k.value for k in call.keywords)]


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
