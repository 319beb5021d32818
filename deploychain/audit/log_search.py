"""Whether a file searches the text that a program printed for the names of precisions."""

# ruff: noqa: SIM102  (nested tests read as patterns)
from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.astnames import dotted, last_name
from deploychain.audit.symbols import Symbols
from deploychain.audit.tree import walk

# Names that nothing but TensorRT prints; names that also stand for options and files.
_SURE = re.compile(r"\bk(FLOAT|HALF|INT8|BF16|FP8)\b|\\b\(?(Half|Float)|^(Half|Float)$|\bHalf\|Float\b|\bFloat\|Half\b")
_MAYBE = re.compile(r"(?i)\b(fp16|fp32|int8|bf16|float16|float32|half|float|precision|datatype|dtype)\b")
_SEARCHES = frozenset({"search", "match", "findall", "finditer", "compile", "fullmatch"})
_COUNTS = frozenset({"count", "find", "index", "split", "partition", "rpartition", "startswith", "endswith"})
_PRINTED_NAME = re.compile(
    r"(?i)^(l|ln|s|t|lines?|rows?|logs?|out|output|text|txt|stdout|stderr|prof\w*|\w*_(log|out|output|text|lines?|row)|layers?|entry|rec|blob|buf|report|dump)$"
)
_PRINTED = re.compile(
    r"stdout|check_output|getoutput|popen|\.read\(|splitlines|communicate|split\('\\n'\)|open\(|read_text|readlines|json\.load"
)


def asks_for_precision(symbols: Symbols) -> bool:
    """kFLOAT, Half, fp16 ... are looked for in something that was printed or read."""
    for node in symbols.nodes(ast.Compare):
        for needle, op, hay in _pairs(node):
            if isinstance(op, ast.In | ast.NotIn) and _found(symbols, needle, hay):
                return True
            if isinstance(op, ast.Eq | ast.NotEq) and _field(needle) and _named(symbols, hay):
                return True
    for call in symbols.calls:
        name = last_name(call.func)
        if name in _SEARCHES and call.args:
            base = dotted(call.func.value) if isinstance(call.func, ast.Attribute) else "re"
            if base in ("re", "regex") and any(
                _MAYBE.search(t) or _SURE.search(t) for t in _texts(symbols, call.args[0])
            ):
                return True
        elif (
            name in _COUNTS
            and call.args
            and isinstance(call.func, ast.Attribute)
            and _found(symbols, call.args[0], call.func.value)
        ):
            return True
        elif name == "get" and isinstance(call.func, ast.Attribute) and call.args:
            if isinstance(call.args[0], ast.Constant) and _type_of(symbols, call.args[0].value, call.func.value):
                return True
    return any(
        isinstance(s.slice, ast.Constant) and _type_of(symbols, s.slice.value, s.value)
        for s in symbols.nodes(ast.Subscript)
    )


def _type_of(symbols: Symbols, key: object, holder: ast.expr) -> bool:
    """`layer["precision"]` of a layer that was read."""
    return str(key).lower() in ("precision", "datatype", "format/datatype") and _printed(symbols, holder)


def _pairs(node: ast.Compare) -> Iterator[tuple[ast.expr, ast.cmpop, ast.expr]]:
    left = node.left
    for op, right in zip(node.ops, node.comparators, strict=True):
        yield left, op, right
        left = right


def _found(symbols: Symbols, needle: ast.expr, hay: ast.expr) -> bool:
    texts = list(_texts(symbols, needle))
    if any(_SURE.search(t) for t in texts):
        return True
    return any(_MAYBE.fullmatch(t.strip()) for t in texts) and _printed(symbols, hay)


def _named(symbols: Symbols, expr: ast.expr) -> bool:
    return any(_MAYBE.fullmatch(t) or _SURE.search(t) for t in _texts(symbols, expr))


def _field(expr: ast.expr) -> bool:
    """`layer["precision"]`, `layer.precision`, `layer.get("precision")`."""
    if isinstance(expr, ast.Call):
        return bool(expr.args) and "precision" in ast.unparse(expr.args[0]).lower()
    return isinstance(expr, ast.Subscript) and re.search(r"(?i)precision|datatype", ast.unparse(expr.slice)) is not None


def _texts(symbols: Symbols, expr: ast.expr) -> Iterator[str]:
    """The strings that an expression may be; a loop variable is any element of what it runs over."""
    scope = symbols.scope(expr)
    for ref in symbols.resolve(expr, scope):
        if isinstance(ref.expr, ast.Constant) and isinstance(ref.expr.value, str):
            yield ref.expr.value
    name = dotted(expr)
    for binding in symbols.bindings(name, scope) if name else ():
        if binding.loop and binding.value is not None:
            for ref in symbols.resolve(_iterated(binding.value), binding.scope):
                for node in walk(ref.expr):
                    if isinstance(node, ast.Constant) and isinstance(node.value, str):
                        yield node.value


def _iterated(expr: ast.expr) -> ast.expr:
    """`TABLE` of `TABLE.items()`, `enumerate(TABLE)`, `sorted(TABLE)`."""
    if isinstance(expr, ast.Call):
        if isinstance(expr.func, ast.Attribute) and not expr.args:
            return expr.func.value
        if isinstance(expr.func, ast.Name) and expr.args:
            return expr.args[0]
    return expr


def _printed(symbols: Symbols, expr: ast.expr, depth: int = 4) -> bool:
    """Text that a program printed, a line of it, or what was read from a file."""
    base: ast.expr = expr
    while isinstance(base, ast.Call | ast.Subscript | ast.Attribute):
        if isinstance(base, ast.Attribute) and base.attr in ("stdout", "stderr", "log", "output"):
            return True
        if isinstance(base, ast.Call):
            if isinstance(base.func, ast.Name) and base.args:
                base = base.args[0]  # str(line), json.dumps(layer)
                continue
            base = base.func
        else:
            base = base.value
    if not isinstance(base, ast.Name):
        return False
    if _PRINTED_NAME.match(base.id):
        return True
    bindings = symbols.bindings(base.id, symbols.scope(expr))
    return any(
        b.value is not None
        and (_PRINTED.search(ast.unparse(b.value)) or (b.loop and depth > 0 and _printed(symbols, b.value, depth - 1)))
        for b in bindings
    )
