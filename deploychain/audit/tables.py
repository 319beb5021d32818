"""What may be in a list of strings or in a dictionary that a file puts together step by step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import Ref, Scope, dotted, last_name
from deploychain.audit.symbols import Symbols

_COPIES = frozenset({"list", "tuple", "sorted", "set", "reversed"})


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
    text = dotted(expr)
    for added in _added(symbols, text) if text else ():
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
    found: list[tuple[str, ast.expr]] = []
    for ref in symbols.resolve(expr, scope):
        value = symbols.const(ref.expr, ref.scope)
        if not isinstance(value, str):
            return found, False
        found.append((value, expr))
    return found, depth > 0


def _comprehended(
    symbols: Symbols, element: ast.expr, generators: list[ast.comprehension], scope: Scope, depth: int
) -> tuple[list[tuple[str, ast.expr]], bool]:
    """`n for n in NAMES`; whatever is made of them is not known."""
    first = generators[0]
    same = isinstance(element, ast.Name) and isinstance(first.target, ast.Name) and element.id == first.target.id
    if same and len(generators) == 1 and not first.ifs:
        return strings(symbols, first.iter, scope, depth - 1)
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
        elif isinstance(e, ast.Call):
            more, all_known = _made(symbols, e, ref.scope, depth)
        found += more
        known = known and all_known
    text = dotted(expr)
    for key, place in _stored(symbols, text) if text else ():
        more, all_known = _string(symbols, key, symbols.scope(place), depth - 1)
        found += more
        known = known and all_known
    for update in _updates(symbols, text) if text else ():
        found += [(k.arg, k.value) for k in update.keywords if k.arg]
        for argument in update.args:
            more, all_known = keys(symbols, argument, symbols.scope(update), depth - 1)
            found += more
            known = known and all_known
    for merged in _merged(symbols, text) if text else ():
        more, all_known = keys(symbols, merged, symbols.scope(merged), depth - 1)
        found += more
        known = known and all_known
    return found, known


def _made(symbols: Symbols, call: ast.Call, scope: Scope, depth: int) -> tuple[list[tuple[str, ast.expr]], bool]:
    """`dict(x={0: "b"})`, `dict.fromkeys(NAMES, {0: "b"})`, `OrderedDict()`."""
    name = last_name(call.func)
    if name == "fromkeys" and call.args:
        return strings(symbols, call.args[0], scope, depth - 1)
    if name not in ("dict", "OrderedDict", "defaultdict"):
        return [], False
    found = [(k.arg, k.value) for k in call.keywords if k.arg]
    known = len(found) == len(call.keywords) and name != "defaultdict"
    for argument in call.args[:1] if name != "defaultdict" else ():
        more, all_known = keys(symbols, argument, scope, depth - 1)
        found += more
        known = known and all_known
    return found, known


def value_of(symbols: Symbols, expr: ast.expr, key: str, scope: Scope) -> list[Ref]:
    """Every expression that may be under a key of a dictionary that is put together step by step."""
    found = symbols.configs.values(expr, key, scope, 5, frozenset())
    text = dotted(expr)
    for stored, place in _stored(symbols, text) if text else ():
        if isinstance(stored, ast.Constant) and stored.value == key:
            found += symbols.resolve(place.value, symbols.scope(place))  # type: ignore[attr-defined]
    for update in _updates(symbols, text) if text else ():
        found += [r for k in update.keywords if k.arg == key for r in symbols.resolve(k.value, symbols.scope(update))]
        for argument in update.args:
            found += value_of(symbols, argument, key, symbols.scope(update))
    for merged in _merged(symbols, text) if text else ():
        found += value_of(symbols, merged, key, symbols.scope(merged))
    return found


def _merged(symbols: Symbols, text: str) -> Iterator[ast.expr]:
    """`axes |= {...}`."""
    for node in symbols.nodes(ast.AugAssign):
        if isinstance(node.op, ast.BitOr) and dotted(node.target) == text:
            yield node.value


def _stored(symbols: Symbols, text: str) -> Iterator[tuple[ast.expr, ast.AST]]:
    """`axes["x"] = ...`: the key and the statement."""
    for node in symbols.nodes(ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Subscript) and dotted(target.value) == text:
                yield target.slice, node


def _updates(symbols: Symbols, text: str) -> Iterator[ast.Call]:
    for call in symbols.calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "update" and dotted(call.func.value) == text:
            yield call


def _added(symbols: Symbols, text: str) -> Iterator[ast.AST]:
    """`names.append("aux")`, `names += [...]`."""
    for call in symbols.calls:
        if (
            isinstance(call.func, ast.Attribute)
            and call.func.attr in ("append", "extend", "insert", "add")
            and dotted(call.func.value) == text
        ):
            yield call
    for node in symbols.nodes(ast.AugAssign):
        if dotted(node.target) == text:
            yield node
