"""Walking syntax trees: the rules walk the same functions again and again, so what lies under a node is kept on it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

# Contexts and operators: objects without a place, shared by many nodes. Who asks for them reads the field.
_SHARED = frozenset(
    kind
    for base in (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
    for kind in base.__subclasses__()
)
_KEPT = "_children"


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes right under a node in the order of the text, without contexts and operators. Not to be changed."""
    found: list[ast.AST] | None = node.__dict__.get(_KEPT)
    if found is None:
        found = []
        for name in node._fields:
            value = getattr(node, name, None)
            if type(value) is list:
                found += [x for x in value if isinstance(x, ast.AST) and type(x) not in _SHARED]
            elif isinstance(value, ast.AST) and type(value) not in _SHARED:
                found.append(value)
        setattr(node, _KEPT, found)
    return found


def renew(node: ast.AST) -> None:
    """A node was changed: what lies under it is another."""
    node.__dict__.pop(_KEPT, None)


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all under it, level by level like `ast.walk`."""
    todo = [node]
    for found in todo:
        yield found
        todo += found.__dict__.get(_KEPT) or children(found)
