"""Which expressions are GradScalers, autocast regions, optimisers and schedulers."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from deploychain.audit.astnames import Ref, Scope, dotted, keyword, last_name, leaf
from deploychain.audit.contexts import entered, parameter_given, told
from deploychain.audit.elements import elements
from deploychain.audit.frameworks import Frameworks, Region
from deploychain.audit.symbols import Symbols
from deploychain.audit.tree import walk
from deploychain.audit.values import runs_a_model

PLAIN_SCALERS = frozenset({"torch.cuda.amp.GradScaler", "torch.amp.GradScaler", "torch.cpu.amp.GradScaler"})
AUTOCASTS = frozenset({"torch.autocast", "torch.cuda.amp.autocast", "torch.cpu.amp.autocast"})
_DTYPES = {
    "torch.float16": "fp16",
    "torch.half": "fp16",
    "torch.bfloat16": "bf16",
    "torch.float32": "fp32",
    "torch.float": "fp32",
    "torch.float64": "fp64",
    "torch.double": "fp64",
    "torch.HalfTensor": "fp16",
    "torch.cuda.HalfTensor": "fp16",
    "torch.FloatTensor": "fp32",
    "torch.cuda.FloatTensor": "fp32",
    "jnp.float16": "other",
}
_DTYPE_WORDS = {
    "float16": "fp16",
    "half": "fp16",
    "fp16": "fp16",
    "bfloat16": "bf16",
    "bf16": "bf16",
    "float32": "fp32",
}
_SCALER_NAME = re.compile(r"(^|_)(grad_?)?scaler$|^gradscaler$", re.IGNORECASE)
_OPTIMIZER_NAME = re.compile(r"optim|(^|_)opt(_|$|s$|\d|[a-z]$)", re.IGNORECASE)
_CONFIG_NAME = re.compile(r"conf|cfg|args|param|setting", re.IGNORECASE)
_SCHEDULER_NAME = re.compile(r"sched|(^|_)lr_?s(_|$)|warmup|plateau", re.IGNORECASE)


# Expressions that can stand for an object that was made elsewhere.
_HOLDERS = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.IfExp, ast.BoolOp, ast.NamedExpr, ast.Await)


class Amp:
    """AMP objects of one file."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self._scalers: dict[tuple[int, int], bool] = {}
        self._inside: list[Scope] = []  # context managers that are being looked into: one may call another of its name
        self.scaler_calls = [
            c for c in symbols.calls if symbols.qual(c.func) in PLAIN_SCALERS or self._foreign_scaler(c)
        ]
        self.framework = Frameworks(symbols)
        self._uses = self._collect_scaler_uses()

    # -- scalers ------------------------------------------------------------------------------------------------

    def _foreign_scaler(self, call: ast.Call) -> bool:
        name = self.symbols.qual(call.func)
        return name is not None and name.rpartition(".")[2] in ("GradScaler", "ShardedGradScaler")

    def is_scaler_call(self, expr: ast.expr, scope: Scope) -> bool:
        if not isinstance(expr, ast.Call):
            return False
        name = self.symbols.qual(expr.func, scope)
        return name is not None and name.rpartition(".")[2] in ("GradScaler", "ShardedGradScaler")

    def _collect_scaler_uses(self) -> set[str]:
        """Names that are used as only a GradScaler can be: `x.step(optimizer)`, `x.unscale_(...)`."""
        found = set()
        for call in self.symbols.calls:
            if not isinstance(call.func, ast.Attribute):
                continue
            takes_argument = call.func.attr in ("step", "unscale_", "scale") and bool(call.args)
            if takes_argument or call.func.attr in ("get_scale", "set_growth_interval", "get_growth_interval"):
                text = dotted(call.func.value)
                if text and _SCALER_NAME.search(leaf(text)):
                    found.add(text)
        return found

    def is_scaler(self, expr: ast.expr, scope: Scope) -> bool:
        """Certain or very likely a GradScaler: constructed as one, or named and used as one with unknown origin."""
        if not isinstance(expr, _HOLDERS):
            return False
        key = (id(expr), id(scope))
        if key not in self._scalers:
            self.symbols.kept.append(expr)
            self._scalers[key] = self._is_scaler(expr, scope)
        return self._scalers[key]

    def _is_scaler(self, expr: ast.expr, scope: Scope) -> bool:
        text = dotted(expr)
        if not self.scaler_calls and text not in self._uses:
            return False  # most files make none
        refs = self.symbols.resolve(expr, scope)
        if any(self.is_scaler_call(r.expr, r.scope) for r in refs):
            return True
        if text is None or text not in self._uses:
            return False
        return all(not isinstance(ref.expr, ast.Call) or _asks_for_scaler(ref.expr) for ref in refs)

    def scaler_state(self, expr: ast.expr, scope: Scope) -> bool | None:
        """Whether the scaler is enabled: False only where every construction that is visible says so."""
        states = []
        for ref in self.symbols.resolve(expr, scope):
            if self.is_scaler_call(ref.expr, ref.scope):
                assert isinstance(ref.expr, ast.Call)
                states.append(self.call_enabled(ref.expr, ref.scope))
        if not states:
            return None
        if all(s is False for s in states):
            return False
        return True if all(s is True for s in states) else None

    def call_enabled(self, call: ast.Call, scope: Scope) -> bool | None:
        """The `enabled` argument of a GradScaler(...) or autocast(...) call."""
        value = keyword(call, "enabled")
        name = self.symbols.qual(call.func, scope) or ""
        if value is None:
            if any(k.arg is None for k in call.keywords):
                return None
            index = 5 if name == "torch.amp.GradScaler" else 4
            if name.endswith("GradScaler") and len(call.args) > index:
                value = call.args[index]
            elif name in ("torch.cuda.amp.autocast", "torch.cpu.amp.autocast") and call.args:
                value = call.args[0]
            else:
                return True
        return self.truth(value, scope)

    def truth(self, expr: ast.expr, scope: Scope) -> bool | None:
        """True or False where the code decides it, None where a setting or argument does."""
        value = self.symbols.const(expr, scope)
        if isinstance(value, bool):
            return value
        if isinstance(expr, ast.Compare) and len(expr.ops) == 1:
            left, right = self.dtype(expr.left, scope), self.dtype(expr.comparators[0], scope)
            if (
                left
                and right
                and "?" not in (left, right)
                and isinstance(expr.ops[0], ast.Eq | ast.Is | ast.NotEq | ast.IsNot)
            ):
                same = left == right
                return same if isinstance(expr.ops[0], ast.Eq | ast.Is) else not same
        text = dotted(expr)
        if text is not None:
            bindings = self.symbols.bindings(text, scope)
            if (
                len(bindings) == 1
                and bindings[0].value is not None
                and not bindings[0].loop
                and bindings[0].place is None
            ) and isinstance(bindings[0].value, ast.Compare):
                return self.truth(bindings[0].value, bindings[0].scope)
        return None

    # -- dtypes -------------------------------------------------------------------------------------------------

    def dtype(self, expr: ast.expr | None, scope: Scope) -> str | None:
        """fp16, bf16, fp32, fp64; "?" where it is decided at run time; None where the expression is no dtype."""
        if expr is None:
            return None
        found = self.dtypes(expr, scope)
        return found.pop() if len(found) == 1 else "?"

    def dtypes(self, expr: ast.expr, scope: Scope) -> set[str]:
        """Every dtype that an expression may stand for, "?" among them for what the code does not tell."""
        found: set[str] = set()
        for ref in self.symbols.resolve(expr, scope):
            name = self.symbols.qual(ref.expr, ref.scope)
            if name is not None and name in _DTYPES:
                found.add(_DTYPES[name])
            elif isinstance(ref.expr, ast.Constant) and isinstance(ref.expr.value, str):
                found.add(_DTYPE_WORDS.get(ref.expr.value.removeprefix("torch."), "?"))
            elif isinstance(ref.expr, ast.Subscript):
                found.add(self._dict_dtype(ref.expr.value, ref.expr.slice, ref))
            else:
                found.add(self._named_dtype(ref))
        return found

    def _named_dtype(self, ref: Ref) -> str:
        """The default of a parameter that no call gives."""
        e = ref.expr
        if isinstance(e, ast.Name):
            default = self.symbols.default(e.id, ref.scope)
            if default is not None and not isinstance(default, ast.Name):
                return self.dtype(default, ref.scope.parent or ref.scope) or "?"
        return "?"

    def _dict_dtype(self, table: ast.expr, key: ast.expr, ref: Ref) -> str:
        """`DTYPES[name]` where the table and the name are written in the file."""
        value = self.symbols.const(key, ref.scope)
        known = isinstance(value, str | bool | int)
        found: set[str] = set()
        for held in self.symbols.resolve(table, ref.scope):
            if isinstance(held.expr, ast.Dict):
                for k, v in zip(held.expr.keys, held.expr.values, strict=True):
                    if known and isinstance(k, ast.Constant) and k.value == value:
                        return self.dtype(v, held.scope) or "?"
                    if not known:
                        found.add(self.dtype(v, held.scope) or "?")
        return found.pop() if len(found) == 1 else "?"  # the same for every key

    # -- autocast -----------------------------------------------------------------------------------------------

    def region(self, expr: ast.expr, scope: Scope) -> Region | None:
        """The autocast region that a with-item or decorator opens, or None. The strictest of several candidates."""
        found: list[Region] = []
        other = False
        for ref in self.symbols.resolve(entered(self.symbols, expr, scope), scope):
            made = self._region_of(ref.expr, ref.scope)
            inside = [] if made is not None else self._yielding(ref.expr, ref.scope)
            found += inside if made is None else [made]
            other = other or (made is None and not inside)
        if not found:
            return None
        live = [r for r in found if r.enabled is not False] or found
        best = live[0]
        if any(r.dtype != best.dtype for r in live):
            best = Region(best.device, "?", best.enabled, best.node)
        if other and best.enabled:
            best = Region(best.device, best.dtype, None, best.node, best.framework)
        return best

    def _yielding(self, expr: ast.expr, scope: Scope) -> list[Region]:
        """The regions around the `yield` of a context manager that is written as a generator in this file."""
        function = self._manager(expr, scope)
        if function is None or function in self._inside:
            return []
        self._inside.append(function)
        found = [
            made
            for block in self.symbols.nodes(ast.With, ast.AsyncWith)
            if self.symbols.scope(block) is function and any(isinstance(n, ast.Yield) for n in walk(block))
            for item in block.items
            if (made := self.region(item.context_expr, function)) is not None
        ]
        self._inside.pop()
        return [self._switched(made, expr, function, scope) for made in found]

    def _manager(self, expr: ast.expr, scope: Scope) -> Scope | None:
        """The function of this file that a call makes a context manager of."""
        function = self.symbols.local_function(expr.func, scope) if isinstance(expr, ast.Call) else None
        decorators = getattr(function.node, "decorator_list", []) if function is not None else []
        return function if any(last_name(d) in ("contextmanager", "asynccontextmanager") for d in decorators) else None

    def _switched(self, made: Region, expr: ast.expr, function: Scope, scope: Scope) -> Region:
        """`maybe_autocast(False)`, whose parameter is the `enabled` of the region inside."""
        if made.enabled is not None or not isinstance(made.node, ast.Call) or not isinstance(expr, ast.Call):
            return made
        given = parameter_given(self.symbols, expr, function, keyword(made.node, "enabled"))
        return replace(made, enabled=self.truth(given, scope)) if given is not None else made

    def _region_of(self, expr: ast.expr, scope: Scope) -> Region | None:
        if not isinstance(expr, ast.Call):
            text = dotted(expr)
            if text and text.rpartition(".")[2] in ("amp_autocast", "autocast_ctx", "autocast_context", "autocast"):
                return Region("?", "?", None, expr)
            return None
        call = _without_partial(expr)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "enter_context" and call.args:
            return self.region(call.args[0], scope)
        name = self.symbols.qual(call.func, scope)
        if name in AUTOCASTS:
            return self._autocast(call, name, scope)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "autocast" and name is None:
            base = self.framework.kind(call.func.value, scope)
            if base:
                return self.framework.region(base, expr)
            return self._own(call, scope)
        if name is not None and name.rpartition(".")[2] == "autocast":
            return self._own(call, scope)  # a project's own alias of it
        text = dotted(call.func)
        if text and "autocast" in text.rpartition(".")[2].lower() and name is None:
            if self._manager(call, scope) is not None:
                return None  # told by what it opens
            for ref in self.symbols.resolve(call.func, scope):
                if isinstance(ref.expr, ast.Call):
                    inner = _without_partial(ref.expr)
                    inner_name = self.symbols.qual(inner.func, ref.scope)
                    if inner_name in AUTOCASTS:
                        made = self._autocast(inner, inner_name, ref.scope)
                        return Region(made.device, made.dtype, made.enabled and None, expr)
                    if last_name(inner.func) == "partial" and inner.args:
                        target = self.symbols.qual(inner.args[0], ref.scope)
                        if target in AUTOCASTS:
                            made = self._autocast(inner, target, ref.scope, skip=1)
                            several = len(self.symbols.bindings(text, scope)) > 1
                            return Region(made.device, made.dtype, None if several else made.enabled, expr)
            return self._own(call, scope)
        return None

    def _own(self, call: ast.Call, scope: Scope) -> Region:
        """A region that a helper opens which is not shown: off where it is told so."""
        switch = told(call)
        off = switch is not None and self.truth(switch, scope) is False
        return Region("?", "?", False if off else None, call)

    def _autocast(self, call: ast.Call, name: str, scope: Scope, skip: int = 0) -> Region:
        args = call.args[skip:]
        device = {"torch.cuda.amp.autocast": "cuda", "torch.cpu.amp.autocast": "cpu"}.get(name)
        dtype_index = 1
        if device is None:
            given = keyword(call, "device_type") or (args[0] if args else None)
            device = self.device(given, scope) if given is not None else "?"
        dtype_expr = keyword(call, "dtype", "fast_dtype") or (args[dtype_index] if len(args) > dtype_index else None)
        dtype = self.dtype(dtype_expr, scope) if dtype_expr is not None else None
        if dtype == "?" and dtype_expr is not None and self._of_a_model(dtype_expr, scope):
            dtype = "own"
        if dtype_expr is None or (isinstance(dtype_expr, ast.Constant) and dtype_expr.value is None):
            dtype = {"cpu": "bf16", "other": "?"}.get(device, "fp16")
        enabled = self.call_enabled(call, scope)
        if any(k.arg is None for k in call.keywords):
            enabled, dtype = None, "?" if dtype_expr is None else dtype
        return Region(device, dtype or "?", enabled, call)

    def _of_a_model(self, expr: ast.expr, scope: Scope) -> bool:
        """`net.dtype`, `next(net.parameters()).dtype`: what the weights have, and no setting of the run."""
        refs = self.symbols.resolve(expr, scope)
        if isinstance(expr, ast.Attribute) and expr.attr == "dtype" and len(refs) > 1:
            # `before = net.dtype; net.dtype = torch.float32; ...; net.dtype = before`
            kinds = {_DTYPES.get(self.symbols.qual(r.expr, r.scope) or "") for r in refs}
            leaf = last_name(expr.value)
            return (
                not kinds & {"fp16", "bf16"} and leaf != "self" and runs_a_model(leaf) and not _CONFIG_NAME.search(leaf)
            )
        for ref in refs:
            holder = ref.expr.value if isinstance(ref.expr, ast.Attribute) and ref.expr.attr == "dtype" else None
            if isinstance(holder, ast.Call):
                holder = holder.args[0] if last_name(holder.func) == "next" and holder.args else None
                if not isinstance(holder, ast.Call) or last_name(holder.func) not in ("parameters", "buffers"):
                    return False
                continue
            leaf = last_name(holder) if holder is not None else ""
            if leaf == "self" or not runs_a_model(leaf) or _CONFIG_NAME.search(leaf):
                return False
        return True

    def device(self, expr: ast.expr | None, scope: Scope, depth: int = 4) -> str:
        """cuda, cpu, other or "?" of a device or device-type expression."""
        if expr is None or depth == 0:
            return "?"
        found: set[str] = set()
        for ref in self.symbols.resolve(expr, scope):
            e = ref.expr
            if isinstance(e, ast.Attribute) and e.attr == "type":
                found.add(self.device(e.value, ref.scope, depth - 1))
            elif isinstance(e, ast.Call) and self.symbols.qual(e.func, ref.scope) == "torch.device" and e.args:
                found.add(self.device(e.args[0], ref.scope, depth - 1))
            elif isinstance(e, ast.Constant) and isinstance(e.value, str):
                kind = e.value.split(":")[0]
                found.add(kind if kind in ("cuda", "cpu") else "other")
            elif isinstance(e, ast.JoinedStr) and e.values and isinstance(e.values[0], ast.Constant):
                kind = str(e.values[0].value).split(":")[0]
                found.add(kind if kind in ("cuda", "cpu") else "?")
            else:
                found.add("?")
        return found.pop() if len(found) == 1 else "?"

    # -- optimisers ------------------------------------------------------------------------------------

    def is_scheduler(self, expr: ast.expr, scope: Scope) -> bool:
        refs = [*self.symbols.resolve(expr, scope), *elements(self.symbols, expr, scope)]
        for ref in refs:
            if isinstance(ref.expr, ast.Call):
                name = self.symbols.qual(ref.expr.func, ref.scope) or last_name(ref.expr.func)
                if (
                    ".lr_scheduler." in name
                    or name.endswith(("LR", "Scheduler", "get_scheduler"))
                    or "schedule" in name.lower()
                ):
                    return True
        return self._is_named(expr, refs, _SCHEDULER_NAME)

    def is_optimizer(self, expr: ast.expr, scope: Scope) -> bool:
        if self.is_scheduler(expr, scope):
            return False
        refs = [*self.symbols.resolve(expr, scope), *elements(self.symbols, expr, scope)]
        for ref in refs:
            if isinstance(ref.expr, ast.Call):
                name = self.symbols.qual(ref.expr.func, ref.scope) or ""
                if name.startswith("torch.optim.") and ".lr_scheduler." not in name:
                    return True
        return self._is_named(expr, refs, _OPTIMIZER_NAME)

    @staticmethod
    def _is_named(expr: ast.expr, refs: list[Ref], pattern: re.Pattern[str]) -> bool:
        """By its own name, or by that of the collection that it comes from."""
        texts = [dotted(e) or "" for e in (expr, *(r.expr for r in refs))]
        return any(pattern.search(t.rpartition(".")[2]) for t in texts if t)


def _asks_for_scaler(call: ast.Call) -> bool:
    """`getattr(trainer.precision_plugin, "scaler", None)`"""
    name = call.args[1] if last_name(call.func) == "getattr" and len(call.args) > 1 else None
    return isinstance(name, ast.Constant) and isinstance(name.value, str) and bool(_SCALER_NAME.search(name.value))


def _without_partial(call: ast.Call) -> ast.Call:
    """`partial(autocast, dtype=...)("cuda")` -> `autocast("cuda", dtype=...)`."""
    made = call.func
    if not (isinstance(made, ast.Call) and last_name(made.func) == "partial" and made.args):
        return call
    written = ast.Call(made.args[0], made.args[1:] + call.args, made.keywords + call.keywords)
    return ast.copy_location(written, call)
