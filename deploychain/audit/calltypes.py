"""The dtype that a call returns: methods of tensors and modules, functions of torch, functions of the file."""

from __future__ import annotations

import ast
from dataclasses import replace

from deploychain.audit.astnames import Ref, Scope, dotted, last_name, strip_module_calls
from deploychain.audit.astnames import keyword as given_as
from deploychain.audit.elements import looped
from deploychain.audit.inheritance import run_by_self
from deploychain.audit.losses import FUNCTION_LOSSES, loss_name
from deploychain.audit.moduletypes import ModuleTypes
from deploychain.audit.values import (
    FP32,
    FP32_CUDA,
    LOWER,
    MODULE,
    NEVER_CAST,
    NOT_TENSORS,
    OTHER,
    SCALAR,
    TENSOR_METHODS,
    UNKNOWN_VALUE,
    Value,
    join,
    promote,
    words,
)

# Methods that keep the dtype and may also be a module's; functions of several tensors that promote them.
_SAME = words("to cuda cpu detach contiguous clone train eval requires_grad_ squeeze_ to_empty share_memory")
_PROMOTING = words(
    "cat concat stack hstack vstack where maximum minimum mul add sub div addcmul lerp grid_sample grid_sampler"
)
_KEEP_INTEGERS = words(
    "sum cumsum unsqueeze squeeze view reshape expand expand_as permute transpose flatten repeat clamp clamp_min "
    "max min"
)
_KEEP_ITEMS = words("filter list iter tuple reversed next sorted set")
_KEEP_MODULE = words(
    "compile deepcopy DataParallel DistributedDataParallel FullyShardedDataParallel script trace trace_module FSDP DDP "
    "optimize_for_inference freeze unwrap_model extract_model_from_parallel"
)
_MODEL_MAKERS = (
    "torchvision.models.",
    "timm.create_model",
    "torch.hub.load",
    "segmentation_models_pytorch.",
    "monai.networks.",
)
_LOADED = (
    "Model",
    "For",
    "Transformer",
    "UNet",
    "Autoencoder",
    "AutoencoderKL",
    "Encoder",
    "ControlNet",
    "Net",
    "Pipeline",
)
_DTYPES = ("fp16", "bf16", "fp32")


class CallTypes(ModuleTypes):
    """Dtypes of calls."""

    # -- dtypes that are named in the code --------------------------------------------------------------------------

    def _dtype_of(self, expr: ast.expr | None) -> str | None:
        """fp16, bf16 or fp32 where an expression is such a dtype: `torch.half`, `x.dtype`, a name for one of them.

        Where the code chooses between float32 and a half type, the half type.
        """
        if expr is None:
            return None
        if isinstance(expr, ast.Attribute) and expr.attr == "dtype":
            held = self._value(expr).names
            if held:
                return held
        if isinstance(expr, ast.Name) and self._env.get(expr.id, UNKNOWN_VALUE).names:
            return self._env[expr.id].names
        found = self.amp.dtypes(expr, self._scope)
        full = {"fp32", "fp64"}
        chosen = found - full or found
        if len(chosen) != 1:
            return None
        dtype = chosen.pop()
        return "fp32" if dtype == "fp64" else dtype if dtype in _DTYPES else None

    def _cast_dtype(self, call: ast.Call) -> str | None:
        """The dtype that `.half()`, `.float()`, `.to(torch.float16)`, `.type(...)`, `.to(other)` asks for."""
        if not isinstance(call.func, ast.Attribute):
            return None
        attr = call.func.attr
        fixed = {"half": "fp16", "float": "fp32", "double": "fp32", "bfloat16": "bf16"}.get(attr)
        if fixed is not None and not call.args:
            return fixed
        if attr not in ("to", "type"):
            return None
        for expr in [given_as(call, "dtype"), *call.args]:
            if expr is None or (isinstance(expr, ast.Constant) and attr == "to"):
                continue
            dtype = self._dtype_of(expr)
            if dtype is not None:
                return dtype
            other = self._value(expr)
            if other.dtype in _DTYPES and not other.module:
                return other.dtype
        return None

    # -- calls ------------------------------------------------------------------------------------------------------

    def _call(self, call: ast.Call) -> Value:
        func = call.func
        args = tuple(self._value(a) for a in call.args) + tuple(self._value(k.value) for k in call.keywords)
        scope, region = self._scope, self._region
        name = self.symbols.qual(func, scope)
        base = own = UNKNOWN_VALUE  # what a method is called on, and what is called
        if name is None and isinstance(func, ast.Attribute):
            base = self._value(func.value)
            known = self._method(call, func, base, args)
            if known is not None:
                return known
            own = self._attribute_of(func, base)
        elif name is None and not (isinstance(func, ast.Name) and func.id == "super"):
            own = self._value(func)
        if name is not None:
            result = self._torch_function(call, name, args)
            self._note(call, name, args, result)
            return result
        if isinstance(func, ast.Name) and func.id == "map" and len(args) > 1:  # `a, p, n = map(net, (a, p, n))`
            return self._unknown_call(call, call.args[0], UNKNOWN_VALUE, args[0], args[1:])
        if isinstance(func, ast.Name) and func.id in _KEEP_ITEMS and args and not self._bound_here(func.id):
            return args[-1] if func.id == "filter" else args[0]
        loss = loss_name(self.symbols, func, scope)
        local = self._local(call, args, base)
        if local is None and loss is not None:
            local = self._module_call(call, own, args)
        if loss is not None:
            result = FP32 if region is not None and (region.half or region.wide) else (local or UNKNOWN_VALUE)
            self._note(call, f"loss:{loss[0]}", args, result)
            return result
        if local is None:
            local = self._construct(call, args)
        wrapped = self._wrapped.get(dotted(func) or "") if self._wrapped else None
        if wrapped is not None:
            self._region = wrapped
            local = local or self._module_call(call, own, args) or self._likely_model(call, own, args)
            local = local or self._unknown_call(call, func, base, own, args)
            self._region = region
        if local is None:
            local = self._module_call(call, own, args)
        if local is not None:
            return local
        result = self._likely_model(call, own, args) or self._unknown_call(call, func, base, own, args)
        self._note(call, "call", args, result)
        return result

    def _likely_model(self, call: ast.Call, own: Value, args: tuple[Value, ...]) -> Value | None:
        """A model that the function is handed: the one network of the file that nothing else makes."""
        leaf = last_name(call.func)
        if not self.symbols.classes or leaf[:1].isupper() or not self._acts_as_model(leaf) or own.made is not None:
            return None
        cls = self.models.of(call.func, self._scope, call)
        forward = self._method_of(cls, "forward") if cls is not None else None
        if forward is None:
            return None
        result = self._run(forward, args[: len(call.args)], call.keywords, args[len(call.args) :], own)
        return result if result.dtype is not None else None

    def _bound_here(self, name: str) -> bool:
        return name in self.symbols.functions or name in self.symbols.classes

    def _method(self, call: ast.Call, func: ast.Attribute, base: Value, args: tuple[Value, ...]) -> Value | None:
        """A method of a tensor or module value; None where the receiver is to be called like a function."""
        attr = func.attr
        dtype = self._cast_dtype(call)
        if dtype is not None:
            return self._cast(call, func, attr, base, dtype)
        if attr in _SAME:
            if base is UNKNOWN_VALUE and attr in ("cuda", "to", "train") and _looks_constructed(func.value):
                return MODULE
            if attr == "to" and base.half and not base.module and _names_a_dtype(call):
                return UNKNOWN_VALUE
            return replace(base, module=True) if attr == "eval" and not call.args and base.dtype != "other" else base
        if attr == "type_as" and call.args:
            return args[0]
        if attr in ("parameters", "named_parameters") and (base.module or base.half):
            return Value(base.dtype, base.sure, base.via, module=True)  # only a module has them
        if attr in ("prepare", "setup") and self.amp.framework.kind(func.value, self._scope):
            return Value(items=args) if len(args) > 1 else args[0] if args else UNKNOWN_VALUE
        if attr in ("register_buffer", "register_parameter") and len(call.args) > 1:
            registered = self.symbols.const(call.args[0], self._scope)
            if isinstance(registered, str):
                self._keep(registered, args[1])
            return OTHER
        if attr == "backward":
            self._note(call, ".backward", (base,), OTHER)
        if attr in NOT_TENSORS:
            layer = dotted(func.value) == "self" and self.symbols.bindings(f"self.{attr}", self._scope)
            return None if layer else OTHER  # `self.size = nn.Conv2d(...)`
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

    def _cast(self, call: ast.Call, func: ast.Attribute, attr: str, base: Value, dtype: str) -> Value:
        cls = self.symbols.instance_class(func.value, self._scope)
        if dtype == "fp16":
            found = self.symbols.classes_in(func.value, self._scope)
            if not found and self._acts_as_model(last_name(strip_module_calls(func.value))):
                likely = self.models.of(strip_module_calls(func.value), self._scope)
                made_of = ast.Call(ast.Name(likely.name, ast.Load()), [], []) if likely is not None else None
                found = self.symbols.classes_in(made_of, self._scope) if made_of is not None else []
            for made in found:
                self.half_modules.setdefault(made.name, call)
            self.half_calls += [(r, call) for r in self.symbols.resolve(strip_module_calls(func.value), self._scope)]
        is_module = base.module or cls is not None or (base.dtype is None and self._is_model(func.value))
        result = Value(dtype, True, call, module=is_module, made=base.made if is_module else None)
        self._note(call, f".{attr}", (base,), result)
        return result

    def _torch_function(self, call: ast.Call, name: str, args: tuple[Value, ...]) -> Value:
        leaf = name.rpartition(".")[2]
        if leaf == "from_pretrained":
            dtype = self._dtype_of(given_as(call, "torch_dtype", "dtype"))
            if dtype in ("fp16", "bf16"):
                return Value(dtype, True, call, module=True)
            return MODULE if any(word in name.rpartition(".")[0].rpartition(".")[2] for word in _LOADED) else OTHER
        if name.startswith(_MODEL_MAKERS):
            return MODULE
        if leaf in _KEEP_MODULE and args:
            return args[0]
        if leaf in ("set_default_dtype", "set_default_tensor_type") and call.args:
            default = self._dtype_of(call.args[0])
            self._default = Value(default, True, call) if default is not None else FP32
        if not name.startswith("torch."):
            return UNKNOWN_VALUE if self._region is None else self._unknown_result(call, name)
        if leaf in FUNCTION_LOSSES:
            if self._region is not None and (self._region.half or self._region.wide):
                return FP32
            return promote(args[0], args[1]) if len(args) > 1 else UNKNOWN_VALUE
        asked = self._dtype_of(given_as(call, "dtype"))
        if leaf in NEVER_CAST:
            if asked is not None:
                return Value(asked, True, call)
            unknown = given_as(call, "dtype") is not None or leaf in ("arange", "as_tensor")
            return UNKNOWN_VALUE if unknown else self._new_tensor(leaf, args)
        if asked is not None:
            return Value(asked, True, call)
        if name in ("torch.nn.Parameter", "torch.nn.parameter.Parameter"):
            return args[0].tensor if args else FP32
        if leaf == "load" or name.startswith(("torch.optim", "torch.utils", "torch.distributed")):
            return OTHER
        if name.startswith("torch.nn.") and leaf[:1].isupper():
            return replace(MODULE, made=Ref(call, self._scope))
        return self._op(call, leaf, args)

    def _new_tensor(self, leaf: str, args: tuple[Value, ...]) -> Value:
        """`torch.tensor(1e-8)` is float32, but a tensor without dimensions promotes no other: like a number."""
        if leaf == "tensor" and args and args[0].dtype == "scalar" and not args[0].items:
            return SCALAR
        return self._default

    def _op(self, call: ast.Call, leaf: str, args: tuple[Value, ...]) -> Value:
        region = self._region
        if leaf in LOWER:
            return self._lower(call, args)
        if args and args[0].dtype == "other" and leaf in _KEEP_INTEGERS:
            return OTHER
        if region is not None and (region.half or region.wide) and region.cuda and leaf in FP32_CUDA:
            return Value("fp32", True, bounded=leaf in ("softmax", "normalize", "log_softmax"))
        if leaf in _PROMOTING:
            parts = [i for a in args for i in (a.items or (a,))]
            result = parts[0].tensor if parts else UNKNOWN_VALUE
            for part in parts[1:]:
                result = promote(result, part)
            return result
        first = args[0] if args else UNKNOWN_VALUE
        if first.items and (first.half or first.dtype is None):
            first = join(first.items)
        if (first.half or first.dtype in ("fp32", "scalar")) and not first.module:
            return replace(first.tensor, bounded=leaf in ("sigmoid", "softmax"))
        return UNKNOWN_VALUE

    # -- functions and classes of this file ---------------------------------------------------------------------------

    def _local(self, call: ast.Call, args: tuple[Value, ...], own: Value) -> Value | None:
        function = self.symbols.local_function(call.func, self._scope)
        functions = [function] if function is not None else self._held_functions(call.func)
        if function is not None and isinstance(call.func, ast.Attribute) and last_name(call.func.value) == "self":
            functions = run_by_self(self.symbols, function)
        results = [self._run(f, args[: len(call.args)], call.keywords, args[len(call.args) :], own) for f in functions]
        return join(results) if results else None

    def _held_functions(self, func: ast.expr) -> list[Scope]:
        """Functions of this file that a name holds: `self.crit = dice`, `LOSSES[cfg["loss"]]`, `for w, f in TERMS`."""
        found: list[Scope] = []
        for ref in [*self.symbols.resolve(func, self._scope), *looped(self.symbols, func, self._scope)]:
            choices = [ref]
            if isinstance(ref.expr, ast.Subscript):  # any of the table, where the key is not known
                tables = self.symbols.resolve(ref.expr.value, ref.scope)
                choices = [Ref(v, t.scope) for t in tables if isinstance(t.expr, ast.Dict) for v in t.expr.values]
                found += self.symbols.registries.functions(ref.expr, ref.scope)
            for choice in choices[:8]:
                if isinstance(choice.expr, ast.Lambda):
                    found.append(self.symbols.scope(choice.expr.body))
                    continue
                function = (
                    self.symbols.local_function(choice.expr, choice.scope)
                    if isinstance(choice.expr, ast.Name) and choice.expr is not func
                    else None
                )
                if function is not None and function not in found:
                    found.append(function)
        return found

    def _construct(self, call: ast.Call, args: tuple[Value, ...]) -> Value | None:
        """An instance of a class of this file: its attributes are those that `__init__` sets."""
        cls = self.symbols.classes.get(last_name(call.func)) if isinstance(call.func, ast.Name) else None
        if cls is None:
            return None
        function = self._method_of(cls, "__init__")
        if function is not None:
            self._run(function, args[: len(call.args)], call.keywords, args[len(call.args) :], UNKNOWN_VALUE)
        elif call.keywords and self._method_of(cls, "forward") is None:  # a dataclass, or a named tuple
            held = [a for a in args if a.dtype not in ("scalar", "other")]
            return held[0].tensor if held and all(a.half and a.dtype == held[0].dtype for a in held) else OTHER
        is_module = self._method_of(cls, "forward") is not None
        return replace(MODULE if is_module else OTHER, made=Ref(call, self._scope))


def _names_a_dtype(call: ast.Call) -> bool:
    """`x.to(dtype)`, of a dtype that the file does not tell."""
    given = given_as(call, "dtype")
    return given is not None or any("dtype" in last_name(a) for a in call.args)


def _looks_constructed(expr: ast.expr) -> bool:
    """`Disc()` of `Disc().cuda()`: of a class that is not shown."""
    made = strip_module_calls(expr)
    return isinstance(made, ast.Call) and last_name(made.func)[:1].isupper()
