"""A walk over functions in statement order that follows dtypes through autocast regions.

It answers one question for the rules: which operations see FP16 or BF16 values, and how sure is that.
Functions of the file are entered with the values they are called with; modules of the file through their `forward`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace

from deploychain.audit.astnames import Scope, dotted, keyword, last_name, strip_module_calls
from deploychain.audit.contexts import entered
from deploychain.audit.exprtypes import ExpressionTypes
from deploychain.audit.frameworks import Region
from deploychain.audit.symbols import Symbols
from deploychain.audit.tree import children, walk
from deploychain.audit.values import (
    UNKNOWN_VALUE,
    Seen,
    Value,
    join,
    join_envs,
    promote,
)

_NO_GRAD = frozenset({"no_grad", "inference_mode", "smart_inference_mode"})
_MAX_DEPTH = 6
_MAX_WALKS = 400


class DtypeWalk(ExpressionTypes):
    """Walks every function of a file once per context and keeps what it saw in `seen`."""

    def run(self) -> list[Seen]:
        symbols = self.symbols
        for function in symbols.function_scopes:  # what the attributes of the instances are
            if function.name in ("__init__", "setup", "__post_init__"):
                self._enter(function, {}, None)
        self._enter(symbols.module, {}, None)
        for function in symbols.function_scopes:
            if function.name == "forward" and function.owner is not None:
                continue  # entered through the instance, with its region
            if not symbols.call_sites(function) and not symbols.registries.left_out(function):
                self._enter_alone(function)
        # forward methods that no call reached (the instance is passed on to code that is not shown)
        reached = {id(s.function) for s in self.seen}
        for function in symbols.function_scopes:
            if function.name == "forward" and id(function) not in reached:
                made = self.half_modules.get(function.owner.name) if function.owner is not None else None
                if made is not None and self.amp.framework.ambient(function) is None:
                    self._run(function, (), (), (), Value("fp16", True, made, module=True))
                else:
                    self._enter_alone(function)
        return self.seen

    def _enter_alone(self, function: Scope) -> None:
        """Code that nothing in the file calls, with what a framework makes of it."""
        args: dict[str, Value] = {}
        made = self.amp.framework.half_by_trainer(function)
        if made is not None and function.parameters:
            args = dict.fromkeys(function.parameters[1:], Value("fp16", False, made))
            args[function.parameters[0]] = Value("fp16", True, made, module=True)
        self._enter(function, args, self.amp.framework.ambient(function))

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
            tuple(
                sorted((k, v.dtype or "", v.sure, v.names, id(v.made.expr) if v.made else 0) for k, v in args.items())
            ),
        )
        if key in self._memo:
            return self._memo[key]
        self._memo[key] = UNKNOWN_VALUE
        outer = self._frames.get(id(function))
        if self._active:
            self._frames[id(self._scope)] = self._env
        kept = (self._region, self._env, self._scope, self._no_grad, self._returned)
        no_grad = self._no_grad or any(_is_no_grad(d, self.symbols) for d in getattr(node, "decorator_list", []))
        self._region, self._env, self._scope, self._no_grad, self._returned = region, dict(args), function, no_grad, []
        self._active.append(function)
        try:
            self._body(function.body)
            result = join(self._returned)
        finally:
            self._active.pop()
            self._frames[id(function)] = self._env if function is self.symbols.module else outer or {}
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
                self._wrap_forward(target, s.value)
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
            if self._switched_off(s.test):
                self._body(s.orelse)
                return
            given = self.symbols.const(s.test, self._scope) if isinstance(s.test, ast.Attribute) else None
            if isinstance(given, bool):  # a switch that the configuration of this file is given
                self._body(s.body if given else s.orelse)
                return
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
            self._loop(s.body)
            self._body(s.orelse)
        elif isinstance(s, ast.While):
            self._value(s.test)
            self._loop(s.body)
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
            for child in children(s):
                if isinstance(child, ast.expr):
                    self._value(child)

    def _switched_off(self, test: ast.expr) -> bool:
        """`if half:` in a function that is called with half=False."""
        return isinstance(test, ast.Name) and self._env.get(test.id, UNKNOWN_VALUE).off

    def _loop(self, body: list[ast.stmt]) -> None:
        """The body once more where it reads what the round before left behind: `flow = net(prev)`, `prev = frame`."""
        before = dict(self._env)
        self._body(body)
        left = {n for n, v in self._env.items() if v.half and not v.module and not before.get(n, UNKNOWN_VALUE).half}
        if left and _reads_first(body, left):
            self._env = join_envs(before, self._env, False, False)
            self._body(body)

    def _with(self, s: ast.With | ast.AsyncWith) -> None:
        kept, no_grad = self._region, self._no_grad
        for item in s.items:
            made = self.amp.region(item.context_expr, self._scope)
            if made is not None:
                self._region = self._with_own_dtype(made)
            elif _is_no_grad(entered(self.symbols, item.context_expr, self._scope), self.symbols):
                self._no_grad = True
        self._body(s.body)
        self._region, self._no_grad = kept, no_grad

    def _with_own_dtype(self, region: Region) -> Region:
        """`autocast(dtype=net.dtype)` after `net.half()` is a float16 region."""
        if region.dtype != "own" or not isinstance(region.node, ast.Call):
            return region
        given = [keyword(region.node, "dtype"), *region.node.args[-1:]]
        known = next((self._value(e).names for e in given if e is not None), "")
        return replace(region, dtype=known) if known else region

    def _enter_by_call(self, expr: ast.expr) -> None:
        """`stack.enter_context(autocast(...))`: until the end of the `with`, or of the function; `amp.__enter__()`."""
        if isinstance(expr, ast.Call) and isinstance(expr.func, ast.Attribute) and expr.func.attr == "__enter__":
            self._region = self.amp.region(expr.func.value, self._scope) or self._region
        elif isinstance(expr, ast.Call) and isinstance(expr.func, ast.Attribute) and expr.func.attr == "__exit__":
            self._region = None if self.amp.region(expr.func.value, self._scope) is not None else self._region
        if isinstance(expr, ast.Call) and last_name(expr.func) == "enter_context" and len(expr.args) == 1:
            self._region = self.amp.region(expr.args[0], self._scope) or self._region

    def _wrap_forward(self, target: ast.expr, value: ast.expr) -> None:
        """`net.forward = autocast("cuda")(net.forward)`"""
        if isinstance(target, ast.Attribute) and target.attr == "forward" and isinstance(value, ast.Call):
            made = self.amp.region(value.func, self._scope) if isinstance(value.func, ast.Call) else None
            text = dotted(target.value)
            if made is not None and text is not None:
                self._wrapped[text] = made

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
                self._env[text] = value.tensor
            return
        chain = expr
        while isinstance(chain, ast.Call) and isinstance(chain.func, ast.Attribute):
            base = chain.func.value
            dtype = self._cast_dtype(chain)
            held = strip_module_calls(base) if dtype is not None else base  # of `net.eval().half()`
            if dtype is not None and dotted(held) is not None:
                base = held
                self._assign(base, Value(dtype, True, chain, module=True, made=self._value(base).made))
                return
            chain = base


def _is_no_grad(expr: ast.expr, symbols: Symbols) -> bool:
    target = expr.func if isinstance(expr, ast.Call) else expr
    name = symbols.qual(target) or ""
    return (name.startswith("torch.") and name.rpartition(".")[2] in _NO_GRAD) or last_name(target) in _NO_GRAD


def _leaves(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)


def _reads_first(body: list[ast.stmt], names: set[str]) -> bool:
    """One of the names is read in the body before it is given a value there."""
    for statement in body:
        for node in walk(statement):
            if isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load):
                return True
        names = names - {n.id for n in walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return False
