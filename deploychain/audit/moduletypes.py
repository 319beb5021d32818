"""What the modules of a file return: its own classes, layers of torch, containers, and modules that are not shown.

Part of the dtype walk: `calltypes` asks here for calls that run a module.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from deploychain.audit.amp import Amp
from deploychain.audit.astnames import Ref, Scope, dotted, last_name, strip_module_calls
from deploychain.audit.frameworks import Region
from deploychain.audit.likely_models import LikelyModels
from deploychain.audit.symbols import Symbols
from deploychain.audit.values import (
    FP32,
    FP32_LAYERS,
    LOWER_LAYERS,
    NO_FORWARD,
    OFF,
    PASS_LAYERS,
    PYTHON,
    UNKNOWN_VALUE,
    Seen,
    Value,
    in_region,
    is_pipeline,
    join,
    part_of_a_model,
    runs_a_model,
    words,
)

_CONTAINERS = frozenset({"torch.nn.ModuleList", "torch.nn.ModuleDict"})
_ONLY_MODULES_HAVE = words("parameters named_parameters eval named_modules modules")
_BOUNDED = words("Sigmoid Softmax LogSoftmax Tanh Softmin")
# Methods of a model that end in features although their name begins like that of a setter or getter.
_FEATURES = re.compile(r"features?$|embed(ding)?s?$|logits$|hidden_states?$")
_INTEGERS = re.compile(r"(^|_)(ids?|idx|ind(ex|ices)|tokens?|mask|labels?|targets?|lengths?|t|timesteps?)$")


class ModuleTypes:
    """The state of the walk, and the results of modules."""

    def __init__(self, symbols: Symbols, amp: Amp) -> None:
        self.symbols = symbols
        self.amp = amp
        self.models = LikelyModels(symbols)
        self.seen: list[Seen] = []
        self.half_modules: dict[str, ast.AST] = {}  # class of this file -> the call that made an instance half
        self.half_calls: list[tuple[Ref, ast.AST]] = []  # the construction of a module, and what made it half
        self._active: list[Scope] = []
        self._memo: dict[tuple[object, ...], Value] = {}
        self._region: Region | None = None
        self._env: dict[str, Value] = {}
        self._frames: dict[int, dict[str, Value]] = {}  # names of the functions that are being run, by scope
        self._kept: dict[tuple[int, str], list[Value]] = {}  # class and attribute -> what instances were given
        self._wrapped: dict[str, Region] = {}  # name -> region that its forward was wrapped in
        self._default = FP32  # of new tensors
        self._scope: Scope = symbols.module
        self._no_grad = False
        self._returned: list[Value] = []

    def _enter(self, function: Scope, args: dict[str, Value], region: Region | None) -> Value:
        """Walk a function of this file with these arguments; its returned value."""
        raise NotImplementedError

    def _value(self, e: ast.expr) -> Value:
        raise NotImplementedError

    def _attribute_of(self, e: ast.Attribute, base: Value) -> Value:
        """The attribute of something with this value."""
        raise NotImplementedError

    def _note(self, node: ast.expr, name: str, args: tuple[Value, ...], result: Value) -> None:
        root = self._active[0] if self._active else None
        self.seen.append(Seen(node, name, args, result, self._region, self._scope, self._no_grad, root))

    # -- what is a module -----------------------------------------------------------------------------------------

    @cached_property
    def _module_names(self) -> frozenset[str]:
        """Last names of what is used in this file as only a module can be: `net.parameters()`, `G.eval()`."""
        found = set()
        for call in self.symbols.calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr in _ONLY_MODULES_HAVE and not call.args:
                text = dotted(strip_module_calls(call.func.value))
                if text is not None:
                    found.add(text.rpartition(".")[2])
        return frozenset(found - {"self"})

    def _acts_as_model(self, leaf: str) -> bool:
        return leaf in self._module_names or runs_a_model(leaf)

    def _is_model(self, expr: ast.expr) -> bool:
        chain = expr
        while isinstance(chain, ast.Call) and isinstance(chain.func, ast.Attribute):
            if chain.func.attr in ("eval", "train", "requires_grad_") and chain.func.attr != "requires_grad_":
                return True
            chain = chain.func.value
        made = strip_module_calls(expr)
        if isinstance(made, ast.Call):
            name = self.symbols.qual(made.func, self._scope) or ""
            made_by = ("torch.nn.", "torchvision.models.", "timm.create_model", "torch.hub.load")
            return name.startswith(made_by) and not name.startswith("torch.nn.functional.")
        text = dotted(made)
        return text is not None and self._acts_as_model(text.rpartition(".")[2])

    def _method_of(self, cls: Scope, *names: str) -> Scope | None:
        for base in self.symbols.bases(cls):
            for name in names:
                for candidate in self.symbols.functions.get(name, ()):
                    if candidate.owner is base:
                        return candidate
        return None

    # -- attributes -----------------------------------------------------------------------------------------------

    def _keep(self, attribute: str, value: Value) -> None:
        """Remember what `self.attribute` was given, for the other methods of the class."""
        cls = self.symbols.class_of(self._scope)
        if cls is not None and (self._region is None or not self._region.half):
            kept = self._kept.setdefault((id(cls), attribute), [])
            if value not in kept and len(kept) < 8:
                kept.append(value)

    def _own_attribute(self, attribute: str, own: Value) -> Value:
        """`self.attribute`, where `own` is what is known of self."""
        cls = self.symbols.class_of(self._scope)
        kept = join([v for base in self.symbols.bases(cls) for v in self._kept.get((id(base), attribute), ())])
        if not own.half:
            return kept
        if kept.module:
            return replace(kept, dtype=own.dtype, sure=own.sure, via=own.via)
        if attribute in self._tensors(cls):
            return own.tensor  # a parameter or buffer
        bindings = self.symbols.bindings(f"self.{attribute}", self._scope)
        given = any(isinstance(b.value, ast.Name) for b in bindings) and self._acts_as_model(attribute)
        if not bindings or given or any(isinstance(b.value, ast.Call) and _constructs(b.value) for b in bindings):
            return Value(own.dtype, own.sure, own.via, module=True)
        return kept

    def _tensors(self, cls: Scope | None) -> set[str]:
        """Names of the parameters and buffers that a class of this file registers."""
        found = set()
        for base in self.symbols.bases(cls):
            for text, bindings in base.bindings.items():
                if any(isinstance(b.value, ast.Call) and last_name(b.value.func) == "Parameter" for b in bindings):
                    found.add(text.removeprefix("self."))
        for call in self.symbols.calls:
            if last_name(call.func) in ("register_buffer", "register_parameter") and call.args:
                owner = self.symbols.class_of(self.symbols.scope(call))
                if owner is not None and any(owner is base for base in self.symbols.bases(cls)):
                    name = self.symbols.const(call.args[0], self.symbols.scope(call))
                    found |= {name} if isinstance(name, str) else set()
        return found

    # -- running one ----------------------------------------------------------------------------------------------

    def _module_call(self, call: ast.Call, own: Value, args: tuple[Value, ...]) -> Value | None:
        """`module(x)` where the file shows what the module is: one of its classes, a layer of torch, a container."""
        several = isinstance(call.func, ast.Subscript)  # any of the elements may be run
        results: list[Value] = []
        for ref in self._constructions(call.func, own):
            result = self._apply(ref, own, call, args)
            if result is not None:
                results.append(result)
                if not several:
                    break
        return join(results) if results else None

    def _constructions(self, func: ast.expr, own: Value) -> list[Ref]:
        if isinstance(func, ast.Subscript) and not isinstance(func.slice, ast.Constant):
            return self._every_kind(func.value)
        if own.made is not None:
            return [own.made]
        if isinstance(func, ast.Name) and func.id == "self":
            cls = self.symbols.class_of(self._scope)
            return [Ref(ast.Call(ast.Name(cls.name, ast.Load()), [], []), cls)] if cls is not None else []
        if isinstance(func, ast.Call):
            return [Ref(func, self._scope)]
        cls = self.symbols.instance_class(func, self._scope)
        refs = [Ref(strip_module_calls(r.expr), r.scope) for r in self.symbols.resolve(func, self._scope)]
        if cls is not None and not any(isinstance(r.expr, ast.Call) for r in refs):
            return [Ref(ast.Call(ast.Name(cls.name, ast.Load()), [], []), cls)]
        return [r for r in refs if isinstance(r.expr, ast.Call)]

    def _every_kind(self, expr: ast.expr) -> list[Ref]:
        """One module of each class that a list or dictionary of modules holds."""
        found: dict[str, Ref] = {}
        for ref in self.symbols.resolve(expr, self._scope):
            for element in self._elements(ref, 3):
                made = strip_module_calls(element.expr)
                if isinstance(made, ast.Call) and len(found) < 8:
                    found.setdefault(last_name(made.func), Ref(made, element.scope))
        return list(found.values())

    def _element(self, expr: ast.expr) -> Ref | None:
        """One module of a list of modules: of a ModuleList, a list or a tuple, written out or in a comprehension."""
        for ref in self.symbols.resolve(expr, self._scope):
            for element in self._elements(ref, 3):
                made = strip_module_calls(element.expr)
                if isinstance(made, ast.Call):
                    return Ref(made, element.scope)
        return None

    def _elements(self, ref: Ref, depth: int = 6) -> Iterator[Ref]:
        """The modules that a container is made of, in order."""
        e = ref.expr
        if depth <= 0:
            return
        if isinstance(e, ast.List | ast.Tuple | ast.Set):
            for item in e.elts:
                yield from self._elements(ref._replace(expr=item), depth - 1)
            return
        if isinstance(e, ast.Starred):
            yield from self._elements(ref._replace(expr=e.value), depth - 1)
            return
        if isinstance(e, ast.ListComp | ast.GeneratorExp | ast.DictComp):
            held = e.value if isinstance(e, ast.DictComp) else e.elt
            yield from self._elements(ref._replace(expr=held), depth - 1)
            return
        if isinstance(e, ast.Dict):
            for value in e.values:
                yield from self._elements(ref._replace(expr=value), depth - 1)
            return
        if isinstance(e, ast.BinOp):  # [conv] + [norm], [block] * 4
            for side in (e.left, e.right) if isinstance(e.op, ast.Add) else (e.left,):
                yield from self._elements(ref._replace(expr=side), depth - 1)
            return
        if isinstance(e, ast.Name):
            found = [r for r in self.symbols.resolve(e, ref.scope) if r.expr is not e]
            for other in found:
                yield from self._elements(other, depth - 1)
                if isinstance(other.expr, ast.List):
                    yield from self._appended(e.id, other.scope, depth - 1)
            return
        if isinstance(e, ast.Call):
            name = self.symbols.qual(e.func, ref.scope) or ""
            if name == "collections.OrderedDict" or name in _CONTAINERS or name == "torch.nn.Sequential":
                for item in e.args:
                    yield from self._elements(ref._replace(expr=item), depth - 1)
                return
            returned = [r for r in self.symbols.resolve(e, ref.scope) if r.expr is not e]
            if returned:
                yield from self._elements(returned[0], depth - 1)
                return
            yield ref

    def _appended(self, name: str, scope: Scope, depth: int) -> Iterator[Ref]:
        """What is put into a list of layers later: `layers.append(conv)`, `layers += [conv, norm]`."""
        for call in self.symbols.calls:
            if (
                isinstance(call.func, ast.Attribute)
                and call.func.attr in ("append", "extend")
                and call.args
                and dotted(call.func.value) == name
                and self.symbols.scope(call) is scope
            ):
                yield from self._elements(Ref(call.args[0], scope), depth)
        for node in self.symbols.nodes(ast.AugAssign):
            if dotted(node.target) == name and self.symbols.scope(node) is scope:
                yield from self._elements(Ref(node.value, scope), depth)

    def _apply(self, ref: Ref, own: Value, call: ast.Call, args: tuple[Value, ...]) -> Value | None:
        """What the module that is constructed there makes of these arguments."""
        made = strip_module_calls(ref.expr)
        if not isinstance(made, ast.Call):
            return None
        name = self.symbols.qual(made.func, ref.scope)
        if name == "torch.nn.Sequential":
            inputs = args
            for element in list(self._elements(Ref(made, ref.scope)))[:64]:
                inputs = (self._apply(element, own, call, inputs) or UNKNOWN_VALUE,)
            return inputs[0] if inputs else UNKNOWN_VALUE
        if name is not None and name.startswith("torch.nn.") and name not in _CONTAINERS:
            layer = name.rpartition(".")[2]
            result = self._layer_result(layer, own, call, args)
            self._note(call, f"layer:{layer}", args, result)
            return result
        cls = self.symbols.classes.get(last_name(made.func)) if name is None else None
        function = self._method_of(cls, "forward", "__call__") if cls is not None else None
        if function is None:
            return None
        positional = args if len(args) != len(call.args) + len(call.keywords) else args[: len(call.args)]
        given = args[len(positional) :]
        return self._run(function, positional, call.keywords if given else (), given, own)

    def _run(
        self,
        function: Scope,
        positional: Sequence[Value],
        keywords: Sequence[ast.keyword],
        given: Sequence[Value],
        own: Value,
    ) -> Value:
        """Enter a function of this file; `own` is what is known of the object that it is a method of."""
        parameters = list(function.parameters)
        if function.owner is not None and parameters and parameters[0] in ("self", "cls"):
            parameters = parameters[1:]
        values = dict(zip(parameters, positional, strict=False))
        for k, value in zip(keywords, given, strict=True):
            if k.arg is not None:
                values[k.arg] = OFF if _is_false(k.value) else value
        for name in parameters:
            if name not in values and _is_false(self.symbols.default(name, function)):
                values[name] = OFF  # `if half:` is not for this caller
        values = {k: v for k, v in values.items() if v.dtype is not None or v.module}
        region = self._region
        if function.name == "forward" and region is None:
            region = self.amp.framework.ambient(function)
        if own.half and own.module and function.owner is not None:
            values["self"] = Value(own.dtype, own.sure, own.via, module=True)
            if function.name == "forward" and (region is None or not region.half):
                # what a half module is fed with has its dtype, or the first layer would raise
                first = parameters[0] if parameters else ""
                if first and not _INTEGERS.search(first) and first not in values:
                    values[first] = Value(own.dtype, False, own.via)
        result = self._enter(function, values, region)
        if region is not None and region is not self._region and region.framework == "Accelerate" and result.half:
            return FP32  # Accelerate converts what a prepared model returns
        return result

    def _layer_result(self, layer: str, own: Value, call: ast.Call, args: tuple[Value, ...]) -> Value:
        region = self._region
        active = region is not None and (region.half or region.wide)
        bounded = layer in _BOUNDED
        if layer in LOWER_LAYERS:
            return Value(own.dtype, True, call) if own.half and own.module and not active else self._lower(call, args)
        if layer in FP32_LAYERS and active and region is not None and region.cuda:
            return Value("fp32", True, bounded=bounded)
        if layer in ("Embedding", "EmbeddingBag"):
            return own.tensor if own.half and own.module else UNKNOWN_VALUE
        if (layer in PASS_LAYERS or layer in FP32_LAYERS) and args:
            known = args[0].dtype is not None or active or not (own.half and own.module)
            return replace(args[0] if known else own.tensor, bounded=bounded, items=())
        return self._unknown_result(call, layer)

    def _lower(self, node: ast.AST, args: tuple[Value, ...] = ()) -> Value:
        region = self._region
        if region is not None and region.half:
            return Value(in_region(region.dtype), region.enabled is True, node)
        if region is not None and region.wide:
            return FP32
        half = [a for a in args if a.half]
        if half and all(a.half or a.dtype in ("scalar", "other") for a in args):
            return half[0].tensor
        return UNKNOWN_VALUE

    # -- modules that are not shown -------------------------------------------------------------------------------

    def _unknown_call(self, call: ast.Call, func: ast.expr, base: Value, own: Value, args: tuple[Value, ...]) -> Value:
        text = dotted(func) or ""
        leaf = text.rpartition(".")[2]
        region = self._region
        active = region is not None and region.half
        if own.module or own.half:  # what is called is no tensor
            if (is_pipeline(own) and not is_pipeline(base)) or (NO_FORWARD.search(leaf) and not _FEATURES.search(leaf)):
                return UNKNOWN_VALUE
            if own.half and not active:
                return Value(own.dtype, True, own.via)
            return self._unknown_result(call, text, module=True)
        if not active and self._acts_as_model(leaf) and not leaf[:1].isupper():
            half = [a for a in args if a.half and not a.module]
            if half and all(a.half or a.dtype in ("scalar", "other", None) for a in args):
                return Value(half[0].dtype, False, call)  # a float32 module would not take it
        if base.half and not base.module:
            return Value(base.dtype, False, base.via)
        return self._unknown_result(call, text)

    def _unknown_result(self, call: ast.Call, name: str, module: bool = False) -> Value:
        region = self._region
        if region is None or not region.half:
            return UNKNOWN_VALUE
        leaf = name.rpartition(".")[2]
        known = module or leaf in self._module_names
        if not known and (leaf in PYTHON or leaf[:1].isupper() or not (runs_a_model(leaf) or part_of_a_model(name))):
            return UNKNOWN_VALUE
        if region.framework == "accelerate":
            return FP32  # Accelerate converts a prepared model's outputs
        return Value(in_region(region.dtype), False, call)


def _constructs(call: ast.Call) -> bool:
    name = last_name(strip_module_calls(call).func) if isinstance(strip_module_calls(call), ast.Call) else ""  # type: ignore[attr-defined]
    return name[:1].isupper() or name.startswith(
        ("build", "make", "create", "get_", "resnet", "vit", "from_pretrained")
    )


def _is_false(expr: ast.expr | None) -> bool:
    return isinstance(expr, ast.Constant) and expr.value is False
