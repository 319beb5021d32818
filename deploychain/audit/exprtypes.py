"""The dtype that an expression has, in the region and with the names of the moment.

`DtypeWalk` runs the statements; this part answers for one expression and notes every operation that it comes by.
"""

from __future__ import annotations

import ast

from deploychain.audit.amp import FUNCTION_LOSSES, Amp
from deploychain.audit.astnames import Scope, dotted, keyword, strip_module_calls
from deploychain.audit.frameworks import Region
from deploychain.audit.symbols import Symbols
from deploychain.audit.values import (
    FP32,
    FP32_CUDA,
    FP32_LAYERS,
    LOWER,
    LOWER_LAYERS,
    MODEL_NAMES,
    NEVER_CAST,
    NOT_TENSORS,
    OTHER,
    PASS_LAYERS,
    PYTHON,
    SCALAR,
    TENSOR_METHODS,
    UNKNOWN_VALUE,
    Seen,
    Value,
    in_region,
    join,
    part_of_a_model,
    promote,
    runs_a_model,
    words,
)  # fmt: skip

_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**", ast.MatMult: "@"}
# Methods that keep the dtype and may also be a module's; functions of several tensors that promote them.
_SAME = words("to cuda cpu detach contiguous clone train eval requires_grad_ squeeze_")
_PROMOTING = words("cat stack where maximum minimum mul add sub div addcmul lerp grid_sample")


class ExpressionTypes:
    """Dtypes of expressions. Calls of functions in this file are entered through `_enter`."""

    def __init__(self, symbols: Symbols, amp: Amp) -> None:
        self.symbols = symbols
        self.amp = amp
        self.seen: list[Seen] = []
        self.half_modules: dict[str, ast.AST] = {}  # class of this file -> the call that made an instance half
        self._active: list[Scope] = []
        self._memo: dict[tuple[object, ...], Value] = {}
        self._region: Region | None = None
        self._env: dict[str, Value] = {}
        self._scope: Scope = symbols.module
        self._no_grad = False
        self._returned: list[Value] = []

    def _enter(self, function: Scope, args: dict[str, Value], region: Region | None) -> Value:
        """Walk a function of this file with these arguments; its returned value."""
        raise NotImplementedError

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
        if text is not None:
            self._env[text] = value

    # -- expressions --------------------------------------------------------------------------------------------

    def _value(self, e: ast.expr) -> Value:
        if isinstance(e, ast.Constant):
            return SCALAR if isinstance(e.value, int | float) and not isinstance(e.value, bool) else OTHER
        if isinstance(e, ast.Name):
            return self._env.get(e.id, self._outer(e))
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
            return join([self._value(e.body), self._value(e.orelse)])
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
                source = self._value(generator.iter)
                self._assign(generator.target, Value(source.dtype, source.sure, source.via))
            return self._value(e.elt)
        for child in ast.iter_child_nodes(e):
            if isinstance(child, ast.expr):
                self._value(child)
        return UNKNOWN_VALUE

    def _outer(self, e: ast.Name) -> Value:
        value = self.symbols.const(e, self._scope)
        return SCALAR if isinstance(value, int | float) and not isinstance(value, bool) else UNKNOWN_VALUE

    def _attribute(self, e: ast.Attribute) -> Value:
        text = dotted(e)
        if text is not None and text in self._env:
            return self._env[text]
        base = self._value(e.value)
        if base.module or e.attr in NOT_TENSORS or e.attr in ("dtype", "grad_fn", "requires_grad"):
            return base if base.module else OTHER
        if e.attr == "loss":
            return UNKNOWN_VALUE
        return Value(base.dtype, base.sure, base.via) if base.half else UNKNOWN_VALUE

    def _saw(self, e: ast.BinOp, left: Value, right: Value) -> Value:
        name = _OPERATORS.get(type(e.op), "?")
        region = self._region
        result = promote(left, right)
        if name == "@":
            result = self._lower(e)
        elif name == "**" and region is not None and region.half and region.cuda:
            result = FP32
        elif name == "/" and left.dtype == "scalar" and region is not None and region.half and region.cuda:
            result = FP32  # reciprocal
        self._note(e, name, (left, right), result)
        return result

    def _note(self, node: ast.expr, name: str, args: tuple[Value, ...], result: Value) -> None:
        root = self._active[0] if self._active else None
        self.seen.append(Seen(node, name, args, result, self._region, self._scope, self._no_grad, root))

    def _lower(self, node: ast.AST, args: tuple[Value, ...] = ()) -> Value:
        region = self._region
        if region is not None and region.half:
            return Value(in_region(region.dtype), region.enabled is True or region.dtype == "fp16", node)
        half = [a for a in args if a.half]
        if half and all(a.half or a.dtype in ("scalar", "other") for a in args):
            return Value(half[0].dtype, half[0].sure, half[0].via)
        return UNKNOWN_VALUE

    def _cast_dtype(self, call: ast.Call) -> str | None:
        """The dtype that `.half()`, `.float()`, `.to(torch.float16)`, `.type(...)` asks for."""
        if not isinstance(call.func, ast.Attribute):
            return None
        attr = call.func.attr
        fixed = {"half": "fp16", "float": "fp32", "double": "fp32", "bfloat16": "bf16"}.get(attr)
        if fixed is not None and not call.args:
            return fixed
        if attr in ("to", "type"):
            given = [keyword(call, "dtype"), *call.args]
            for expr in given:
                if expr is None:
                    continue
                if isinstance(expr, ast.Constant) and attr == "to":
                    continue
                dtype = self.amp.dtype(expr, self._scope) if self._looks_dtype(expr) else None
                if dtype in ("fp16", "bf16", "fp32", "fp64"):
                    return "fp32" if dtype == "fp64" else dtype
                if isinstance(expr, ast.Attribute) and expr.attr == "dtype":
                    return self._value(expr.value).dtype
        return None

    def _looks_dtype(self, expr: ast.expr) -> bool:
        for ref in self.symbols.resolve(expr, self._scope):
            name = self.symbols.qual(ref.expr, ref.scope) or ""
            if name.startswith("torch.") or (isinstance(ref.expr, ast.Constant) and isinstance(ref.expr.value, str)):
                return True
        return False

    def _call(self, call: ast.Call) -> Value:
        func = call.func
        args = tuple(self._value(a) for a in call.args) + tuple(self._value(k.value) for k in call.keywords)
        scope, region = self._scope, self._region
        name = self.symbols.qual(func, scope)
        if name is None and isinstance(func, ast.Attribute):
            known = self._method(call, func, args)
            if known is not None:
                return known
        if name is not None:
            result = self._torch_function(call, name, args)
            self._note(call, name, args, result)
            return result
        if isinstance(func, ast.Name) and func.id in ("filter", "list", "iter", "tuple", "reversed") and args:
            return args[-1] if func.id == "filter" else args[0]
        loss = self.amp.loss_name(func, scope)
        local = self._local(call, args)
        if loss is not None:
            result = FP32 if region is not None and region.half else (local or UNKNOWN_VALUE)
            self._note(call, f"loss:{loss[0]}", args, result)
            return result
        if local is not None:
            return local
        layer = self._layer(func)
        if layer is not None:
            result = self._layer_result(layer, call, args)
            self._note(call, f"layer:{layer}", args, result)
            return result
        result = self._unknown_call(call, func, args)
        self._note(call, "call", args, result)
        return result

    def _method(self, call: ast.Call, func: ast.Attribute, args: tuple[Value, ...]) -> Value | None:
        """A method of a tensor or module value; None where the receiver is to be called like a function."""
        attr = func.attr
        base = self._value(func.value)
        dtype = self._cast_dtype(call)
        if dtype is not None:
            cls = self.symbols.instance_class(func.value, self._scope)
            if dtype == "fp16":
                for made in self.symbols.classes_in(func.value, self._scope):
                    self.half_modules.setdefault(made.name, call)
            is_module = base.module or cls is not None or self._is_model(func.value)
            result = Value(dtype, True, call, module=is_module)
            self._note(call, f".{attr}", (base,), result)
            return result
        if attr in _SAME:
            return base
        if attr == "type_as" and call.args:
            return args[0]
        if attr in ("parameters", "named_parameters") and (base.module or base.half):
            return Value(base.dtype, base.sure, base.via, module=True)  # only a module has them
        if attr in NOT_TENSORS:
            return OTHER
        if self.symbols.local_function(func, self._scope) is not None:
            return None
        if isinstance(func.value, ast.Name) and func.value.id in ("self", "cls"):
            return None
        if base.module:
            return None
        if attr in LOWER or attr in FP32_CUDA or attr in TENSOR_METHODS:
            result = self._op(call, attr, (base, *args))
            self._note(call, attr, (base, *args), result)
            return result
        return None

    def _is_model(self, expr: ast.expr) -> bool:
        made = strip_module_calls(expr)
        if isinstance(made, ast.Call):
            name = self.symbols.qual(made.func, self._scope) or ""
            return name.startswith(("torch.nn.", "torchvision.models.", "timm.create_model"))
        text = dotted(made)
        return text is not None and text.rpartition(".")[2].lower() in MODEL_NAMES

    def _torch_function(self, call: ast.Call, name: str, args: tuple[Value, ...]) -> Value:
        leaf = name.rpartition(".")[2]
        if leaf == "from_pretrained":
            dtype = self.amp.dtype(keyword(call, "torch_dtype", "dtype"), self._scope)
            return Value(dtype, True, call, module=True) if dtype in ("fp16", "bf16") else OTHER
        if not name.startswith("torch."):
            return UNKNOWN_VALUE if self._region is None else self._unknown_result(call, args, name)
        if leaf in FUNCTION_LOSSES:
            return (
                FP32
                if self._region is not None and self._region.half
                else promote(args[0], args[1])
                if len(args) > 1
                else UNKNOWN_VALUE
            )
        if leaf in NEVER_CAST:
            dtype = self.amp.dtype(keyword(call, "dtype"), self._scope) if keyword(call, "dtype") is not None else None
            return (
                Value(dtype, True, call)
                if dtype in ("fp16", "bf16", "fp32")
                else FP32
                if leaf != "arange" and dtype is None and leaf != "as_tensor"
                else UNKNOWN_VALUE
            )
        if keyword(call, "dtype") is not None:
            dtype = self.amp.dtype(keyword(call, "dtype"), self._scope)
            if dtype in ("fp16", "bf16", "fp32"):
                return Value(dtype, True, call)
        if leaf in ("compile", "load") or name.startswith(
            ("torch.nn.Module", "torch.optim", "torch.utils", "torch.distributed")
        ):
            return args[0] if leaf == "compile" and args else OTHER
        if name.startswith("torch.nn.") and leaf[:1].isupper():
            return OTHER  # a constructor
        return self._op(call, leaf, args)

    def _op(self, call: ast.Call, leaf: str, args: tuple[Value, ...]) -> Value:
        region = self._region
        active = region is not None and region.half
        if leaf in LOWER:
            return self._lower(call, args)
        if active and region is not None and region.cuda and leaf in FP32_CUDA:
            return Value("fp32", True, bounded=leaf in ("softmax", "normalize", "log_softmax"))
        if leaf in _PROMOTING:
            parts = [i for a in args for i in (a.items or (a,))]
            result = parts[0] if parts else UNKNOWN_VALUE
            for part in parts[1:]:
                result = promote(result, part)
            return result
        first = args[0] if args else UNKNOWN_VALUE
        if first.half or first.dtype in ("fp32", "scalar"):
            return Value(first.dtype, first.sure, first.via, bounded=leaf in ("sigmoid", "softmax"))
        return UNKNOWN_VALUE

    # -- calls of things in this file --------------------------------------------------------------------------------

    def _local(self, call: ast.Call, args: tuple[Value, ...]) -> Value | None:
        symbols, scope = self.symbols, self._scope
        function = symbols.local_function(call.func, scope)
        if function is None:
            function = self._forward_of(call.func)
        if function is None:
            return None
        parameters = list(function.parameters)
        if function.owner is not None and parameters and parameters[0] in ("self", "cls"):
            parameters = parameters[1:]
        values: dict[str, Value] = {}
        for parameter, value in zip(parameters, args[: len(call.args)], strict=False):
            values[parameter] = value
        for k, value in zip(call.keywords, args[len(call.args) :], strict=True):
            if k.arg is not None:
                values[k.arg] = value
        receiver = (
            self._value(call.func)
            if not isinstance(call.func, ast.Attribute)
            else self._env.get(dotted(call.func) or "")
        )
        if receiver is not None and receiver.module and receiver.dtype == "fp16":
            values["self"] = receiver
        values = {k: v for k, v in values.items() if v.dtype is not None}
        return self._enter(function, values, self._region)

    def _forward_of(self, func: ast.expr) -> Scope | None:
        """The forward method that `model(x)` or `self(x)` runs, where the class is in this file."""
        symbols, scope = self.symbols, self._scope
        if (isinstance(func, ast.Name) and func.id == "self") or (isinstance(func, ast.Call)):
            cls = symbols.class_of(scope) if isinstance(func, ast.Name) else symbols.instance_class(func, scope)
        else:
            cls = symbols.instance_class(func, scope)
        if cls is None:
            return None
        for base in symbols.bases(cls):
            for candidate in symbols.functions.get("forward", ()):
                if candidate.owner is base:
                    return candidate
        return None

    def _layer(self, func: ast.expr) -> str | None:
        """The torch.nn class that a called attribute is an instance of."""
        for ref in self.symbols.resolve(func, self._scope):
            expr = strip_module_calls(ref.expr)
            if isinstance(expr, ast.Call):
                name = self.symbols.qual(expr.func, ref.scope)
                if name is not None and name.startswith("torch.nn."):
                    leaf = name.rpartition(".")[2]
                    if leaf == "Sequential" and expr.args:
                        last = expr.args[-1]
                        inner = self.symbols.qual(last.func, ref.scope) if isinstance(last, ast.Call) else None
                        return inner.rpartition(".")[2] if inner and inner.startswith("torch.nn.") else "Sequential"
                    return leaf
        return None

    def _layer_result(self, layer: str, call: ast.Call, args: tuple[Value, ...]) -> Value:
        region = self._region
        own = self._env.get("self")
        if layer in LOWER_LAYERS:
            made = self._lower(call, args)
            if made.dtype is None and own is not None and own.half:
                return Value("fp16", True, call)
            return made
        if layer in FP32_LAYERS and region is not None and region.half and region.cuda:
            return FP32
        if (layer in PASS_LAYERS or layer in FP32_LAYERS) and args:
            return args[0]
        return self._unknown_result(call, args, layer)

    def _unknown_call(self, call: ast.Call, func: ast.expr, args: tuple[Value, ...]) -> Value:
        text = dotted(func)
        held = self._env.get(text) if text is not None else None
        if held is not None and held.module:
            if held.dtype == "fp16" and self._region is None:
                return Value("fp16", True, held.via)
            return self._unknown_result(call, args, text or "")
        if isinstance(func, ast.Attribute):
            base = self._value(func.value)
            if base.half and not base.module:
                return Value(base.dtype, False, base.via)
        return self._unknown_result(call, args, text or "")

    def _unknown_result(self, call: ast.Call, args: tuple[Value, ...], name: str) -> Value:
        region = self._region
        if region is None or not region.half:
            return UNKNOWN_VALUE
        leaf = name.rpartition(".")[2]
        if leaf in PYTHON or leaf[:1].isupper() or not (runs_a_model(leaf) or part_of_a_model(name)):
            return UNKNOWN_VALUE
        if region.framework == "accelerate":
            return FP32  # Accelerate converts a prepared model's outputs
        return Value(in_region(region.dtype), False, call)
