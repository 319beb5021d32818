"""A configuration that the code holds as a YAML or JSON text: `yaml.safe_load(\"\"\"amp: {dtype: float32}\"\"\")`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

READERS = frozenset({"safe_load", "load", "loads", "full_load", "create"})
_LONGEST = 20_000  # characters; a setting is not to be looked for in a data set
_MOST = 2000  # values: aliases of YAML may unfold without end


def read(call: ast.Call, text: str) -> ast.expr | None:
    """The value of the text as an expression at the place of the call; None where it is not a mapping or list."""
    if len(text) > _LONGEST or ":" not in text:
        return None
    import yaml

    try:
        value = yaml.safe_load(text)
        made = _written(value, call, iter(range(_MOST)))
    except (yaml.YAMLError, StopIteration, RecursionError, ValueError, OverflowError):
        return None
    return made if isinstance(made, ast.Dict | ast.List) else None


def _written(value: object, call: ast.Call, left: Iterator[int]) -> ast.expr:
    next(left)
    made: ast.expr
    if isinstance(value, dict):
        keys = [_written(k, call, left) for k in value]
        made = ast.Dict(keys=list(keys), values=[_written(v, call, left) for v in value.values()])
    elif isinstance(value, list):
        made = ast.List(elts=[_written(v, call, left) for v in value], ctx=ast.Load())
    else:
        made = ast.Constant(value if isinstance(value, str | int | float | bool) else None)
    return ast.copy_location(made, call)
