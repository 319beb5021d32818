"""Scopes, bindings and small questions about syntax trees that need no index of the file."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from deploychain.audit.tree import children

UNKNOWN = object()

# One name for each thing that torch offers under several.
_CANONICAL = {
    "torch.amp.autocast": "torch.autocast",
    "torch.amp.autocast_mode.autocast": "torch.autocast",
    "torch.cuda.amp.autocast_mode.autocast": "torch.cuda.amp.autocast",
    "torch.GradScaler": "torch.amp.GradScaler",
    "torch.amp.grad_scaler.GradScaler": "torch.amp.GradScaler",
    "torch.cuda.amp.grad_scaler.GradScaler": "torch.cuda.amp.GradScaler",
    "torch.nn.utils.clip_grad.clip_grad_norm_": "torch.nn.utils.clip_grad_norm_",
    "torch.nn.utils.clip_grad.clip_grad_value_": "torch.nn.utils.clip_grad_value_",
    "torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel": (
        "torch.distributed.fsdp.FullyShardedDataParallel"
    ),
    "torch.distributed._composable.fsdp.fully_shard": "torch.distributed.fsdp.fully_shard",
}
_PREFIXES = (
    ("torch.nn.modules.loss.", "torch.nn."),
    ("torch.nn.modules.activation.", "torch.nn."),
    ("torch.nn.modules.normalization.", "torch.nn."),
    ("torch.nn.modules.", "torch.nn."),
    ("pytorch_lightning", "lightning.pytorch"),
)
# Methods that return the module they are called on.
SELF_RETURNING = frozenset(
    {"to", "cuda", "cpu", "train", "eval", "half", "float", "double", "bfloat16", "requires_grad_"}
)


@dataclass(eq=False)
class Scope:
    """A module, class, function or lambda body."""

    node: ast.AST
    parent: Scope | None
    owner: Scope | None = None  # the class that a method belongs to
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    parameters: list[str] = field(default_factory=list)
    returned: list[ast.expr] | None = None  # filled by `returns`
    result: ast.Return | None = None  # the body of a lambda as a statement
    annotations: dict[str, ast.expr] = field(default_factory=dict)  # of parameters

    @property
    def name(self) -> str:
        return getattr(self.node, "name", "")

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)

    @property
    def body(self) -> list[ast.stmt]:
        body = getattr(self.node, "body", [])
        if isinstance(self.node, ast.Lambda):
            self.result = self.result or ast.copy_location(ast.Return(self.node.body), self.node.body)
            return [self.result]
        return body if isinstance(body, list) else []


class Binding(NamedTuple):
    """A name was given this value; `place` is the index in an unpacked tuple; `loop` where it came from iterating."""

    value: ast.expr | None
    scope: Scope
    node: ast.AST
    place: int | None = None
    loop: bool = False


class Ref(NamedTuple):
    """An expression and the scope in which its names mean something."""

    expr: ast.expr
    scope: Scope


def canonical(name: str) -> str:
    for prefix, replacement in _PREFIXES:
        if name.startswith(prefix):
            name = replacement + name[len(prefix) :]
            break
    return _CANONICAL.get(name, name)


def dotted(expr: ast.AST) -> str | None:
    """ "a.b.c" of a chain of names and attributes; a constant string subscript counts as one step."""
    if isinstance(expr, ast.Name):
        return expr.id
    if isinstance(expr, ast.Attribute):
        base = dotted(expr.value)
        return f"{base}.{expr.attr}" if base else None
    if isinstance(expr, ast.Subscript) and isinstance(expr.slice, ast.Constant):
        base = dotted(expr.value)
        return f"{base}[{expr.slice.value!r}]" if base else None
    return None


def write_out(tree: ast.Module) -> None:
    """`f = lambda x: y` to a `def`, `getattr(nn, "BCELoss")` `nn.BCELoss`, `setattr(x, "y", v)` `x.y = v`, in place;
    `(a if c else b).backward()` to `a.backward() if c else b.backward()`.

    With a default it stays: code that probes for a name is no use of it.
    """
    stack: list[ast.AST] = [tree]  # iterative: generated code nests deeper than the recursion limit
    while stack:
        node = stack.pop()
        for field_name in node._fields:
            value = getattr(node, field_name, None)
            if type(value) is list:
                for place, item in enumerate(value):
                    if type(item) in _WRITTEN_OUT:
                        value[place] = item = _written_out(item)
                    if isinstance(item, ast.AST):
                        stack.append(item)
            elif isinstance(value, ast.AST) and type(value) is not ast.Name and type(value) is not ast.Constant:
                if type(value) is ast.Call:
                    value = _written_out(value)
                    setattr(node, field_name, value)
                stack.append(value)


_WRITTEN_OUT = frozenset({ast.Assign, ast.Expr, ast.Call})


def _written_out(node: ast.AST) -> ast.AST:
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda) and isinstance(node.targets[0], ast.Name):
        body = ast.copy_location(ast.Return(node.value.body), node.value)
        made = ast.FunctionDef(node.targets[0].id, node.value.args, [body], [], None)
        return ast.copy_location(made, node) if len(node.targets) == 1 else node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.IfExp):
        chosen, method = node.func.value, node.func.attr
        arms = [ast.Attribute(arm, method, ast.Load()) for arm in (chosen.body, chosen.orelse)]
        calls = [ast.Call(ast.copy_location(arm, node.func), [], deepcopy(node.keywords)) for arm in arms]
        either = ast.IfExp(chosen.test, *(ast.copy_location(call, node) for call in calls))
        return ast.copy_location(either, node) if not node.args else node
    call = node.value if isinstance(node, ast.Expr) else node
    if not (
        isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and len(call.args) > 1 and not call.keywords
    ):
        return node
    name = call.args[1].value if isinstance(call.args[1], ast.Constant) else None
    if not (isinstance(name, str) and name.isidentifier()):
        return node
    if call.func.id == "getattr" and len(call.args) == 2 and call is node:
        return ast.copy_location(ast.Attribute(call.args[0], name, ast.Load()), node)
    if call.func.id == "setattr" and len(call.args) == 3 and call is not node:
        target = ast.copy_location(ast.Attribute(call.args[0], name, ast.Store()), call)
        return ast.copy_location(ast.Assign([target], call.args[2]), node)
    return node


def annotated_fields(cls: Scope) -> list[str]:
    """The fields of a dataclass or named tuple, in the order of its arguments."""
    return [s.target.id for s in cls.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]


def last_name(expr: ast.AST) -> str:
    if isinstance(expr, ast.Name):
        return expr.id
    if isinstance(expr, ast.Attribute):
        return expr.attr
    return ""


def leaf(text: str) -> str:
    """ "scaler" of the dotted names `state.scaler`, `state["scaler"]` and `scaler`."""
    return text[:-2].rpartition("['")[2] if text.endswith("']") else text.rpartition(".")[2]


def constructed(call: ast.Call) -> str:
    """The class that a call makes an instance of, by its name: `Net(...)`, `Net.from_pretrained(...)`."""
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in ("from_pretrained", "from_config", "load_from_checkpoint"):
        return last_name(func.value)
    return last_name(func)


def is_body(owner: ast.AST, child: ast.AST) -> bool:
    if isinstance(owner, ast.Lambda):
        return child is owner.body
    body = getattr(owner, "body", None)
    return isinstance(child, ast.stmt) and isinstance(body, list)


def strip_module_calls(expr: ast.expr) -> ast.expr:
    """`Net(...).to(dev).half()` -> `Net(...)`: methods of a module that return it; wrappers that keep it."""
    while isinstance(expr, ast.Call):
        if isinstance(expr.func, ast.Attribute) and expr.func.attr in SELF_RETURNING:
            expr = expr.func.value
        elif last_name(expr.func) in ("compile", "DataParallel", "DistributedDataParallel", "DDP") and expr.args:
            expr = expr.args[0]
        else:
            break
    return expr


def strip_copy(expr: ast.expr) -> ast.expr:
    """`dict(cfg)`, `cfg.copy()`, `copy.deepcopy(cfg)` -> `cfg`"""
    if isinstance(expr, ast.Call) and len(expr.args) == 1 and last_name(expr.func) in ("dict", "copy", "deepcopy"):
        return expr.args[0]
    if isinstance(expr, ast.Call) and isinstance(expr.func, ast.Attribute) and expr.func.attr == "copy":
        return expr.func.value
    return expr


def returns(function: Scope) -> list[ast.expr]:
    """The values that a function returns (its own returns, not those of functions inside)."""
    if function.returned is not None:
        return function.returned
    found: list[ast.expr] = []
    stack: list[ast.AST] = list(function.body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.expr):
            continue
        if isinstance(node, ast.Return) and node.value is not None:
            found.append(node.value)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            stack.extend(children(node))
    found.sort(key=lambda e: e.lineno)
    function.returned = found
    return found


def argument_for(call: ast.Call, function: Scope, name: str) -> ast.expr | None:
    """The argument that a call gives to a parameter; None where it is not given or not clear."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    parameters = list(function.parameters)
    if function.owner is not None and parameters and parameters[0] in ("self", "cls"):
        parameters = parameters[1:]
    if name not in parameters:
        return None
    index = parameters.index(name)
    if any(isinstance(a, ast.Starred) for a in call.args[: index + 1]):
        return None
    return call.args[index] if index < len(call.args) else None


def keyword(call: ast.Call, *names: str) -> ast.expr | None:
    """The value of the first of these keywords that a call has."""
    for name in names:
        for k in call.keywords:
            if k.arg == name:
                return k.value
    return None


def argument(call: ast.Call, index: int, *names: str) -> ast.expr | None:
    """A keyword, or else the positional argument with this index."""
    value = keyword(call, *names)
    if value is not None:
        return value
    if index < len(call.args) and not any(isinstance(a, ast.Starred) for a in call.args[: index + 1]):
        return call.args[index]
    return None


def arithmetic(op: ast.operator, left: Any, right: Any) -> Any:
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        return UNKNOWN
    try:
        if isinstance(op, ast.Pow):
            return left**right if abs(right) <= 64 else UNKNOWN
        if isinstance(op, ast.Mult):
            return left * right
        if isinstance(op, ast.Div):
            return left / right
        if isinstance(op, ast.FloorDiv):
            return left // right
        if isinstance(op, ast.Add):
            return left + right
        if isinstance(op, ast.Sub):
            return left - right
    except (ZeroDivisionError, OverflowError):
        pass
    return UNKNOWN


def children_in_order(node: ast.AST) -> Iterable[ast.AST]:
    """The parts of an expression or statement in the order in which they are evaluated."""
    if isinstance(node, ast.Call):
        return [node.func, *node.args, *node.keywords]
    if isinstance(node, ast.Assign):
        return [node.value, *node.targets]
    if isinstance(node, ast.DictComp):
        return [*node.generators, node.key, node.value]
    if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
        return [*node.generators, node.elt]
    return children(node)
