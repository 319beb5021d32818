"""A walk over functions in statement order that follows dtypes through autocast regions.

It answers one question for the rules: which operations see FP16 or BF16 values, and how sure is that.
Functions of the file are entered with the values they are called with; modules of the file through their `forward`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from deploychain.audit.astnames import Scope, dotted, last_name
from deploychain.audit.exprtypes import ExpressionTypes
from deploychain.audit.frameworks import Region
from deploychain.audit.symbols import Symbols
from deploychain.audit.values import (
    UNKNOWN_VALUE,
    Seen,
    Value,
    join,
    join_envs,
    promote,
)

_MAX_DEPTH = 6
_MAX_WALKS = 400


class DtypeWalk(ExpressionTypes):
    """Walks every function of a file once per context and keeps what it saw in `seen`."""

    def run(self) -> list[Seen]:
        symbols = self.symbols
        self._enter(symbols.module, {}, None)
        for function in symbols.function_scopes:
            if function.name == "forward" and function.owner is not None and self._constructed(function.owner):
                continue  # entered through the instance, with its region
            if not symbols.call_sites(function):
                self._enter(function, {}, self.amp.framework.ambient(function))
        # forward methods that no call reached (the instance is passed on to code that is not shown)
        reached = {id(s.function) for s in self.seen}
        for function in symbols.function_scopes:
            if function.name == "forward" and id(function) not in reached:
                self._enter(function, {}, self.amp.framework.ambient(function))
        return self.seen

    def _constructed(self, cls: Scope) -> bool:
        return any(last_name(c.func) == cls.name for c in self.symbols.calls)

    # -- functions ----------------------------------------------------------------------------------------------

    def _enter(self, function: Scope, args: dict[str, Value], region: Region | None) -> Value:
        """Walk a function with these arguments; its returned value."""
        if function in self._active or len(self._active) >= _MAX_DEPTH or len(self._memo) > _MAX_WALKS:
            return UNKNOWN_VALUE
        node = function.node
        for decorator in getattr(node, "decorator_list", []):
            made = self.amp.region(decorator, self.symbols.scope(decorator))
            if made is not None:
                region = made
        key = (
            id(function),
            id(region.node) if region else None,
            tuple(sorted((k, v.dtype, v.sure) for k, v in args.items())),
        )
        if key in self._memo:
            return self._memo[key]
        self._memo[key] = UNKNOWN_VALUE
        kept = (self._region, self._env, self._scope, self._no_grad, self._returned)
        no_grad = self._no_grad or any(_is_no_grad(d, self.symbols) for d in getattr(node, "decorator_list", []))
        self._region, self._env, self._scope, self._no_grad, self._returned = region, dict(args), function, no_grad, []
        self._active.append(function)
        try:
            self._body(function.body)
            result = join(self._returned)
        finally:
            self._active.pop()
            self._region, self._env, self._scope, self._no_grad, self._returned = kept
        self._memo[key] = result
        return result

    def _body(self, body: Iterable[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, s: ast.stmt) -> None:
        if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return
        if isinstance(s, ast.Assign):
            value = self._value(s.value)
            for target in s.targets:
                self._assign(target, value)
        elif isinstance(s, ast.AnnAssign):
            if s.value is not None:
                self._assign(s.target, self._value(s.value))
        elif isinstance(s, ast.AugAssign):
            left = self._value(s.target)
            right = self._value(s.value)
            self._saw(ast.copy_location(ast.BinOp(s.target, s.op, s.value), s), left, right)
            if isinstance(s.target, ast.Name) and left.dtype != "fp32":
                self._assign(s.target, promote(left, right) if left.dtype is None else left)
        elif isinstance(s, ast.With | ast.AsyncWith):
            self._with(s)
        elif isinstance(s, ast.If):
            self._value(s.test)
            before, outside = dict(self._env), self._region
            self._body(s.body)
            after, inside = self._env, self._region
            self._env, self._region = before, outside
            self._body(s.orelse)
            if self._region is outside:
                self._region = inside
            self._env = join_envs(after, self._env, _leaves(s.body), _leaves(s.orelse))
        elif isinstance(s, ast.For | ast.AsyncFor):
            self._iterate(s.target, s.iter)
            self._body(s.body)
            self._body(s.orelse)
        elif isinstance(s, ast.While):
            self._value(s.test)
            self._body(s.body)
        elif isinstance(s, ast.Return):
            if s.value is not None:
                self._returned.append(self._value(s.value))
        elif isinstance(s, ast.Expr):
            self._value(s.value)
            self._module_in_place(s.value)
            self._enter_by_call(s.value)
        elif isinstance(s, ast.Try):
            self._body(s.body)
            for handler in s.handlers:
                before = dict(self._env)
                self._body(handler.body)
                self._env = before
            self._body(s.orelse)
            self._body(s.finalbody)
        elif isinstance(s, ast.Match):
            for case in s.cases:
                self._body(case.body)
        else:
            for child in ast.iter_child_nodes(s):
                if isinstance(child, ast.expr):
                    self._value(child)

    def _with(self, s: ast.With | ast.AsyncWith) -> None:
        kept, no_grad = self._region, self._no_grad
        for item in s.items:
            made = self.amp.region(item.context_expr, self._scope)
            if made is not None:
                self._region = made
            elif _is_no_grad(item.context_expr, self.symbols):
                self._no_grad = True
        self._body(s.body)
        self._region, self._no_grad = kept, no_grad

    def _enter_by_call(self, expr: ast.expr) -> None:
        """`stack.enter_context(autocast(...))`: until the end of the `with`, or of the function."""
        if isinstance(expr, ast.Call) and last_name(expr.func) == "enter_context" and len(expr.args) == 1:
            self._region = self.amp.region(expr.args[0], self._scope) or self._region

    def _iterate(self, target: ast.expr, source: ast.expr) -> None:
        """Bind the loop variables of `for a, b in zip(x, y)`, `for i, a in enumerate(x)`, `for a in x`."""
        value = self._value(source)
        for name in _target_names(target):
            self._env.pop(name, None)
        if isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and isinstance(target, ast.Tuple):
            parts = [self._value(a) for a in source.args]
            if source.func.id == "enumerate" and len(target.elts) == 2 and parts:
                self._assign(target.elts[1], parts[0])
            elif source.func.id == "zip" and len(parts) == len(target.elts):
                for element, part in zip(target.elts, parts, strict=True):
                    self._assign(element, Value(part.dtype, part.sure, part.via))
        elif value.half and not value.module:
            self._assign(target, Value(value.dtype, value.sure, value.via))

    def _module_in_place(self, expr: ast.expr) -> None:
        """`preds.append(x)` makes a list of what x is; `model.half()` as a statement changes the module.

        (On a tensor that statement would do nothing.)
        """
        if (
            isinstance(expr, ast.Call)
            and isinstance(expr.func, ast.Attribute)
            and expr.func.attr == "append"
            and expr.args
        ):
            text = dotted(expr.func.value)
            value = self._value(expr.args[0])
            if text is not None and value.half:
                self._env[text] = Value(value.dtype, value.sure, value.via)
            return
        chain = expr
        while isinstance(chain, ast.Call) and isinstance(chain.func, ast.Attribute):
            base = chain.func.value
            text = dotted(base)
            dtype = self._cast_dtype(chain)
            if dtype is not None and text is not None:
                self._env[text] = Value(dtype, True, chain, module=True)
                return
            chain = base


def _is_no_grad(expr: ast.expr, symbols: Symbols) -> bool:
    target = expr.func if isinstance(expr, ast.Call) else expr
    name = symbols.qual(target) or ""
    return name in ("torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad")


def _target_names(target: ast.expr) -> set[str]:
    if isinstance(target, ast.Tuple | ast.List):
        return {n for e in target.elts for n in _target_names(e)}
    text = dotted(target)
    return {text} if text else set()


def _leaves(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)
