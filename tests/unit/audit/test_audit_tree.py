"""What lies under a node of the syntax tree, also after the audit has written a call out."""

from __future__ import annotations

import ast

import pytest

from deploychain.audit.sources import parse
from deploychain.audit.symbols import Symbols
from deploychain.audit.tree import children, walk


@pytest.mark.parametrize(
    "code",
    [
        "import torch\nSETTINGS = dict(opset_version=13)\nexport(net, **SETTINGS)\n",
        "import torch\nfrom functools import partial\n"
        "export = partial(torch.onnx.export, opset_version=13)\nexport(net)\n",
        "import torch\nfrom functools import partial\n"
        'EXPORTERS = {"ts": partial(torch.onnx.export, opset_version=13)}\nEXPORTERS["ts"](net)\n',
    ],
    ids=["keywords", "partial", "entry-of-a-table"],
)
def test_what_a_call_is_given_from_elsewhere_lies_under_it(code: str) -> None:
    symbols = Symbols(parse("m.py", code))
    call = next(c for c in symbols.calls if any(ast.unparse(a) == "net" for a in c.args))
    assert 13 in [n.value for n in walk(call) if isinstance(n, ast.Constant)]


def test_contexts_and_operators_are_left_out_and_all_else_is_as_in_ast() -> None:
    tree = ast.parse("def f(a, *, b=1):\n    with g(a) as c:\n        return [x + 1 for x in c if x not in {**a}]\n")
    shared = (ast.expr_context, ast.operator, ast.cmpop)
    assert list(walk(tree)) == [n for n in ast.walk(tree) if not isinstance(n, shared)]
    assert children(tree) is children(tree)
