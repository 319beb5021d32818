"""R07: whose parameters are clipped, and whose the unscaled optimiser holds."""

from __future__ import annotations

import ast
import re

from deploychain.audit.astnames import Scope, argument_for, dotted, last_name, returns, strip_module_calls
from deploychain.audit.context import Context
from deploychain.audit.events import Event
from deploychain.audit.tree import walk

Key = tuple[int, str]
_STEPS = 40  # of following one name
_WRAPS = re.compile(r"wrap|ddp|fsdp|parallel|prepare|^getattr$", re.IGNORECASE)


def modules_of(node: ast.AST) -> set[str]:
    """ "net" of every `net.parameters()` in an expression."""
    return {text for expr in _holders(node) if (text := dotted(expr)) is not None}


def other_parameters(ctx: Context, unscale: Event, clip: Event) -> bool:
    """The unscaled optimiser surely holds other parameters than those that are clipped."""
    clipped = modules_of(clip.node)
    if not clipped or not isinstance(unscale.node, ast.Call) or not unscale.node.args:
        return False
    held: set[str] = set()
    made: list[tuple[ast.expr, Scope]] = []
    apart = False
    for ref in ctx.symbols.resolve(unscale.node.args[0], unscale.scope):
        if not isinstance(ref.expr, ast.Call):
            return False
        names = modules_of(ref.expr)
        if not names:
            return False
        own = all(n.startswith("self.") for n in (*names, *clipped))
        apart = apart or (ref.scope is not clip.scope and not own)
        held |= names
        made += [(expr, ref.scope) for expr in _holders(ref.expr)]
    if not apart:
        if any(a == b or a.startswith(b + ".") or b.startswith(a + ".") for a in clipped for b in held):
            return False
        # Two names, one model: `self.raw_model = self.model.module`, `ddp = DDP(net)`.
        theirs = [_origins(ctx, expr, scope, partly=True) for expr, scope in made]
        ours = [_origins(ctx, expr, clip.scope, partly=True) for expr in _holders(clip.node)]
        return not any(_related(a, b) for mine in ours for a in mine for other in theirs for b in other)
    # The names of two functions: `model` in __init__ is `self.model` here. They are followed to where they are made.
    if any(_more(ctx, ref.expr) for ref in ctx.symbols.resolve(unscale.node.args[0], unscale.scope)):
        return False
    theirs = [_origins(ctx, expr, scope) for expr, scope in made]
    ours = [_origins(ctx, expr, clip.scope) for expr in _holders(clip.node)]
    if not all((*theirs, *ours)):
        return False
    return not any(_related(a, b) for mine in ours for a in mine for other in theirs for b in other)


def _holders(node: ast.AST) -> list[ast.expr]:
    return [
        n.value for n in walk(node) if isinstance(n, ast.Attribute) and n.attr in ("parameters", "named_parameters")
    ]


def _more(ctx: Context, made: ast.expr) -> bool:
    """The optimiser gets parameters by another way as well: `[{"params": extra}, ...]`, `*groups`."""
    first = made.args[0] if isinstance(made, ast.Call) and made.args else None
    if first is None or isinstance(first, ast.Starred):
        return True
    entries = first.elts if isinstance(first, ast.List | ast.Tuple) else [first]
    return any(not _holders(e) for e in entries)


def _related(a: Key, b: Key) -> bool:
    return a[0] == b[0] and (a[1] == b[1] or a[1].startswith(b[1] + ".") or b[1].startswith(a[1] + "."))


def _origins(ctx: Context, expr: ast.expr, scope: Scope, *, partly: bool = False) -> set[Key]:
    """Every name that an object goes by, those of the modules it is put together from among them; empty where one
    of them leads out of the file's sight, unless `partly`: then those that are known."""
    symbols = ctx.symbols
    found: set[Key] = set()
    queue = [(expr, scope, 0)]
    certain = False
    for _ in range(_STEPS):
        if not queue:
            return found if certain or partly else set()
        value, where, place = queue.pop()
        value = strip_module_calls(value)
        if isinstance(value, ast.Call):
            function = symbols.local_function(value.func, where)
            if function is None:
                certain = True  # it is made here
                same = partly and _WRAPS.search(last_name(value.func)) is not None
                queue += [(a, where, 0) for a in _parts(value) if same or _is_made(ctx, a, where)]
                continue
            for result in returns(function):
                each = result.elts if isinstance(result, ast.Tuple) else [result]
                if place < len(each):
                    queue.append((each[place], function, 0))
            continue
        text = dotted(value)
        if text is None:
            if partly:
                queue += [(a, where, 0) for a in (value.body, value.orelse)] if isinstance(value, ast.IfExp) else []
                continue
            return set()
        bindings = symbols.bindings(text, where)
        function = symbols.parameter_scope(text, where) if isinstance(value, ast.Name) and not bindings else None
        home = function or (bindings[0].scope if bindings else symbols.module)
        if text.startswith("self."):
            home = symbols.class_of(where) or home
        key = (id(home), text)
        if key in found:
            continue
        found.add(key)
        if function is not None:
            sites = symbols.call_sites(function)
            if function.name == "__init__" and function.owner is not None:
                sites = symbols.constructions(function.owner)
            given = [(a, symbols.scope(c), 0) for c in sites if (a := argument_for(c, function, text)) is not None]
            if not partly and (not given or len(given) != len(sites)):
                return set()
            queue += given
        elif not partly and (not bindings or any(b.value is None or b.loop for b in bindings)):
            return set()
        queue += [(b.value, b.scope, b.place or 0) for b in bindings if b.value is not None]
    return found if partly else set()


def _parts(call: ast.Call) -> list[ast.expr]:
    return [a for a in (*call.args, *(k.value for k in call.keywords)) if dotted(a) is not None]


def _is_made(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    """A module, as far as a call with a capital letter is one."""
    return any(isinstance(strip_module_calls(r.expr), ast.Call) for r in ctx.symbols.resolve(expr, scope))
