"""Which expressions are gradients of parameters, and which uses of them are the same before and after unscaling."""

from __future__ import annotations

import ast
import re

from deploychain.audit.astnames import Scope, dotted, last_name
from deploychain.audit.symbols import Symbols
from deploychain.audit.tree import children, walk
from deploychain.audit.values import words

_PARAMETER_NAMES = frozenset({"p", "param", "params", "parameter", "w", "weight", "v", "par"})
_OF_PARAMETERS = re.compile(r"(^|_)param(eter)?s?(_list|_groups)?$")
# Methods that give the same gradient in another shape, dtype or place.
_SAME = words("detach float double clone to flatten view reshape ravel cpu cuda contiguous to_dense coalesce")
# Linear in the gradient, or a question that only asks for finiteness or form.
_LINEAR = words(
    "zero_ detach_ mul_ div_ copy_ clone to is_sparse coalesce numel size shape device dtype isnan isinf "
    "isfinite data_ptr requires_grad_ element_size is_contiguous contiguous view is_sparse_csr "
    "untyped_storage"
)
READS = words(
    "norm abs clamp_ clamp clip_ clip add_ sub_ mean std var max min pow square sum sign sign_ sqrt item "
    "cpu numpy tolist histc float masked_fill_ addcmul_ renorm renorm_ flatten ravel nan_to_num_ nan_to_num dot"
)
# torch functions of a gradient, or of a list of them, that are not linear in it.
FUNCTIONS = words(
    "norm vector_norm matrix_norm clamp clamp_ clip clip_ abs max min nan_to_num nan_to_num_ square pow _foreach_norm "
    "_foreach_add_ _foreach_sub_ _foreach_clamp_max_ _foreach_clamp_min_ histc dot"
)
_JOINS = frozenset({"cat", "stack", "concat", "hstack", "parameters_to_vector", "_flatten_dense_tensors"})
_FINITE_CHECKS = frozenset({"isnan", "isinf", "isfinite", "all_reduce", "allclose", "equal"})
_NOT_FINITE = frozenset({"isnan", "isinf", "isfinite", "nan_to_num", "nan_to_num_"})
_FORMS = frozenset({"shape", "device", "dtype", "size", "layout", "is_sparse"})


class Gradients:
    """Answers for one file; everything by name, without control flow."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols

    def is_grad(self, expr: ast.AST, scope: Scope, depth: int = 4) -> bool:
        """`.grad` of a parameter (not of an input, as in adversarial training), as it is, by name or out of a list."""
        if depth <= 0:
            return False
        if isinstance(expr, ast.Name):
            return self._named(expr.id, scope, depth)
        if isinstance(expr, ast.Call):
            if isinstance(expr.func, ast.Attribute) and expr.func.attr in _SAME:
                return self.is_grad(expr.func.value, scope, depth)
            return last_name(expr.func) in _JOINS and bool(expr.args) and self.are_grads(expr.args[0], scope, depth - 1)
        if not isinstance(expr, ast.Attribute):
            return False
        if expr.attr == "data":
            return self.is_grad(expr.value, scope, depth)
        if expr.attr != "grad" or self.symbols.qual(expr, scope) is not None:
            return False
        return self._is_parameter(expr.value, scope)

    def _named(self, name: str, scope: Scope, depth: int) -> bool:
        bindings = self.symbols.bindings(name, scope)
        for binding in bindings:
            if binding.value is None:
                continue
            if binding.loop:
                if binding.place is None and self.are_grads(binding.value, binding.scope, depth - 1):
                    return True
            elif len(bindings) == 1 and binding.place is None and self.is_grad(binding.value, binding.scope, depth - 1):
                return True
        return False

    def are_grads(self, expr: ast.expr, scope: Scope, depth: int = 4) -> bool:
        """`[p.grad for p in model.parameters()]`, by name or as it is."""
        return depth > 0 and any(
            isinstance(r.expr, ast.ListComp | ast.GeneratorExp | ast.SetComp)
            and self.is_grad(r.expr.elt, self.symbols.scope(r.expr), depth - 1)
            for r in self.symbols.resolve(expr, scope)
        )

    def _is_parameter(self, expr: ast.expr, scope: Scope) -> bool:
        text = dotted(expr)
        if text is None:
            # model[0].weight.grad
            return isinstance(expr, ast.Attribute) and expr.attr in ("weight", "bias")
        leaf = text.rpartition(".")[2]
        if leaf in _PARAMETER_NAMES or (("." in text) and leaf in ("weight", "bias")):
            return True
        return any(
            binding.loop
            and binding.value is not None
            and any(
                (
                    isinstance(n, ast.Attribute)
                    and n.attr in ("parameters", "named_parameters", "param_groups", "trainable_parameters")
                )
                or (isinstance(n, ast.Name | ast.Attribute) and _OF_PARAMETERS.search(last_name(n)))
                for n in walk(binding.value)
            )
            for binding in self.symbols.bindings(text, scope)
        )

    def moves_by_grad(self, target: ast.expr, value: ast.expr, scope: Scope) -> bool:
        """`p.data.add_(p.grad, alpha=-lr)`, `p -= lr * p.grad`: a parameter moves by a multiple of its gradient."""
        if isinstance(target, ast.Attribute) and target.attr == "data":
            target = target.value
        factors = (
            [value.left, value.right] if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult) else [value]
        )
        own = [f for f in factors if self.is_grad(f, scope)]
        return (
            len(own) == 1 and self._is_parameter(target, scope) and not any("scale" in ast.unparse(f) for f in factors)
        )

    def square(self, expr: ast.expr, scope: Scope) -> ast.expr | None:
        """The gradient in `p.grad * p.grad` or `p.grad ** 2`."""
        if not isinstance(expr, ast.BinOp):
            return None
        if isinstance(expr.op, ast.Pow) or (
            isinstance(expr.op, ast.Mult) and ast.dump(expr.left) == ast.dump(expr.right)
        ):
            return expr.left if self.is_grad(expr.left, scope) else None
        return None

    def harmless(self, node: ast.AST) -> bool:
        """The result is only asked whether it is finite, is divided by the scale, or goes into a linear update."""
        child, parent = node, self.symbols.parent.get(node)
        for _ in range(12):
            if parent is None or isinstance(parent, ast.stmt):
                return False
            if isinstance(parent, ast.Call) and last_name(parent.func) in _FINITE_CHECKS:
                return True
            if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Div | ast.Mult):
                other = parent.right if parent.left is child else parent.left
                if "scale" in ast.unparse(other).lower():
                    return True
            child, parent = parent, self.symbols.parent.get(parent)
        return False

    def hides_overflow(self, node: ast.expr, scope: Scope) -> bool:
        """What is not finite is taken out of a gradient: `p.grad[~torch.isfinite(p.grad)] = 0`, or zeroed if it is."""
        statement: ast.AST | None = node
        while statement is not None and not isinstance(statement, ast.stmt):
            statement = self.symbols.parent.get(statement)
        asked: list[ast.AST] = [statement] if statement is not None else []
        above = self.symbols.parent.get(statement) if statement is not None else None
        if isinstance(above, ast.If) and statement in above.body:
            asked.append(above.test)
        return any(self._asks_finite(a, scope) for a in asked)

    def _asks_finite(self, root: ast.AST, scope: Scope) -> bool:
        for node in walk(root):
            if isinstance(node, ast.Call) and last_name(node.func) in _NOT_FINITE:
                return True
            if isinstance(node, ast.Name):  # `bad = ~torch.isfinite(p.grad)`
                values = [b.value for b in self.symbols.bindings(node.id, scope) if b.value is not None and not b.loop]
                if any(
                    isinstance(n, ast.Call) and last_name(n.func) in _NOT_FINITE and mentions_grad(n)
                    for v in values
                    for n in walk(v)
                ):
                    return True
        return False


def mentions_grad(expr: ast.AST) -> bool:
    """A gradient is used for its values, not for its shape, device or dtype."""
    stack: list[ast.AST] = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Attribute) and node.attr in _FORMS:
            continue
        if isinstance(node, ast.Call) and (last_name(node.func).endswith("_like") or last_name(node.func) in _FORMS):
            continue
        if isinstance(node, ast.Attribute) and node.attr == "grad":
            return True
        stack += children(node)
    return False


def touches_grad(expr: ast.expr) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr == "grad" for n in walk(expr))


def linear(expr: ast.expr) -> bool:
    """A multiple of a gradient, or a copy of it."""
    if isinstance(expr, ast.BinOp) and isinstance(expr.op, ast.Mult | ast.Div):
        return not any(isinstance(n, ast.Call) and last_name(n.func) in READS for n in walk(expr))
    if isinstance(expr, ast.Call) and isinstance(expr.func, ast.Attribute):
        return expr.func.attr in _LINEAR
    return isinstance(expr, ast.Attribute)
