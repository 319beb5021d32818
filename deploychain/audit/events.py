"""The training events in a piece of code: backward, scaler and optimiser steps, clipping, zeroing."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from deploychain.audit.amp import Amp
from deploychain.audit.astnames import Ref, Scope, dotted, last_name
from deploychain.audit.callees import callees
from deploychain.audit.gradients import FUNCTIONS, READS, Gradients, linear, mentions_grad, touches_grad
from deploychain.audit.object_keys import ObjectKeys
from deploychain.audit.symbols import Symbols
from deploychain.audit.tree import walk
from deploychain.audit.values import words

_CLIP_NAME = re.compile(
    r"^_?(dispatch_|adaptive_)?clip_grad(ient)?s?(_?by)?(_?norm|_?value)?s?_?$|^(get_)?(total_)?grad(ient)?s?_norm$|^get_total_norm$"
)
_CLIPPER_NAME = re.compile(r"clip_?grad|grad(ient)?s?_?clip")
_ZERO_NAME = re.compile(
    r"(zero|reset|clear).*grad|grad.*(zero|reset|clear)|^_*zero$|^_*zero_?(all|out|opt\w*|them)$|^_foreach_zero_$"
)
_LOGS = words("add_histogram Histogram")


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """One thing that happens to gradients, scaler or optimiser.

    kind: backward, gradients (torch.autograd.grad), scaler-step, optimizer-step, update, unscale, zero, clip, reduce,
        sched-step, opaque.
    key: the optimiser (or scaler for update) as written, mapped to the caller's names; "*" for any.
    """

    kind: str
    key: str
    node: ast.expr
    scope: Scope
    scaled: bool | None = None  # of a backward
    detail: str = ""
    framework: str = ""


class EventReader(ObjectKeys):
    """Turns calls and assignments into events."""

    def __init__(self, symbols: Symbols, amp: Amp) -> None:
        super().__init__(symbols)
        self.amp = amp
        self.gradients = Gradients(symbols)
        self._callees: dict[int, list[Ref]] = {}
        self._assigns_grad: dict[int, bool] = {}

    def of_call(self, call: ast.Call, scope: Scope, names: dict[str, str]) -> Event | None:
        for callee in self.callees(call, scope):
            event = self._of_function(call, callee.expr, callee.scope, scope, names if callee.scope is scope else {})
            if event is not None:
                return event
        return None

    def callees(self, call: ast.Call, scope: Scope) -> list[Ref]:
        key = id(call)
        if key not in self._callees:
            self._callees[key] = callees(self.symbols, call.func, scope)
        return self._callees[key]

    def _of_function(
        self, call: ast.Call, func: ast.expr, where: Scope, scope: Scope, names: dict[str, str]
    ) -> Event | None:
        full = self.symbols.qual(func, where)
        if full == "torch.autograd.backward":
            tensors = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "tensors"), None)
            if tensors is not None:
                return Event("backward", "*", call, scope, scaled=self.is_scaled(tensors, scope))
        if full == "torch.autograd.grad" and call.args and self._become_gradients(scope):
            return Event("gradients", "*", call, scope, scaled=self.is_scaled(call.args[0], scope))
        if isinstance(func, ast.Attribute):
            event = self._method(call, func, where, scope, names)
            if event is not None:
                return event
        leaf = (full or "").rpartition(".")[2] or last_name(func)
        if _CLIP_NAME.match(leaf) and not (full or "").startswith(("math.", "numpy.", "tensorflow.", "jax.")):
            if isinstance(func, ast.Attribute) and full is None:
                kind = self.amp.framework.kind(func.value, where)
                if kind or self._has_method(func.value, where):
                    return None  # Accelerate and Fabric unscale in there
            if any(self._times_scale(a, scope) for a in self._arguments(call)):
                return None  # `max_norm * scaler.get_scale()`
            return Event("clip", "*", call, scope, detail=self.symbols.text(func))
        if _CLIPPER_NAME.search(leaf) and full is None and self._clips(call, where, scope):
            return Event("clip", "*", call, scope, detail=self.symbols.text(func))
        if _ZERO_NAME.search(leaf):
            return Event("zero", "*", call, scope)
        # A function that this file does not show and that gets the scaler may do any of it.
        shown = leaf in _HARMLESS or leaf in self.symbols.classes
        if not shown and any(self.amp.is_scaler(a, scope) for a in self._arguments(call)):
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

    def _clips(self, call: ast.Call, where: Scope, scope: Scope) -> bool:
        """`self.clip_grad_fun(parameters=model.parameters())`, which a builder outside of this file made."""
        given = self._arguments(call)
        if not any(isinstance(a, ast.Call) and last_name(a.func) in ("parameters", "named_parameters") for a in given):
            return False
        made = [r.expr for r in self.symbols.resolve(call.func, where)]
        foreign = all(isinstance(e, ast.Call) and self.symbols.qual(e.func, where) is not None for e in made)
        return foreign and not any(self.amp.is_scaler(a, scope) or self._times_scale(a, scope) for a in given)

    def _times_scale(self, expr: ast.expr, scope: Scope) -> bool:
        """The value is made from the loss scale."""
        if not isinstance(expr, ast.BinOp | ast.Name | ast.Call | ast.Attribute):
            return False
        return any(
            "get_scale" in text or "inv_scale" in text
            for r in self.symbols.resolve(expr, scope)
            for text in [ast.unparse(r.expr)]
        )

    @staticmethod
    def _arguments(call: ast.Call) -> list[ast.expr]:
        return [*call.args, *(k.value for k in call.keywords)]

    def _become_gradients(self, scope: Scope) -> bool:
        """The function puts gradients that it computed itself into `.grad`."""
        if id(scope) not in self._assigns_grad:
            self._assigns_grad[id(scope)] = any(
                isinstance(t, ast.Attribute) and t.attr == "grad" and not isinstance(s.value, ast.Constant)
                for s in self.symbols.nodes(ast.Assign)
                if self.symbols.scope(s) is scope
                for t in s.targets
            )
        return self._assigns_grad[id(scope)]

    def _method(
        self, call: ast.Call, func: ast.Attribute, where: Scope, scope: Scope, names: dict[str, str]
    ) -> Event | None:
        attr, base = func.attr, func.value
        if attr == "backward":
            return self._backward(call, base, scope)
        if attr == "manual_backward":
            plain = bool(call.args) and self.is_scaled(call.args[0], scope) is False
            scaled = True if self.amp.framework.lightning == "fp16" else None
            return Event("backward", "*", call, scope, scaled=scaled, detail="plain" * plain, framework="Lightning")
        if attr == "step":
            if call.args and self.amp.is_scaler(base, where):
                return Event("scaler-step", self.key(call.args[0], names), call, scope, detail=self.key(base, names))
            if self.amp.is_scheduler(base, where):
                return Event(
                    "sched-step",
                    self.key(base, names),
                    call,
                    scope,
                    detail="metric" if call.args or call.keywords else "",
                )
            if self.amp.is_optimizer(base, where):
                return Event("optimizer-step", self.key(base, names), call, scope)
            return None
        if attr == "update" and self.amp.is_scaler(base, where):
            return Event("update", self.key(base, names), call, scope)
        if attr == "unscale_" and call.args and self.amp.is_scaler(base, where):
            return Event("unscale", self.key(call.args[0], names), call, scope)
        if attr == "unscale_gradients":
            return Event("unscale", "*", call, scope)
        if attr in ("zero_grad", "zero_grad_"):
            return Event("zero", self.key(base, names), call, scope)
        if attr == "clip_grad_norm_" and self.symbols.qual(func, where) is None:
            if self.amp.framework.kind(base, scope):
                return Event("unscale", "*", call, scope)
            return (
                None
                if dotted(base) in ("self", "cls")
                else Event("clip", "*", call, scope, detail=self.symbols.text(func))
            )
        if (
            attr in ("mul_", "div_")
            and call.args
            and self._times_scale(call.args[0], scope)
            and self.gradients.is_grad(base, scope)
        ):
            return Event("unscale", "*", call, scope)
        if attr == "zero_" and self.gradients.is_grad(base, scope):
            return self._emptied(call, scope)
        return self._reads(call, attr, base, scope) if attr in READS else None

    def _reads(self, call: ast.Call, attr: str, base: ast.expr, scope: Scope) -> Event | None:
        grads = self.gradients
        grad = grads.square(base, scope) or (base if grads.is_grad(base, scope) else None)
        if grad is None or grads.harmless(call):
            return None
        if attr in ("add_", "sub_") and call.args and mentions_grad(call.args[0]):
            return None  # a sum of gradients is still multiplied by the scale
        if attr == "mean" and self._into_a_sum(call, grad):
            return None
        return Event("clip", "*", call, scope, detail=f"{self.symbols.text(grad)}.{attr}()")

    def _into_a_sum(self, call: ast.Call, grad: ast.expr) -> bool:
        """`p.grad.sub_(p.grad.mean(...))`: gradient centralisation."""
        parent = self.symbols.parent.get(call)
        return isinstance(parent, ast.Call) and last_name(parent.func) in ("sub_", "add_", "sub", "add")

    def _backward(self, call: ast.Call, base: ast.expr, scope: Scope) -> Event:
        kind = self.amp.framework.kind(base, scope)
        if kind:
            plain = bool(call.args) and self.is_scaled(call.args[0], scope) is False
            scaled = True if self.amp.framework.scaled(kind) else None
            return Event("backward", "*", call, scope, scaled=scaled, detail="plain" * plain, framework=kind)
        if call.args and dotted(call.args[0]) is not None and "loss" not in (dotted(base) or "").lower():
            return Event("backward", "*", call, scope, scaled=None)  # engine.backward(loss)
        return Event("backward", "*", call, scope, scaled=self.is_scaled(base, scope))

    def is_scaled(self, expr: ast.expr, scope: Scope) -> bool | None:
        """Whether an expression is a loss times the scale: False only where its origin is plain."""
        unknown = False
        for ref in self.symbols.resolve(expr, scope):
            inside = ref.expr
            for node in walk(inside):
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
            if binding.loop and binding.value is not None:
                for ref in self.symbols.resolve(binding.value, binding.scope):
                    if any(isinstance(n, ast.Attribute) and n.attr == "scale" for n in walk(ref.expr)):
                        return True
        return None if unknown else False

    def _emptied(self, node: ast.expr, scope: Scope) -> Event:
        """One gradient is zeroed: an edit where it is those that are not finite."""
        if self.gradients.hides_overflow(node, scope):
            return Event("clip", "*", node, scope, detail=self.symbols.text(node))
        return Event("zero", "*", node, scope)

    def of_assignment(self, statement: ast.stmt, scope: Scope) -> Event | None:
        """`p.grad = None`, `del p.grad`, `p.grad += noise`."""
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Attribute) and target.attr == "grad":
                    if isinstance(statement.value, ast.Constant) and statement.value.value is None:
                        return self._emptied(target, scope)
                    if (
                        self.gradients.is_grad(target, scope)
                        and touches_grad(statement.value)
                        and not linear(statement.value)
                    ):
                        return Event("clip", "*", target, scope, detail=self.symbols.text(statement))
                elif (
                    isinstance(target, ast.Subscript)
                    and self.gradients.is_grad(target.value, scope)
                    and self.gradients.hides_overflow(target, scope)
                ):
                    return Event("clip", "*", target, scope, detail=self.symbols.text(statement))
        elif isinstance(statement, ast.Delete):
            for target in statement.targets:
                if isinstance(target, ast.Attribute) and target.attr == "grad":
                    return Event("zero", "*", target, scope)
        elif isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Mult | ast.Div):
            if self.gradients.is_grad(statement.target, scope) and self._times_scale(statement.value, scope):
                return Event("unscale", "*", statement.target, scope)
        elif isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add | ast.Sub):
            if self.gradients.is_grad(statement.target, scope):
                found = not mentions_grad(statement.value)
            else:  # p.data -= lr * p.grad
                found = self.gradients.moves_by_grad(statement.target, statement.value, scope)
            if found:
                return Event("clip", "*", statement.target, scope, detail=self.symbols.text(statement))
        return None

    def is_grad_argument(self, call: ast.Call, scope: Scope) -> Event | None:
        """`torch.norm(p.grad)`, `_foreach_norm(grads)`, `writer.add_histogram(tag, p.grad)`, `all_reduce(p.grad)`."""
        leaf = last_name(call.func)
        if leaf in _LOGS:
            found = any(self.gradients.is_grad(a, scope) for a in call.args)
        elif leaf in FUNCTIONS and (self.symbols.qual(call.func, scope) or "").startswith("torch."):
            found = any(self.gradients.is_grad(a, scope) or self.gradients.are_grads(a, scope) for a in call.args[:1])
        elif leaf == "all_reduce" and call.args and self.gradients.is_grad(call.args[0], scope):
            return Event("reduce", "*", call, scope)
        elif leaf in ("add_", "sub_") and isinstance(call.func, ast.Attribute) and call.args:
            found = self.gradients.moves_by_grad(call.func.value, call.args[0], scope)
        else:
            return None
        if not found or self.gradients.harmless(call):
            return None
        return Event("clip", "*", call, scope, detail=self.symbols.text(call))


_HARMLESS = words(
    "print isinstance len str save append dict format hasattr getattr id debug info save_checkpoint "
    "load_checkpoint warning type log"
)
