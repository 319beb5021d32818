"""Command lines of trtexec that a file writes, and the release of TensorRT that it is written for."""

# ruff: noqa: SIM102  (nested tests read as patterns)
from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from deploychain.audit.astnames import dotted, last_name
from deploychain.audit.symbols import Symbols

STRONGLY_TYPED_ONLY = 11
# "TensorRT-11.0", "tensorrt-cu13>=11", 'TRT_VERSION = "11.2"', "tensorrt:11", "build_trt11", "libnvinfer.so.11"
_RELEASE = re.compile(
    r"(?:tensor[ _-]?rt|(?<![a-z])trt|nvinfer\w*\.so)(?:exec|[-_]cu\d+)?"
    r"(?:[ _-]?(?:ver(?:sion)?|root|home|dir|path|major|release))?"
    r"[\"' \t]{0,2}(?:[:=~><-]{0,2}|[/_.]|(?<=[\"']),(?=[ \t]?[\"']))[ \t]?[\"'(]?v?"
    r"(?P<major>[5-9]|1\d)(?![\dx]|\.?\d*[ ]?(?:ms|gb|%))(?=[._\s,;:()\"'+/-]|[a-z]{4}|$)",
    re.IGNORECASE | re.MULTILINE,
)
# A file with such a line knows both kinds of release.
_KNOWS = re.compile(
    r"(?im)^(?=.*(?:trt|tensor[ -]?rt|builderflag))(?=.*\b1[1-9]\b)"
    r".*(removed|dropped|no longer|gone|strong(ly)?[- ]typ)"
)
_TOLD = re.compile(
    r"^(print|info|warning|warn|error|debug|critical|exception|log|echo|exit|write|fail|\w*(Error|Exception|Exit))$"
)
_OWN_OPTIONS = frozenset({"add_argument", "add_option", "option", "Option", "argument", "Argument"})
_TESTS = frozenset({"startswith", "endswith", "replace", "remove", "removeprefix", "index", "count", "find", "compile",
                    "search", "match", "findall", "sub", "discard"})  # fmt: skip
_PIECES = (
    ast.List,
    ast.Tuple,
    ast.Set,
    ast.Starred,
    ast.BinOp,
    ast.IfExp,
    ast.JoinedStr,
    ast.FormattedValue,
    ast.BoolOp,
)


@dataclass(frozen=True, slots=True)
class Words:
    """Some words of a command line: where they are written, and the whole expression that they are part of."""

    node: ast.expr
    words: tuple[str, ...]
    root: ast.AST

    def option(self, *names: str) -> str:
        """The first of these options that is among the words, as it is written; "" where there is none."""
        for word in self.words:
            if word.startswith("--") and word[2:].partition("=")[0] in names:
                return word
        return ""


class CommandLines:
    """All words that may end up in a command line of one file."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self.pieces = list(self._pieces())

    def having(self, *names: str) -> Iterator[Words]:
        for piece in self.pieces:
            if piece.option(*names):
                yield piece

    def text(self, root: ast.AST) -> str:
        """The words of one expression, in the order of the source."""
        inside = [p for p in self.pieces if p.root is root]
        inside.sort(key=lambda p: (p.node.lineno, p.node.col_offset))
        return " ".join(w for p in inside for w in p.words)

    def _pieces(self) -> Iterator[Words]:
        symbols = self.symbols
        for node in symbols.nodes(ast.Constant, ast.JoinedStr):
            if isinstance(node, ast.Constant) and (
                not isinstance(node.value, str) or isinstance(symbols.parent.get(node), ast.JoinedStr)
            ):
                continue
            text = self._written(node)
            if text.strip() and not self._told(node):
                yield Words(node, tuple(text.split()), self._root(node))
        for node in symbols.nodes(ast.BinOp):  # "--" + precision, "--%s" % precision
            left = node.left.value if isinstance(node.left, ast.Constant) else None
            if left == "--" or (isinstance(left, str) and left.endswith("--%s") and isinstance(node.op, ast.Mod)):
                for ref in symbols.resolve(node.right, symbols.scope(node)):
                    value = symbols.const(ref.expr, ref.scope)
                    if isinstance(value, str):
                        yield Words(node, (f"--{value}",), self._root(node))
        for table in symbols.nodes(ast.Dict):  # {"loadEngine": plan, "dumpProfile": None}
            keys = [k.value for k in table.keys if isinstance(k, ast.Constant) and isinstance(k.value, str)]
            if {"saveEngine", "loadEngine", "--saveEngine", "--loadEngine"} & set(keys):
                for key, value in zip(table.keys, table.values, strict=True):
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        yield Words(key, (self._pair(key.value, value),), table)
        for call in symbols.calls:  # trtexec(loadEngine=plan, dumpProfile=True)
            if any(k.arg in ("saveEngine", "loadEngine") for k in call.keywords):
                for k in call.keywords:
                    if k.arg is not None:
                        yield Words(k.value, (self._pair(k.arg, k.value),), call)

    def _pair(self, key: str, value: ast.expr) -> str:
        given = self.symbols.const(value, self.symbols.scope(value))
        name = "--" + key.removeprefix("--")
        return f"{name}={given}" if isinstance(given, str) else name

    def _written(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            return str(node.value)
        parts: list[str] = []
        for v in getattr(node, "values", []):
            known = (
                v.value if isinstance(v, ast.Constant) else self._known(v.value, len(parts) == 1 and parts[0] == "--")
            )
            parts.append(known if isinstance(known, str) else "{}")
        return "".join(parts)

    def _known(self, expr: ast.expr, option: bool) -> object:
        """The text that is put in; of the name of an option any one that it may be."""
        scope = self.symbols.scope(expr)
        value = self.symbols.const(expr, scope)
        if not isinstance(value, str) and option:
            found = [self.symbols.const(r.expr, r.scope) for r in self.symbols.resolve(expr, scope)]
            for binding in self.symbols.bindings(expr.id, scope) if isinstance(expr, ast.Name) else ():
                items = self.symbols.const(binding.value, binding.scope) if binding.loop else None
                found += items if isinstance(items, list) else []
            value = next((f for f in found if isinstance(f, str)), value)
        return value

    def _root(self, node: ast.AST) -> ast.AST:
        parent = self.symbols.parent.get(node)
        while isinstance(parent, _PIECES):
            node, parent = parent, self.symbols.parent.get(parent)
        return node

    def _told(self, node: ast.AST) -> bool:
        """Text that is not run: a docstring, a message, the script's own options, what something is compared with."""
        parent = self.symbols.parent.get(node)
        while isinstance(parent, _PIECES):
            node, parent = parent, self.symbols.parent.get(parent)
        if isinstance(parent, ast.Expr | ast.Compare | ast.Raise):
            return True
        if isinstance(parent, ast.keyword) and parent.arg in ("help", "description", "epilog", "metavar", "usage"):
            return True
        if not isinstance(parent, ast.Call):
            return self._only_compared(node, parent)
        name = last_name(parent.func)
        return node in parent.args and (name in _OWN_OPTIONS or name in _TESTS or _TOLD.match(name) is not None)

    def _only_compared(self, node: ast.AST, parent: ast.AST | None) -> bool:
        """`GONE = ("--fp16", "--int8")` that is only looked up."""
        if not isinstance(parent, ast.Assign) or not isinstance(node, ast.Tuple | ast.List | ast.Set):
            return False
        names = {t.id for t in parent.targets if isinstance(t, ast.Name)}
        uses = [n for n in self.symbols.nodes(ast.Name) if n.id in names and isinstance(n.ctx, ast.Load)]
        return bool(uses) and all(self._looked_up(use) for use in uses)

    def _looked_up(self, use: ast.Name) -> bool:
        parent = self.symbols.parent.get(use)
        if isinstance(parent, ast.comprehension | ast.For):
            return parent.iter is use
        return isinstance(parent, ast.Compare) or (isinstance(parent, ast.Call) and last_name(parent.func) in _TESTS)


class Release:
    """Whether a file is for TensorRT 11 or later, where precision flags are gone, or for an earlier one."""

    def __init__(self, symbols: Symbols, text: str) -> None:
        self.symbols = symbols
        self.tests = [c for c in symbols.nodes(ast.Compare, ast.Call) if self._side(c) is not None]
        self.strong: bool | None = self._decide(text)

    def strong_at(self, node: ast.AST) -> bool:
        """Surely TensorRT 11 or later where this runs."""
        for branch, above in self._branches(node):
            side = self._side(branch)
            if side is not None:
                return side is above
            if "hasattr" in ast.dump(branch) and "BuilderFlag" in ast.dump(branch):
                return False
        return self.strong is True

    def _branches(self, node: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
        """The tests around a node, and whether it runs where they hold."""
        parent = self.symbols.parent.get(node)
        while parent is not None:
            if isinstance(parent, ast.If):
                held = node in parent.body
                if held or node in parent.orelse:
                    yield from ((t, held) for t in self._parts(parent.test, held))
            elif isinstance(parent, ast.IfExp) and node is not parent.test:
                yield from ((t, node is parent.body) for t in self._parts(parent.test, node is parent.body))
            elif isinstance(parent, ast.Try) and node in parent.body:
                if any("AttributeError" in ast.dump(h.type) for h in parent.handlers if h.type is not None):
                    yield ast.parse("hasattr(BuilderFlag)", mode="eval").body, True
            node, parent = parent, self.symbols.parent.get(parent)

    def _parts(self, test: ast.expr, held: bool) -> list[ast.expr]:
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) and held:
            return list(test.values)
        for ref in self.symbols.resolve(test, self.symbols.scope(test)):
            if isinstance(ref.expr, ast.Compare):
                return [ref.expr]
        return [test]

    def _side(self, test: ast.AST) -> bool | None:
        """What a test says where it holds: True for TensorRT 11 or later, False for before, None for something else."""
        if isinstance(test, ast.Call):
            if isinstance(test.func, ast.Attribute) and test.func.attr == "startswith" and test.args:
                version = self._version(test.func.value)
                number = _number(self.symbols.const(test.args[0], self.symbols.scope(test)))
                return number >= STRONGLY_TYPED_ONLY if version and number is not None else None
            return None
        if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not self._version(test.left):
            return None
        number = _number(self._literal(test.comparators[0]))
        if number is None:
            return None
        op = test.ops[0]
        if isinstance(op, ast.GtE | ast.Eq):
            return number >= STRONGLY_TYPED_ONLY
        if isinstance(op, ast.Gt):
            return number + 1 >= STRONGLY_TYPED_ONLY
        if isinstance(op, ast.Lt):
            return False if number <= STRONGLY_TYPED_ONLY else None
        if isinstance(op, ast.LtE):
            return False if number < STRONGLY_TYPED_ONLY else None
        return None

    def _literal(self, expr: ast.expr) -> object:
        if isinstance(expr, ast.Call) and expr.args:  # Version("11.0")
            expr = expr.args[0]
        value = self.symbols.const(expr, self.symbols.scope(expr))
        return value[0] if isinstance(value, list) and value else value

    def _version(self, expr: ast.expr) -> bool:
        for ref in self.symbols.resolve(expr, self.symbols.scope(expr)):
            dump = ast.unparse(ref.expr) if not isinstance(ref.expr, ast.Constant) else ""
            if "__version__" in dump and re.search(r"\b(trt|tensorrt\w*)\b", dump):
                return True
            if re.search(r"version\(['\"]tensorrt", dump):
                return True
        return bool(
            re.search(r"(?i)(trt|tensorrt)\w*(major|version)|(major|version)\w*(trt|tensorrt)", ast.unparse(expr))
        )

    def _decide(self, text: str) -> bool | None:
        demanded = {side for test in self.tests if (side := self._demanded(test)) is not None}
        if len(demanded) == 1:
            return demanded.pop()
        if self.tests:
            return None  # written for both
        if any(v == "tensorrt_rtx" for names in self.symbols.imports.values() for v in names):
            return True
        strings = "\n".join(
            n.value for n in self.symbols.nodes(ast.Constant) if isinstance(n.value, str) and self._run(n)
        )
        names = "\n".join(
            f"{dotted(t)} = {n.value.value!r}"
            for n in self.symbols.nodes(ast.Assign, ast.AnnAssign)
            if isinstance(n.value, ast.Constant)
            for t in (n.targets if isinstance(n, ast.Assign) else [n.target])
        )
        if _KNOWS.search(text) or re.search(r"hasattr\([^\n]*(FP16|INT8|BuilderFlag)", text):
            return None
        for part in (f"{strings}\n{names}", text):
            majors = {int(m["major"]) >= STRONGLY_TYPED_ONLY for m in _RELEASE.finditer(part)}
            if majors:
                return majors.pop() if len(majors) == 1 else None
        return None

    def _run(self, node: ast.Constant) -> bool:
        parent = self.symbols.parent.get(node)
        return not isinstance(parent, ast.Expr | ast.Assert | ast.Raise)

    def _demanded(self, test: ast.AST) -> bool | None:
        """`assert trt >= 11`; `if trt < 11: raise`: the side on which the file goes on."""
        side = self._side(test)
        node, parent = test, self.symbols.parent.get(test)
        negated = False
        while isinstance(parent, ast.UnaryOp | ast.BoolOp):
            negated ^= isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
            node, parent = parent, self.symbols.parent.get(parent)
        if isinstance(parent, ast.Assert) and parent.test is node:
            return side is not negated
        if isinstance(parent, ast.If) and parent.test is node and not parent.orelse and _gives_up(parent.body[-1]):
            return side is negated
        return None


def _gives_up(last: ast.stmt) -> bool:
    if isinstance(last, ast.Raise):
        return True
    return isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) and last_name(last.value.func) == "exit"


def _number(value: object) -> int | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return int(value)
    found = re.match(r"\d+", value) if isinstance(value, str) else None
    return int(found[0]) if found else None
