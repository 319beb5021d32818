"""What may be in a list of strings or in a dictionary that a file puts together step by step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import UNKNOWN, Ref, Scope, argument_for, dotted, last_name, returns
from deploychain.audit.symbols import Symbols

_COPIES = frozenset({"list", "tuple", "sorted", "set", "reversed"})
_MANY = 200


def strings(
    symbols: Symbols, expr: ast.expr | None, scope: Scope, depth: int = 5
) -> tuple[list[tuple[str, ast.expr]], bool]:
    """Every string that may be an element, with its place, and whether these are all.

    Follows concatenation, copies, comprehensions over such lists, `append`, `extend`, `insert` and `+=`.
    """
    if expr is None or (isinstance(expr, ast.Constant) and expr.value is None):
        return [], True
    found: list[tuple[str, ast.expr]] = []
    known = depth > 0
    for ref in symbols.resolve(expr, scope) if known else ():
        more, all_known = _elements(symbols, ref, depth)
        found += more
        known = known and all_known
    for added in _added(symbols, _names(symbols, expr, scope)):
        if isinstance(added, ast.Call):
            parts = added.args[-1:]
            whole = last_name(added.func) == "extend"
        else:
            parts, whole = [added.value], True  # type: ignore[attr-defined]
        for part in parts:
            more, all_known = (strings if whole else _string)(symbols, part, symbols.scope(part), depth - 1)
            found += more
            known = known and all_known
    return found, known


def _elements(symbols: Symbols, ref: Ref, depth: int) -> tuple[list[tuple[str, ast.expr]], bool]:
    e, scope = ref
    if isinstance(e, ast.Constant) and e.value is None:
        return [], True
    if isinstance(e, ast.List | ast.Tuple | ast.Set):
        found: list[tuple[str, ast.expr]] = []
        known = True
        for element in e.elts:
            starred = isinstance(element, ast.Starred)
            more, all_known = (strings if starred else _string)(
                symbols, element.value if isinstance(element, ast.Starred) else element, scope, depth - 1
            )
            found += more
            known = known and all_known
        return found, known
    if isinstance(e, ast.BinOp) and isinstance(e.op, ast.Add | ast.BitOr):
        left, right = strings(symbols, e.left, scope, depth - 1), strings(symbols, e.right, scope, depth - 1)
        return left[0] + right[0], left[1] and right[1]
    if isinstance(e, ast.Call) and isinstance(e.func, ast.Name) and e.func.id in _COPIES and len(e.args) <= 1:
        return strings(symbols, e.args[0], scope, depth - 1) if e.args else ([], True)
    if isinstance(e, ast.Dict):
        return _keys(symbols, e, scope, depth)
    if isinstance(e, ast.ListComp | ast.SetComp | ast.GeneratorExp):
        return _comprehended(symbols, e.elt, e.generators, scope, depth)
    return [], False


def _string(symbols: Symbols, expr: ast.expr, scope: Scope, depth: int) -> tuple[list[tuple[str, ast.expr]], bool]:
    if isinstance(expr, ast.JoinedStr):
        written = _formatted(symbols, expr, scope)
        return [(text, expr) for text in written], bool(written)
    found: list[tuple[str, ast.expr]] = []
    for ref in symbols.resolve(expr, scope):
        value = symbols.const(ref.expr, ref.scope)
        if not isinstance(value, str):
            counted = _counted(symbols, ref.expr, ref.scope)
            if not counted or not all(isinstance(v, str) for v in counted):
                return found, False
            found += [(str(v), expr) for v in counted]
        else:
            found.append((value, expr))
    return found, depth > 0


def _formatted(symbols: Symbols, expr: ast.JoinedStr, scope: Scope) -> list[str]:
    """`f"past_{i}"` for every i of a loop over numbers or names that are written; empty where that is not known."""
    texts = [""]
    for part in expr.values:
        values: list[object] = [part.value] if isinstance(part, ast.Constant) else []
        if isinstance(part, ast.FormattedValue) and part.format_spec is None:
            value = symbols.const(part.value, scope)
            values = _counted(symbols, part.value, scope) if value is UNKNOWN else [value]
        if len(texts) * len(values) > _MANY:
            return []
        texts = [text + str(value) for text in texts for value in values]
    return texts


def _counted(symbols: Symbols, expr: ast.expr, scope: Scope) -> list[object]:
    """Everything that the variable of a loop over `range(3)` or a list of constants is."""
    bindings = symbols.bindings(expr.id, scope) if isinstance(expr, ast.Name) else []
    if len(bindings) > 1:
        bindings = [b for b in bindings if b.loop and _around(symbols, b.node, expr)]
    if len(bindings) != 1 or not bindings[0].loop or bindings[0].place is not None:
        return []
    source, home = bindings[0].value, bindings[0].scope
    if isinstance(source, ast.Call) and last_name(source.func) == "range" and source.args:
        limits = [symbols.const(a, home) for a in source.args]
        if len(limits) > 3 or limits[-1] == 0 or not all(isinstance(v, int) for v in limits):
            return []
        numbers = range(*limits)
        return list(numbers) if len(numbers) <= _MANY else []
    items = symbols.const(source, home)
    return items if isinstance(items, list) and UNKNOWN not in items else []


def _around(symbols: Symbols, loop: ast.AST, node: ast.AST) -> bool:
    """The loop whose body, or the comprehension whose element, this is in."""
    whole = symbols.parent.get(loop) if isinstance(loop, ast.comprehension) else loop
    inner: ast.AST | None = node
    while inner is not None and inner is not whole:
        inner = symbols.parent.get(inner)
    return inner is not None


def _comprehended(
    symbols: Symbols, element: ast.expr, generators: list[ast.comprehension], scope: Scope, depth: int
) -> tuple[list[tuple[str, ast.expr]], bool]:
    """`n for n in NAMES`, `f"past_{i}" for i in range(4)`."""
    first = generators[0]
    same = isinstance(element, ast.Name) and isinstance(first.target, ast.Name) and element.id == first.target.id
    if len(generators) == 1 and not first.ifs:
        return strings(symbols, first.iter, scope, depth - 1) if same else _string(symbols, element, scope, depth - 1)
    if not any(g.ifs for g in generators) and isinstance(element, ast.JoinedStr):
        return _string(symbols, element, scope, depth - 1)
    return [], False


def _keys(symbols: Symbols, table: ast.Dict, scope: Scope, depth: int) -> tuple[list[tuple[str, ast.expr]], bool]:
    found: list[tuple[str, ast.expr]] = []
    known = True
    for key, value in zip(table.keys, table.values, strict=True):
        more, all_known = (
            keys(symbols, value, scope, depth - 1) if key is None else _string(symbols, key, scope, depth - 1)
        )
        found += more
        known = known and all_known
    return found, known


def keys(symbols: Symbols, expr: ast.expr, scope: Scope, depth: int = 5) -> tuple[list[tuple[str, ast.expr]], bool]:
    """Every string that may be a key of a dictionary, with its place, and whether these are all."""
    found: list[tuple[str, ast.expr]] = []
    known = depth > 0
    for ref in symbols.resolve(expr, scope) if known else ():
        e = ref.expr
        more: list[tuple[str, ast.expr]] = []
        all_known = isinstance(e, ast.Constant) and e.value is None
        if isinstance(e, ast.Dict):
            more, all_known = _keys(symbols, e, ref.scope, depth)
        elif isinstance(e, ast.DictComp):
            more, all_known = _comprehended(symbols, e.key, e.generators, ref.scope, depth)
        elif isinstance(e, ast.BinOp) and isinstance(e.op, ast.BitOr):
            left, right = keys(symbols, e.left, ref.scope, depth - 1), keys(symbols, e.right, ref.scope, depth - 1)
            more, all_known = left[0] + right[0], left[1] and right[1]
        elif isinstance(e, ast.Name) and (callers := symbols.configs.callers(e, ref.scope)):
            given = [k for c in callers for k in c.keywords if k.arg not in ref.scope.parameters]  # `**kw`
            more = [(k.arg, k.value) for k in given if k.arg]
            all_known = len(more) == len(given)
        elif isinstance(e, ast.Call):
            more, all_known = _made(symbols, e, ref.scope, depth)
        found += more
        known = known and all_known
    names = _names(symbols, expr, scope)
    for key, value in _stored(symbols, names):
        more, all_known = _string(symbols, key, symbols.scope(value), depth - 1)
        found += more
        known = known and all_known
    for update in _updates(symbols, names):
        found += [(k.arg, k.value) for k in update.keywords if k.arg]
        for argument in update.args:
            more, all_known = keys(symbols, argument, symbols.scope(update), depth - 1)
            found += more
            known = known and all_known
    for merged in _merged(symbols, names):
        more, all_known = keys(symbols, merged, symbols.scope(merged), depth - 1)
        found += more
        known = known and all_known
    return found, known


def _made(symbols: Symbols, call: ast.Call, scope: Scope, depth: int) -> tuple[list[tuple[str, ast.expr]], bool]:
    """`dict(x={0: "b"})`, `dict.fromkeys(NAMES, {0: "b"})`, `OrderedDict()`."""
    name = last_name(call.func)
    if name == "fromkeys" and call.args:
        return strings(symbols, call.args[0], scope, depth - 1)
    above = symbols.super_method(call.func, scope)
    if above is not None:
        parts = [keys(symbols, value, above, depth - 1) for value in returns(above)]
        return [key for found, _ in parts for key in found], all(known for _, known in parts)
    if name not in ("dict", "OrderedDict", "defaultdict"):
        return [], False
    found = [(k.arg, k.value) for k in call.keywords if k.arg]
    known = len(found) == len(call.keywords) and name != "defaultdict"
    for argument in call.args[:1] if name != "defaultdict" else ():
        more, all_known = keys(symbols, argument, scope, depth - 1)
        found += more
        known = known and all_known
    return found, known


def value_of(symbols: Symbols, expr: ast.expr, key: str, scope: Scope, depth: int = 3) -> list[Ref]:
    """Every expression that may be under a key of a dictionary that is put together step by step."""
    found = symbols.configs.values(expr, key, scope, 5, frozenset())
    names = _names(symbols, expr, scope)
    for ref in symbols.resolve(expr, scope) if not found and depth else ():  # `dict(opset_version=17, **rest)`
        if isinstance(ref.expr, ast.Call) and last_name(ref.expr.func) == "dict":
            for rest in (k.value for k in ref.expr.keywords if k.arg is None):
                found += value_of(symbols, rest, key, ref.scope, depth - 1)
    for stored, value in _stored(symbols, names):
        if isinstance(stored, ast.Constant) and stored.value == key:
            found += symbols.resolve(value, symbols.scope(value))
    for update in _updates(symbols, names):
        found += [r for k in update.keywords if k.arg == key for r in symbols.resolve(k.value, symbols.scope(update))]
        for argument in update.args:
            found += value_of(symbols, argument, key, symbols.scope(update))
    for merged in _merged(symbols, names):
        found += value_of(symbols, merged, key, symbols.scope(merged))
    return found


def put_in(symbols: Symbols, expr: ast.expr, scope: Scope) -> Iterator[ast.expr]:
    """Every value that is put into a dictionary after it was made, under whatever key."""
    names = _names(symbols, expr, scope)
    yield from (value for _, value in _stored(symbols, names))
    for update in _updates(symbols, names):
        yield from (*(k.value for k in update.keywords), *update.args)


Named = tuple[str, Scope]


def _names(symbols: Symbols, expr: ast.expr, scope: Scope, depth: int = 4) -> list[Named]:
    """The names that an object has on its way: in the function that made it, in those that got it, where it is used."""
    if isinstance(expr, ast.BoolOp | ast.IfExp):
        parts = expr.values if isinstance(expr, ast.BoolOp) else [expr.body, expr.orelse]
        return [named for part in parts for named in _names(symbols, part, scope, depth - 1)] if depth > 0 else []
    text = dotted(expr)
    found = [(text, scope)] if text else []
    if depth <= 0:
        return found
    if isinstance(expr, ast.Call):
        function = symbols.local_function(expr.func, scope) or symbols.super_method(expr.func, scope)
        for value in returns(function) if function is not None and function.name != "__init__" else ():
            assert function is not None
            found += _names(symbols, value, function, depth - 1)
    elif text:
        for binding in symbols.bindings(text, scope):
            if binding.value is not None and binding.place is None and not binding.loop:
                found += _names(symbols, binding.value, binding.scope, depth - 1)
            elif isinstance(binding.value, ast.Call) and binding.place is not None and not binding.loop:
                found += _of_several(symbols, binding.value, binding.place, binding.scope, depth - 1)
        if isinstance(expr, ast.Name):
            found += _handed_on(symbols, text, scope)
    return found


def _of_several(symbols: Symbols, call: ast.Call, place: int, scope: Scope, depth: int) -> Iterator[Named]:
    """`values, names = make_inputs(...)`: the names in the function that returns both."""
    function = symbols.local_function(call.func, scope)
    for value in returns(function) if function is not None and depth > 0 else ():
        assert function is not None
        if isinstance(value, ast.Tuple) and place < len(value.elts):
            yield from _names(symbols, value.elts[place], function, depth - 1)


def _handed_on(symbols: Symbols, name: str, scope: Scope) -> Iterator[Named]:
    """The parameters of functions, and of methods in subclasses, that get the object: `self.customise(options)`."""
    for call in symbols.calls:
        given = [a for a in (*call.args, *(k.value for k in call.keywords)) if isinstance(a, ast.Name) and a.id == name]
        functions = symbols.functions.get(last_name(call.func), []) if given else []
        if functions and symbols.scope(call) is scope:
            for function in functions:
                if (function.owner is not None) is isinstance(call.func, ast.Attribute):
                    got = [p for p in function.parameters if argument_for(call, function, p) in given]
                    yield from ((p, function) for p in got)


def _any_of(symbols: Symbols, holder: ast.expr, names: list[Named]) -> bool:
    """Whether an expression is one of these names and means the same object as it does there."""
    text = dotted(holder)
    for name, scope in names:
        if name == text:
            here = symbols.scope(holder)
            root = name.partition(".")[0].partition("[")[0]
            if root in ("self", "cls") or here is scope:
                return True
            if symbols.bindings(root, here) == symbols.bindings(root, scope):
                return _taken_by(symbols, root, here) is _taken_by(symbols, root, scope)
    return False


def _taken_by(symbols: Symbols, name: str, scope: Scope) -> Scope | None:
    """The function that has this parameter, `**name` included."""
    above: Scope | None = scope
    while above is not None:
        arguments = getattr(above.node, "args", None)
        if isinstance(arguments, ast.arguments) and arguments.kwarg is not None and arguments.kwarg.arg == name:
            return above
        above = above.parent
    return symbols.parameter_scope(name, scope)


def _merged(symbols: Symbols, names: list[Named]) -> Iterator[ast.expr]:
    """`axes |= {...}`."""
    for node in symbols.nodes(ast.AugAssign) if names else ():
        if isinstance(node.op, ast.BitOr) and _any_of(symbols, node.target, names):
            yield node.value


def _stored(symbols: Symbols, names: list[Named]) -> Iterator[tuple[ast.expr, ast.expr]]:
    """`axes["x"] = ...`, `axes.setdefault("x", ...)`: the key and the value."""
    for node in symbols.nodes(ast.Assign) if names else ():
        for target in node.targets:
            if isinstance(target, ast.Subscript) and _any_of(symbols, target.value, names):
                yield target.slice, node.value
    for call in _methods(symbols, names, "setdefault"):
        if len(call.args) == 2:
            yield call.args[0], call.args[1]


def _updates(symbols: Symbols, names: list[Named]) -> Iterator[ast.Call]:
    return _methods(symbols, names, "update")


def _methods(symbols: Symbols, names: list[Named], *methods: str) -> Iterator[ast.Call]:
    for call in symbols.calls if names else ():
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr in methods and _any_of(symbols, func.value, names):
            yield call


def _added(symbols: Symbols, names: list[Named]) -> Iterator[ast.AST]:
    """`names.append("aux")`, `names += [...]`."""
    yield from _methods(symbols, names, "append", "extend", "insert", "add")
    for node in symbols.nodes(ast.AugAssign) if names else ():
        if _any_of(symbols, node.target, names):
            yield node


def changed(symbols: Symbols, name: str, scope: Scope) -> bool:
    """Something is added to the list or dictionary of this name."""
    names = [(name, scope)]
    return any(True for kind in (_stored, _updates, _added) for _ in kind(symbols, names))
