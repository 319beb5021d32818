"""Which modules an optimiser trains, and whether their parameters were made float16 before it got them.

The dtype walk follows values in statement order inside one function. This follows modules: through attributes, helper
functions, lists of parameter groups, loops over `parameters()`, `apply` and the constructors of the file's own classes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.adapters import frozen_in_chain, frozen_modules, halved_adapters
from deploychain.audit.astnames import Ref, Scope, argument_for, dotted, keyword, last_name, returns, strip_module_calls
from deploychain.audit.branches import taken
from deploychain.audit.context import Context
from deploychain.audit.tree import walk

_CASTS = frozenset({"half", "float", "double", "bfloat16", "to", "type"})
_FIXED = {"half": "fp16", "float": "fp32", "double": "fp32", "bfloat16": "bf16"}
_OPTIMIZER = re.compile(
    r"^(\w*(Adam|AdamW|SGD|RMSprop|Adagrad|Lion|Adafactor|Lamb|LAMB|Adan|Prodigy)\w*|create_optimizer\w*)$"
)
_ANY_OPTIMIZER = re.compile(r"\boptim\b|Adam|SGD|RMSprop|Lion|Adafactor|create_optimizer|Lamb|LAMB|Adan|Prodigy")
_PARTS = frozenset({"modules", "named_modules", "children", "named_children"})
_OWN_MASTERS = ("apex", "deepspeed", "colossalai", "fairscale", "fairseq")  # they keep float32 copies
_WRAPPERS = frozenset({"compile", "DataParallel", "DistributedDataParallel", "DDP", "FSDP", "FullyShardedDataParallel"})
_GROWN = re.compile(r"get_peft_model|add_adapter|LoraConfig|inject_adapter|\blora\b|PeftModel")


def optimizers(ctx: Context) -> Iterator[ast.Call]:
    """Constructions of optimisers, of torch and of packages that leave the parameters as they are."""
    if not ctx.says(_ANY_OPTIMIZER):
        return
    for call in ctx.symbols.calls:
        name = ctx.symbols.qual(call.func) or ""
        leaf = name.rpartition(".")[2]
        if name.startswith("torch.optim."):
            if ".lr_scheduler" not in name and ".swa_utils" not in name and leaf[:1].isupper():
                yield call
        elif _OPTIMIZER.match(leaf) and not name.startswith(_OWN_MASTERS) and "." in name:
            yield call


def trained_dtype(ctx: Context, optimizer: ast.Call) -> tuple[str, ast.AST] | None:
    """("fp16" or "fp32", what made them so) of the parameters that an optimiser gets; None where it is not clear."""
    finder = _Finder(ctx, optimizer)
    scope = ctx.symbols.scope(optimizer)
    given = [*optimizer.args, *(k.value for k in optimizer.keywords if k.arg in ("params", "model", None))]
    whole = last_name(optimizer.func).startswith("create_optimizer")
    modules = finder.modules(given, scope, whole)
    if "requires_grad" in ctx.text or ctx.says(_GROWN):
        for text in dict.fromkeys(dotted(strip_module_calls(m.expr)) for m in modules):
            cast = halved_adapters(ctx, optimizer, text) if text is not None else None
            if cast is not None:
                return "fp16", cast
    if ctx.says(_GROWN):
        return None  # what is trained was added to a frozen half model
    found = [finder.dtype(ref) for ref in modules]
    if not modules:
        found = [finder.parameter(e, scope) for a in given for e in (a.elts if isinstance(a, ast.List) else [a])]
    return next((f for f in found if f is not None and f[0] == "fp16"), next((f for f in found if f is not None), None))


class _Finder:
    """The search for one optimiser."""

    def __init__(self, ctx: Context, optimizer: ast.Call) -> None:
        self.ctx = ctx
        self.symbols = ctx.symbols
        self.places = self._places(optimizer)

    # -- what is trained ----------------------------------------------------------------------------------------

    def modules(self, exprs: list[ast.expr], scope: Scope, whole: bool, depth: int = 4) -> list[Ref]:
        found: list[Ref] = []
        seen: set[int] = set()
        queue = [(e, scope, depth) for e in exprs]
        while queue:
            expr, where, left = queue.pop()
            if id(expr) in seen or left == 0:
                continue
            seen.add(id(expr))
            if whole and isinstance(expr, ast.Name | ast.Attribute):
                found.append(Ref(expr, where))
            copied = _copied(expr)
            for node in walk(expr):
                if node in copied:
                    continue
                if isinstance(node, ast.Call):
                    if last_name(node.func) in ("parameters", "named_parameters") and isinstance(
                        node.func, ast.Attribute
                    ):
                        found += self._module(node.func.value, where)
                    function = self.symbols.local_function(node.func, where)
                    if function is not None:
                        queue += [(r, function, left - 1) for r in returns(function)]
                elif isinstance(node, ast.Name | ast.Attribute) and not whole:
                    queue += [(e, s, left - 1) for e, s in self._held(node, where)]
        return found

    def _module(self, expr: ast.expr, scope: Scope) -> list[Ref]:
        if isinstance(expr, ast.Name) and expr.id == "self":
            cls = self.symbols.class_of(scope)
            names = [
                t for t in (cls.bindings if cls is not None else ()) if t.startswith("self.") and t.count(".") == 1
            ]
            return [Ref(ast.Attribute(expr, t.removeprefix("self."), ast.Load()), scope) for t in names]
        for binding in self.symbols.bindings(dotted(expr) or "", scope):
            if binding.loop and isinstance(binding.value, ast.Tuple | ast.List):
                return [Ref(e, binding.scope) for e in binding.value.elts]
            if binding.loop and isinstance(binding.value, ast.Call) and last_name(binding.value.func) in _PARTS:
                whole = binding.value.func
                return [Ref(whole.value, binding.scope)] if isinstance(whole, ast.Attribute) else []
        return [Ref(expr, scope)]

    def _held(self, node: ast.expr, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
        """What a list of parameters or groups was made of."""
        text = dotted(node)
        if text is None:
            return
        for binding in self.symbols.bindings(text, scope):
            if binding.value is not None:
                yield binding.value, binding.scope
        for call, where in self.ctx.calls_named("append", "extend"):
            holder = call.func.value if isinstance(call.func, ast.Attribute) else call
            if where is scope and call.args and any(dotted(n) == text for n in walk(holder)):
                yield call.args[0], where
        function = self.symbols.parameter_scope(text, scope)
        for site in self.symbols.call_sites(function)[:4] if function is not None else ():
            for argument in [*site.args, *(k.value for k in site.keywords)]:
                if any(isinstance(n, ast.Attribute) and n.attr.endswith("parameters") for n in walk(argument)):
                    yield argument, self.symbols.scope(site)

    # -- its dtype ----------------------------------------------------------------------------------------------

    def dtype(self, module: Ref) -> tuple[str, ast.AST] | None:
        """The dtype of this module's parameters when the optimiser is made, and what made them so."""
        text = dotted(strip_module_calls(module.expr))
        identity = self._identity(module.expr, module.scope)
        last: tuple[int, str, ast.AST] | None = None
        refs = self.symbols.resolve(module.expr, module.scope)
        for ref in sorted(refs, key=lambda r: getattr(r.expr, "lineno", 0)):
            made, node = self._constructed(ref)
            runs = taken(self.ctx.amp, ref.expr) if made is not None and ref.scope is not module.scope else True
            if runs is None:
                if made == "fp32":
                    return None
            elif made is not None and not runs:
                continue
            elif made is not None:
                last = (0, made, node)
            elif last is not None and node is not ref.expr:
                return None
        if identity is not None and text is not None:
            if self._frozen(identity):
                return None
            names = {identity, *self._inside(text, module.scope), *self._holders(module)}
            for node, dtype, line in self._changes(names):
                runs = taken(self.ctx.amp, node)
                if runs is None and dtype == "fp32":
                    return None
                if runs and (last is None or line >= last[0]):
                    last = (line, dtype, node)
        if last is not None:
            return last[1], last[2]
        if isinstance(module.expr, ast.Attribute) and text and not self.symbols.bindings(text, module.scope):
            return self.dtype(Ref(module.expr.value, module.scope))  # `net.head` of a half `net`
        return None

    def _holders(self, module: Ref) -> Iterator[tuple[int, str]]:
        """`model` of `model.head = nn.Linear(...)`: what is done to it afterwards is done to the head."""
        if isinstance(module.expr, ast.Attribute) and isinstance(module.expr.value, ast.Name):
            bound = self.symbols.bindings(dotted(module.expr) or "", module.scope)
            held = self._identity(module.expr.value, module.scope) if bound and module.expr.value.id != "self" else None
            if held is not None:
                yield held

    def _inside(self, text: str, scope: Scope, depth: int = 3) -> Iterator[tuple[int, str]]:
        """What a module is called in the functions of the file that made it: `net = prepare(Net())`."""
        caller = self.symbols.parameter_scope(text, scope)
        if caller is not None and depth:
            for site in self.symbols.call_sites(caller)[:4]:
                given = argument_for(site, caller, text)
                name = dotted(strip_module_calls(given)) if given is not None else None
                yield from self._inside(name, self.symbols.scope(site), depth - 1) if name is not None else ()
        for binding in self.symbols.bindings(text, scope):
            made, place = binding.value, binding.place
            function = self.symbols.local_function(made.func, binding.scope) if isinstance(made, ast.Call) else None
            for value in returns(function) if function is not None else ():
                parts = value.elts if isinstance(value, ast.Tuple) else []  # `model, tok = load(name)`
                one = value if place is None else parts[place] if place < len(parts) else None
                held = self._identity(one, function) if one is not None and function is not None else None
                if held is not None:
                    yield held

    def _constructed(self, ref: Ref, depth: int = 3) -> tuple[str | None, ast.AST]:
        """The dtype that a construction gives, as in `Net().to(device).half()`."""
        expr = ref.expr
        if frozen_in_chain(expr):
            return "fp32", expr  # not what is trained
        while isinstance(expr, ast.Call):
            dtype = self._cast(expr, ref.scope)
            if dtype is not None:
                return dtype, expr
            if last_name(expr.func) in _WRAPPERS and expr.args:
                inner = expr.args[0]
                refs = [r for r in self.symbols.resolve(inner, ref.scope) if r.expr is not ref.expr]
                return self._constructed(refs[0], depth - 1) if len(refs) == 1 and depth else (None, expr)
            if last_name(expr.func) == "from_pretrained":
                given = keyword(expr, "torch_dtype", "dtype")
                return (self.ctx.amp.dtype(given, ref.scope) if given is not None else None), expr
            if isinstance(expr.func, ast.Attribute) and last_name(expr.func) in (
                "to",
                "cuda",
                "train",
                "eval",
                "cpu",
            ):
                expr = expr.func.value
            else:
                made = next((m for c in self._classes(expr, ref.scope) if (m := self._half_inside(c))), None)
                if made is not None:
                    return "fp16", made
                found = [  # `BUILDERS[name]().cuda()`
                    self._constructed(r, depth - 1)
                    for r in (self.symbols.resolve(expr, ref.scope) if depth and expr is not ref.expr else ())
                    if r.expr is not expr and taken(self.ctx.amp, r.expr) is not False
                ]
                return found[0] if found and all(f[0] == found[0][0] for f in found) else (None, expr)
        if expr is not ref.expr and isinstance(expr, ast.Name) and depth:  # `return model.to(device)`
            refs = self.symbols.resolve(expr, ref.scope)
            return self._constructed(refs[0], depth - 1) if len(refs) == 1 else (None, expr)
        return None, expr

    def _classes(self, call: ast.Call, scope: Scope) -> list[Scope]:
        """The classes of this file that a module is made of; only its own where parts of it may be frozen."""
        cls = self.symbols.classes.get(last_name(call.func))
        if "float16" not in self.ctx.text and "half" not in self.ctx.text:
            return []
        container = (self.symbols.qual(call.func, scope) or "").startswith("torch.nn.")
        if (cls is None and not container) or "requires_grad" in self.ctx.text or "no_grad" in self.ctx.text:
            return [cls] if cls is not None else []
        return self.symbols.classes_in(call, scope)[:8]

    def _half_inside(self, cls: Scope) -> ast.AST | None:
        """A parameter or layer that a class of this file makes in float16 in its constructor."""
        for call in self.symbols.calls:
            scope = self.symbols.scope(call)
            if self.symbols.class_of(scope) is not cls or scope.name not in ("__init__", "reset_parameters"):
                continue
            name = self.symbols.qual(call.func) or ""
            given = keyword(call, "dtype")
            layer = name.startswith("torch.nn.") and name.rpartition(".")[2][:1].isupper()
            if layer and given is not None and self.ctx.amp.dtype(given, scope) == "fp16":
                return call
            parameter = name in ("torch.nn.Parameter", "torch.nn.parameter.Parameter") and bool(call.args)
            if parameter and self._half_parameter(call, scope):
                return call
        return None

    def _half_parameter(self, call: ast.Call, scope: Scope) -> bool:
        """`nn.Parameter(torch.randn(..., dtype=torch.float16) * 0.02)`"""
        inner = call.args[0]
        while isinstance(inner, ast.BinOp):
            inner = inner.left if isinstance(inner.left, ast.Call | ast.BinOp) else inner.right
        if keyword(call, "requires_grad") is not None or not isinstance(inner, ast.Call):
            return False
        return (self._cast(inner, scope) or self.ctx.amp.dtype(keyword(inner, "dtype"), scope)) == "fp16"

    def parameter(self, expr: ast.expr, scope: Scope) -> tuple[str, ast.AST] | None:
        """A single nn.Parameter that an optimiser gets, `[tuner.prompt]`."""
        if dotted(expr) is None:
            return None
        for ref in self.symbols.resolve(expr, scope):
            made = ref.expr if isinstance(ref.expr, ast.Call) and last_name(ref.expr.func) == "Parameter" else None
            if made is not None and made.args and self._half_parameter(made, ref.scope):
                return "fp16", made
        return None

    def _cast(self, call: ast.Call, scope: Scope) -> str | None:
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in _CASTS:
            return None
        if call.func.attr in _FIXED:
            return _FIXED[call.func.attr] if not call.args else None
        for expr in [keyword(call, "dtype"), *call.args]:
            if expr is not None and not isinstance(expr, ast.Constant):
                dtype = self.ctx.amp.dtype(expr, scope)
                if dtype in ("fp16", "bf16", "fp32", "fp64"):
                    return "fp32" if dtype == "fp64" else dtype
        return None

    def _changes(self, names: set[tuple[int, str]]) -> Iterator[tuple[ast.AST, str, int]]:
        """(node, dtype, line) of what changes a module's parameters in place before the optimiser is made."""
        for call in self.symbols.calls:
            if not isinstance(call.func, ast.Attribute):
                continue
            scope = self.symbols.scope(call)
            dtype: str | None = None
            module: ast.expr | None = None
            if call.func.attr in _CASTS:
                dtype, module = self._cast(call, scope), strip_module_calls(call.func.value)
            elif call.func.attr == "apply" and call.args:
                dtype, module = self._applied(call.args[0], scope), call.func.value
            elif call.func.attr in ("parameters", "named_parameters"):
                dtype, module = self._loop_over(call), call.func.value
            if dtype is None or module is None or dotted(module) is None or self._cast_again(call):
                continue
            if any(self._identity(r.expr, r.scope) in names for r in self._module(module, scope)):
                line = self._before(call, scope)
                if line is not None:
                    yield call, dtype, line

    def _cast_again(self, call: ast.Call) -> bool:
        """The first cast of `net.half().float()`: the last one counts."""
        parent = self.symbols.parent.get(call)
        while isinstance(parent, ast.Attribute) and isinstance(outer := self.symbols.parent.get(parent), ast.Call):
            if self._cast(outer, self.symbols.scope(outer)) is not None:
                return True
            parent = self.symbols.parent.get(outer)
        return False

    def _applied(self, function: ast.expr, scope: Scope) -> str | None:
        """`model.apply(fn)`: what fn does to the parameters of each module."""
        local = self.symbols.local_function(function, scope)
        node: ast.AST | None = (
            local.node if local is not None else function if isinstance(function, ast.Lambda) else None
        )
        found = (
            {self._cast(c, self.symbols.scope(c)) for c in walk(node) if isinstance(c, ast.Call)}
            if node is not None
            else set()
        )
        return "fp16" if "fp16" in found and "fp32" not in found else None

    def _loop_over(self, call: ast.Call) -> str | None:
        """`for p in model.parameters(): p.data = p.data.half()`"""
        parent = self.symbols.parent.get(call)
        if not isinstance(parent, ast.For) or parent.iter is not call:
            return None
        names = {n.id for n in walk(parent.target) if isinstance(n, ast.Name)}
        for node in walk(parent):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                target = dotted(node.targets[0]) or ""
                if target.removesuffix(".data") in names and target.endswith(".data"):
                    return self._cast(node.value, self.symbols.scope(node))
        return None

    def _frozen(self, identity: tuple[int, str]) -> bool:
        return any(self._identity(module, scope) == identity for module, scope in frozen_modules(self.ctx))

    def _identity(self, expr: ast.expr, scope: Scope) -> tuple[int, str] | None:
        """`Symbols.identity`; a parameter that is given a new object has its own."""
        found = self.symbols.identity(expr, scope)
        text = dotted(strip_module_calls(expr))
        function = self.symbols.parameter_scope(text, scope) if found is None and text is not None else None
        return (id(function), text) if function is not None and text is not None else found

    # -- order ----------------------------------------------------------------------------------------------------

    def _places(self, node: ast.expr, depth: int = 4) -> list[tuple[Scope, int]]:
        """Where a node is, and where the functions that it is in are called from."""
        scope = self.symbols.scope(node)
        found = [(scope, node.lineno)]
        if depth and isinstance(scope.node, ast.FunctionDef | ast.AsyncFunctionDef):
            sites = list(self.symbols.call_sites(scope))
            if not sites and scope.owner is not None:  # `for cb in self.callbacks: cb.on_start(self)`
                sites = [c for c in self.symbols.calls_ending(scope.name) if isinstance(c.func, ast.Attribute)]
            if scope.name == "__init__" and scope.owner is not None:
                owner = scope.owner.name
                sites += [c for c in self.symbols.calls if last_name(c.func) == owner]
            for site in sites[:4]:
                found += self._places(site, depth - 1)
        return found

    def _before(self, node: ast.expr, scope: Scope) -> int | None:
        """A line to compare by where the node runs before the optimiser is made; None where it does not."""
        for place, line in self._places(node):
            for other, limit in self.places:
                if place is other:
                    return line if line < limit else None
                if place.name in ("__init__", "setup") and place.owner is not None and place.owner is other.owner:
                    return line
                if place is self.symbols.module and line < limit:
                    return line
        return None


def _copied(expr: ast.expr) -> set[ast.AST]:
    """Comprehensions that make new tensors of parameters: `[p.detach().clone().float() for p in m.parameters()]`."""
    return {
        inner
        for node in walk(expr)
        if isinstance(node, ast.ListComp | ast.GeneratorExp)
        and any(isinstance(n, ast.Attribute) and n.attr in ("float", "clone", "detach") for n in walk(node.elt))
        for inner in walk(node)
    }
