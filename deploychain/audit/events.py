"""The training events in a piece of code: backward, scaler and optimiser steps, clipping, zeroing."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from deploychain.audit.amp import Amp
from deploychain.audit.astnames import Scope, dotted, last_name
from deploychain.audit.symbols import Symbols
from deploychain.audit.values import words

_CLIP_NAME = re.compile(
    r"^_?(dispatch_|adaptive_)?clip_grad(ient)?s?(_?by)?(_?norm|_?value)?s?_?$|^(get_)?(total_)?grad(ient)?s?_norm$|^get_total_norm$"
)
_ZERO_NAME = re.compile(r"zero|reset_grad|clear_grad")
_PARAMETER_NAMES = frozenset({"p", "param", "params", "parameter", "w", "weight", "v", "par"})
# Linear in the gradient, so the same before and after unscaling; or a test that only asks for finiteness.
_LINEAR = words(
    "zero_ detach_ mul_ div_ copy_ clone to is_sparse coalesce numel size shape device dtype isnan isinf "
    "isfinite data_ptr requires_grad_ element_size is_contiguous contiguous view is_sparse_csr "
    "untyped_storage"
)
_READS = words(
    "norm abs clamp_ clamp clip_ clip add_ sub_ mean std var max min pow square sum sign sign_ sqrt item "
    "cpu numpy tolist histc float masked_fill_ addcmul_ renorm renorm_ flatten ravel"
)
_FINITE_CHECKS = frozenset({"isnan", "isinf", "isfinite", "all_reduce", "allclose", "equal"})


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """One thing that happens to gradients, scaler or optimiser.

    kind: backward, scaler-step, optimizer-step, update, unscale, zero, clip, sched-step, opaque.
    key: the optimiser (or scaler for update) as written, mapped to the caller's names; "*" for any.
    """

    kind: str
    key: str
    node: ast.expr
    scope: Scope
    scaled: bool | None = None  # of a backward
    detail: str = ""
    framework: str = ""


class EventReader:
    """Turns calls and assignments into events."""

    def __init__(self, symbols: Symbols, amp: Amp) -> None:
        self.symbols = symbols
        self.amp = amp

    def of_call(self, call: ast.Call, scope: Scope, names: dict[str, str]) -> Event | None:
        func = call.func
        full = self.symbols.qual(func, scope)
        if full == "torch.autograd.backward" and call.args:
            return Event("backward", "*", call, scope, scaled=self.is_scaled(call.args[0], scope))
        if isinstance(func, ast.Attribute):
            event = self._method(call, func, scope, names)
            if event is not None:
                return event
        leaf = last_name(func)
        if _CLIP_NAME.match(leaf) and not (full or "").startswith(("math.", "numpy.", "tensorflow.", "jax.")):
            if isinstance(func, ast.Attribute) and full is None:
                kind = self.amp.framework.kind(func.value, scope)
                if kind or self._has_method(func.value, scope):
                    return None  # Accelerate and Fabric unscale in there
            return Event("clip", "*", call, scope, detail=self.symbols.text(func))
        if _ZERO_NAME.search(leaf):
            return Event("zero", "*", call, scope)
        # A function that this file does not show and that gets the scaler may do any of it.
        if any(self.amp.is_scaler(a, scope) for a in self._arguments(call)) and leaf not in _HARMLESS:
            return Event("opaque", "*", call, scope)
        text = dotted(func)
        if (
            text is not None
            and re.search(r"scaler$", text.rpartition(".")[2], re.IGNORECASE)
            and full is None
            and len(call.args) >= 2
        ):
            return Event("opaque", "*", call, scope)  # timm's loss_scaler(loss, optimizer, ...)
        return None

    def _has_method(self, base: ast.expr, scope: Scope) -> bool:
        """`self.clip_gradients(...)`, `engine.clip_grad_norm_()`: a method of the user's or a framework's object."""
        text = dotted(base)
        return text in ("self", "cls") or (
            text is not None
            and re.search(r"engine|strategy|plugin|handler|utils?$", text) is None
            and text == "trainer"
        )

    @staticmethod
    def _arguments(call: ast.Call) -> list[ast.expr]:
        return [*call.args, *(k.value for k in call.keywords)]

    def _method(self, call: ast.Call, func: ast.Attribute, scope: Scope, names: dict[str, str]) -> Event | None:
        attr, base = func.attr, func.value
        if attr == "backward":
            return self._backward(call, base, scope)
        if attr == "manual_backward":
            return Event("backward", "*", call, scope, scaled=True, framework="Lightning")
        if attr == "step":
            if call.args and self.amp.is_scaler(base, scope):
                return Event("scaler-step", self.key(call.args[0], names), call, scope, detail=self.key(base, names))
            if self.amp.is_scheduler(base, scope):
                return Event(
                    "sched-step",
                    self.key(base, names),
                    call,
                    scope,
                    detail="metric" if call.args or call.keywords else "",
                )
            if self.amp.is_optimizer(base, scope):
                return Event("optimizer-step", self.key(base, names), call, scope)
            return None
        if attr == "update" and self.amp.is_scaler(base, scope):
            return Event("update", self.key(base, names), call, scope)
        if attr == "unscale_" and call.args and self.amp.is_scaler(base, scope):
            return Event("unscale", self.key(call.args[0], names), call, scope)
        if attr == "unscale_gradients":
            return Event("unscale", "*", call, scope)
        if attr in ("zero_grad", "zero_grad_"):
            return Event("zero", self.key(base, names), call, scope)
        if attr == "clip_grad_norm_" and self.symbols.qual(func, scope) is None:
            if self.amp.framework.kind(base, scope):
                return Event("unscale", "*", call, scope)
            return (
                None
                if dotted(base) in ("self", "cls")
                else Event("clip", "*", call, scope, detail=self.symbols.text(func))
            )
        if attr == "zero_" and self._is_grad(base, scope):
            return Event("zero", "*", call, scope)
        if attr in _READS:
            grad = base
            while (isinstance(grad, ast.Attribute) and grad.attr == "data") or _is_detach(grad):
                grad = grad.value if isinstance(grad, ast.Attribute) else grad.func.value  # type: ignore[attr-defined]
            if self._is_grad(grad, scope) and not self._only_finiteness(call):
                return Event("clip", "*", call, scope, detail=f"{self.symbols.text(grad)}.{attr}()")
        return None

    def _only_finiteness(self, node: ast.AST) -> bool:
        parent = self.symbols.parent.get(node)
        for _ in range(4):
            if isinstance(parent, ast.Call) and last_name(parent.func) in _FINITE_CHECKS:
                return True
            parent = self.symbols.parent.get(parent) if parent is not None else None
        return False

    def _backward(self, call: ast.Call, base: ast.expr, scope: Scope) -> Event:
        kind = self.amp.framework.kind(base, scope)
        if kind:
            return Event(
                "backward", "*", call, scope, scaled=True if self.amp.framework.scaled(kind) else None, framework=kind
            )
        if call.args and dotted(call.args[0]) is not None and "loss" not in (dotted(base) or "").lower():
            return Event("backward", "*", call, scope, scaled=None)  # engine.backward(loss)
        return Event("backward", "*", call, scope, scaled=self.is_scaled(base, scope))

    def is_scaled(self, expr: ast.expr, scope: Scope) -> bool | None:
        """Whether an expression is a loss times the scale: False only where its origin is plain."""
        unknown = False
        for ref in self.symbols.resolve(expr, scope):
            inside = ref.expr
            for node in ast.walk(inside):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    if node.func.attr in ("scale", "get_scale") and self.amp.is_scaler(node.func.value, ref.scope):
                        state = self.amp.scaler_state(node.func.value, ref.scope)
                        return True if state is not False else None
                    if node.func.attr in ("scale", "scale_loss"):
                        unknown = True
            if isinstance(inside, ast.Call) and last_name(inside.func) == "scale_loss":
                return None
            text = dotted(inside)
            if text is not None and "scal" in text.rpartition(".")[2].lower():
                unknown = True
        for binding in self.symbols.bindings(dotted(expr) or "", scope):
            if binding.loop:
                value = binding.value
                if value is not None and any(
                    isinstance(n, ast.Attribute) and n.attr == "scale" for n in ast.walk(value)
                ):
                    return True
        return None if unknown else False

    def of_assignment(self, statement: ast.stmt, scope: Scope) -> Event | None:
        """`p.grad = None`, `del p.grad`, `p.grad += noise`."""
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Attribute) and target.attr == "grad":
                    if isinstance(statement.value, ast.Constant) and statement.value.value is None:
                        return Event("zero", "*", target, scope)
                    if self._is_grad(target, scope) and _touches_grad(statement.value) and not _linear(statement.value):
                        return Event("clip", "*", target, scope, detail=self.symbols.text(statement))
        elif isinstance(statement, ast.Delete):
            for target in statement.targets:
                if isinstance(target, ast.Attribute) and target.attr == "grad":
                    return Event("zero", "*", target, scope)
        elif isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add | ast.Sub):
            target = statement.target
            while isinstance(target, ast.Attribute) and target.attr == "data":
                target = target.value
            if self._is_grad(target, scope) and "grad" not in self.symbols.text(statement.value):
                return Event("clip", "*", target, scope, detail=self.symbols.text(statement))
        return None

    def is_grad_argument(self, call: ast.Call, scope: Scope) -> Event | None:
        """`torch.norm(p.grad)`, `torch.linalg.vector_norm(p.grad.detach())`, `torch._foreach_norm(grads)`."""
        full = self.symbols.qual(call.func, scope) or ""
        if full.startswith("torch.") and full.rpartition(".")[2] in (
            "norm",
            "vector_norm",
            "_foreach_norm",
            "clamp",
            "abs",
            "max",
        ):
            for arg in call.args[:1]:
                if self._are_grads(arg, scope):
                    return Event("clip", "*", call, scope, detail=self.symbols.text(call))
                grad = arg
                while _is_detach(grad) or (isinstance(grad, ast.Attribute) and grad.attr == "data"):
                    grad = grad.value if isinstance(grad, ast.Attribute) else grad.func.value  # type: ignore[attr-defined]
                if self._is_grad(grad, scope):
                    return Event("clip", "*", call, scope, detail=self.symbols.text(call))
        return None

    def _are_grads(self, expr: ast.expr, scope: Scope) -> bool:
        """`[p.grad for p in model.parameters()]`, by name or as it is."""
        return any(
            isinstance(r.expr, ast.ListComp) and self._is_grad(r.expr.elt, self.symbols.scope(r.expr))
            for r in self.symbols.resolve(expr, scope)
        )

    def _is_grad(self, expr: ast.AST, scope: Scope, depth: int = 3) -> bool:
        """`.grad` of a parameter (not of an input, as in adversarial training), or an item of a list of them."""
        if isinstance(expr, ast.Name):
            return depth > 0 and any(
                isinstance(r.expr, ast.ListComp | ast.GeneratorExp) and self._is_grad(r.expr.elt, r.scope, depth - 1)
                for b in self.symbols.bindings(expr.id, scope)
                if b.loop and isinstance(b.value, ast.Name)
                for r in self.symbols.resolve(b.value, b.scope)
            )
        if not isinstance(expr, ast.Attribute) or expr.attr != "grad" or self.symbols.qual(expr, scope) is not None:
            return False
        text = dotted(expr.value)
        if text is None:
            return False
        leaf = text.rpartition(".")[2]
        if leaf in _PARAMETER_NAMES or (("." in text) and leaf in ("weight", "bias")):
            return True
        for binding in self.symbols.bindings(text, scope):
            if (
                binding.loop
                and binding.value is not None
                and any(
                    isinstance(n, ast.Attribute) and n.attr in ("parameters", "named_parameters", "param_groups")
                    for n in ast.walk(binding.value)
                )
            ):
                return True
        return False

    def key(self, expr: ast.expr, names: dict[str, str]) -> str:
        """A name for an object that is the same in callers and callees."""
        text = dotted(expr)
        if text is None:
            return "*"
        head, _, rest = text.partition(".")
        if head in names:
            return names[head] + (f".{rest}" if rest else "")
        return text


_HARMLESS = words(
    "print isinstance len str save append dict format hasattr getattr id debug info save_checkpoint "
    "load_checkpoint warning type log"
)


def _is_detach(expr: ast.AST) -> bool:
    return (
        isinstance(expr, ast.Call)
        and isinstance(expr.func, ast.Attribute)
        and expr.func.attr in ("detach", "float", "clone", "to", "flatten", "view", "cpu")
    )


def _touches_grad(expr: ast.expr) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr == "grad" for n in ast.walk(expr))


def _linear(expr: ast.expr) -> bool:
    """A multiple of a gradient, or a copy of it."""
    if isinstance(expr, ast.BinOp) and isinstance(expr.op, ast.Mult | ast.Div):
        return not any(isinstance(n, ast.Call) and last_name(n.func) in _READS for n in ast.walk(expr))
    if isinstance(expr, ast.Call) and isinstance(expr.func, ast.Attribute):
        return expr.func.attr in _LINEAR
    return isinstance(expr, ast.Attribute)
