"""The dtype that an expression has, in the region and with the names of the moment.

`DtypeWalk` runs the statements; this part answers for one expression and notes every operation that it comes by.
"""

from __future__ import annotations

import ast

from deploychain.audit.astnames import Ref, dotted, last_name
from deploychain.audit.calltypes import CallTypes
from deploychain.audit.tree import children, walk
from deploychain.audit.values import FP32, INTEGER_NAME, NOT_TENSORS, OTHER, SCALAR, UNKNOWN_VALUE, Value, join, promote

_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**", ast.MatMult: "@"}
_KINDS = frozenset({"is_floating_point", "is_tensor", "isinstance"})  # `v.float() if torch.is_tensor(v) else v`
_NO_SUBMODULES = frozenset({"config", "device", "training", "tokenizer", "vocab_size", "loss"})


class ExpressionTypes(CallTypes):
    """Dtypes of expressions. Calls of functions in this file are entered through `_enter`."""

    def _assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            for i, element in enumerate(target.elts):
                if value.items:
                    self._assign(element, value.items[i] if i < len(value.items) else UNKNOWN_VALUE)
                else:
                    self._assign(element, value)
            return
        if isinstance(target, ast.Starred):
            self._assign(target.value, value)
            return
        text = dotted(target)
        if text is None and isinstance(target, ast.Subscript) and value.half and not value.module:
            text = dotted(target.value)  # `cache[key] = x`: a dictionary or list of what x is
            held = self.symbols.resolve(target.value, self._scope)
            if text is None or not all(isinstance(r.expr, ast.Dict | ast.List) for r in held):
                return
            value = value.tensor
        if text is not None:
            self._env[text] = value
            if text.startswith("self.") and text.count(".") == 1:
                self._keep(text.removeprefix("self."), value)

    # -- expressions --------------------------------------------------------------------------------------------

    def _value(self, e: ast.expr) -> Value:
        if isinstance(e, ast.Constant):
            return SCALAR if isinstance(e.value, int | float) and not isinstance(e.value, bool) else OTHER
        if isinstance(e, ast.Name):
            held = self._env.get(e.id)
            return held if held is not None else self._outer(e)
        if isinstance(e, ast.Call):
            if isinstance(e.func, ast.Name) and e.func.id == "dict" and e.keywords and not e.args:
                return join([self._value(k.value) for k in e.keywords])
            return self._call(e)
        if isinstance(e, ast.BinOp):
            left, right = self._value(e.left), self._value(e.right)
            return self._saw(e, left, right)
        if isinstance(e, ast.UnaryOp):
            return self._value(e.operand)
        if isinstance(e, ast.Attribute):
            return self._attribute(e)
        if isinstance(e, ast.Subscript):
            self._value(e.slice)
            base = self._value(e.value)
            index = e.slice.value if isinstance(e.slice, ast.Constant) else None
            if base.items and isinstance(index, int) and -len(base.items) <= index < len(base.items):
                return base.items[index]
            if isinstance(index, str) and INTEGER_NAME.search(index):
                return OTHER  # `batch["attention_mask"]`
            text = dotted(e)
            return self._env.get(text, base) if text else base
        if isinstance(e, ast.Tuple | ast.List):
            items = tuple(self._value(x) for x in e.elts)
            joined = join(items)
            return Value(joined.dtype, joined.sure, joined.via, items=items)
        if isinstance(e, ast.Dict):
            return join([self._value(v) for v in e.values])
        if isinstance(e, ast.IfExp):
            self._value(e.test)
            arms = [self._value(e.body), self._value(e.orelse)]
            asks = any(isinstance(n, ast.Call) and last_name(n.func) in _KINDS for n in walk(e.test))
            return FP32 if asks and any(a.dtype == "fp32" for a in arms) else join(arms)
        if isinstance(e, ast.NamedExpr):
            value = self._value(e.value)
            self._assign(e.target, value)
            return value
        if isinstance(e, ast.Starred | ast.Await):
            return self._value(e.value)
        if isinstance(e, ast.Lambda):
            return OTHER
        if isinstance(e, ast.GeneratorExp | ast.ListComp | ast.SetComp):
            for generator in e.generators:
                self._iterate(generator.target, generator.iter)
            return self._value(e.elt)
        if isinstance(e, ast.DictComp):
            for generator in e.generators:
                self._iterate(generator.target, generator.iter)
            self._value(e.key)
            return self._value(e.value)
        for child in children(e):
            if isinstance(child, ast.expr):
                self._value(child)
        return UNKNOWN_VALUE

    def _iterate(self, target: ast.expr, source: ast.expr) -> None:
        """Bind the loop variables of `for a, b in zip(x, y)`, `for i, a in enumerate(x)`, `for a in x`."""
        value = self._value(source)
        for name in _target_names(target):
            self._env[name] = UNKNOWN_VALUE
        if isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and isinstance(target, ast.Tuple):
            if source.func.id == "enumerate" and len(target.elts) == 2 and source.args:
                self._iterate(target.elts[1], source.args[0])
            elif source.func.id == "zip" and len(source.args) == len(target.elts):
                for element, part in zip(target.elts, source.args, strict=True):
                    self._iterate(element, part)
        elif _is_items(source) and isinstance(target, ast.Tuple) and len(target.elts) == 2:
            self._iterate(target.elts[1], source.func.value)  # type: ignore[attr-defined]
        elif value.half and not value.module:
            self._assign(target, value.tensor)
        elif isinstance(target, ast.Name):
            self._iterate_modules(target, source, value)

    def _iterate_modules(self, target: ast.Name, source: ast.expr, value: Value) -> None:
        """`for block in self.blocks`: one of the modules of the list."""
        if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) and source.func.attr == "values":
            source = source.func.value
        made = self._element(source) if isinstance(source, ast.Name | ast.Attribute) else None
        if made is not None and (value.module or self._is_module_made(made)):
            self._assign(target, Value(value.dtype, True, value.via, module=True, made=made))

    def _is_module_made(self, made: Ref) -> bool:
        assert isinstance(made.expr, ast.Call)
        name = self.symbols.qual(made.expr.func, made.scope)
        if name is not None:
            return name.startswith("torch.nn.")
        cls = self.symbols.classes.get(last_name(made.expr.func))
        return cls is not None and self._method_of(cls, "forward") is not None

    def _outer(self, e: ast.Name) -> Value:
        scope = self._scope.parent
        while scope is not None and e.id not in self._scope.parameters:  # of the functions around, and of the module
            held = self._frames.get(id(scope), {}).get(e.id)
            if held is not None and not scope.is_class:
                return held
            scope = scope.parent
        value = self.symbols.const(e, self._scope)
        return SCALAR if isinstance(value, int | float) and not isinstance(value, bool) else UNKNOWN_VALUE

    def _attribute(self, e: ast.Attribute) -> Value:
        text = dotted(e)
        if text is not None and text in self._env:
            return self._env[text]
        return self._attribute_of(e, self._value(e.value))

    def _attribute_of(self, e: ast.Attribute, base: Value) -> Value:
        text = dotted(e)
        if text is not None and text in self._env:
            return self._env[text]
        if e.attr == "dtype":
            return Value("other", True, names=base.dtype if base.dtype in ("fp16", "bf16", "fp32") else "")
        if isinstance(e.value, ast.Name) and e.value.id == "self":
            held = self._own_attribute(e.attr, base)
            if held is not UNKNOWN_VALUE or base.module:
                return held
        if base.module:
            return UNKNOWN_VALUE if e.attr in _NO_SUBMODULES else base if base.made is None else base.whole
        if e.attr in NOT_TENSORS or e.attr in ("grad_fn", "requires_grad"):
            return OTHER
        if e.attr == "loss":
            return UNKNOWN_VALUE
        return base.tensor if base.half else UNKNOWN_VALUE

    def _saw(self, e: ast.BinOp, left: Value, right: Value) -> Value:
        name = _OPERATORS.get(type(e.op), "?")
        region = self._region
        left, right = (UNKNOWN_VALUE if v.module else v for v in (left, right))
        result = promote(left, right)
        if name == "@":
            result = self._lower(e, (left, right))
        elif name == "**" and region is not None and region.half and region.cuda:
            result = FP32
        elif name == "/" and left.dtype == "scalar" and region is not None and region.half and region.cuda:
            result = FP32  # reciprocal
        self._note(e, name, (left, right), result)
        return result


def _is_items(source: ast.expr) -> bool:
    return isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) and source.func.attr == "items"


def _target_names(target: ast.expr) -> set[str]:
    if isinstance(target, ast.Tuple | ast.List):
        return {n for e in target.elts for n in _target_names(e)}
    text = dotted(target)
    return {text} if text else set()
