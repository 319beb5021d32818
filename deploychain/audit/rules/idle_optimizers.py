"""R28: optimisers that the scaler steps though their parameters get no gradient, always or in some iterations."""

# ruff: noqa: E501  (messages are one piece of text)
from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.astnames import Ref, Scope, dotted, keyword, last_name
from deploychain.audit.conditions import asks_for_amp, condition_text, written_out
from deploychain.audit.context import ERROR, Context
from deploychain.audit.events import Event
from deploychain.audit.finding import Finding
from deploychain.audit.paths import Graph, Node
from deploychain.audit.rules.module_uses import uses
from deploychain.audit.rules.scaler_bypass import is_live
from deploychain.audit.tree import walk
from deploychain.audit.values import words

# A count of the run, or chance: what is asked of it is true in some iterations only.
_COUNTS = re.compile(
    r"^_?(cur(rent)?_?|global_?|n_?|num_?|total_?|train_?)?(epoch|ep|step|steps|iter|iters|iteration|it|i|batch_idx|batch_i|idx|updates)(_?(num|idx|no|count|nr))?$"
)
_TRAINS = words("backward step update zero_grad fit train_step training_step train_epoch train_one_epoch")
_CHANCE = re.compile(r"^(rand|random|randint|uniform|choice|bernoulli)$")


def idle_optimizers(ctx: Context) -> Iterator[Finding]:
    if "zero_grad" not in ctx.text or "set_to_none=False" in ctx.text:
        return
    done: set[int] = set()
    for graph in ctx.graphs:
        if not graph.events("backward") or graph.events("opaque"):
            continue
        for node, event in graph.events("scaler-step"):
            if id(event.node) not in done and is_live(ctx, event) and (why := _idle(ctx, graph, node, event)):
                done.add(id(event.node))
                yield _finding(ctx, event, why)


def _finding(ctx: Context, event: Event, why: str) -> Finding:
    name = event.key if event.key != "*" else "this optimiser"
    return ctx.finding(
        "R28", event.node, ERROR,
        f"{why}, but `{name}` is stepped in every iteration: without a gradient scaler.step raises \"No inf checks were recorded for this "
        "optimizer\"",
        f"step it under the condition under which its parameters get a gradient:\nif ...:\n    {ctx.str(event.node)}",
    )  # fmt: skip


def _idle(ctx: Context, graph: Graph, node: Node, event: Event) -> str:
    """Why the parameters of a stepped optimiser get no gradient in some iterations; empty where they may get one."""
    made = _made(ctx, graph, event)
    if made is None or not isinstance(made.expr, ast.Call) or keyword(made.expr, "fused") is not None:
        return ""
    guards = {t for t, _ in node.guards}
    given = made.expr.args[0] if made.expr.args else keyword(made.expr, "params")
    if given is None:
        return ""
    if isinstance(ctx.symbols.parent.get(made.expr), ast.DictComp):
        return _one_of_table(ctx, given, made, guards, event)
    names = _owned(given)
    every: list[ast.expr] = []
    for name in names:
        found = uses(ctx, name, made.scope)
        if found is None:
            return ""
        every += found
    if not every or not names:
        return ""
    if all(_without_grad(ctx, u) for u in every):
        return f"`{names[0]}` is only used without gradients" if not guards - _fixed(guards) else ""
    tests: list[str] = []
    for use in (u for u in every if not _without_grad(ctx, u)):
        test = _varying(ctx, use, guards)
        if not test:
            return ""
        tests.append(test)
    return f"`{names[0]}` takes part in the loss only where `{tests[0]}` says so"


def _made(ctx: Context, graph: Graph, event: Event) -> Ref | None:
    """The construction of the optimiser."""
    bindings = ctx.symbols.bindings(event.key, graph.root) if event.key != "*" else []
    found = [Ref(b.value, b.scope) for b in bindings if b.value is not None and not b.loop and b.place is None]
    if not found and isinstance(event.node, ast.Call) and event.node.args:
        name = event.node.args[0]
        found = [r for r in ctx.symbols.resolve(name, event.scope) if r.expr is not name] if not bindings else []
        found = found or _of_table(ctx, name, event.scope)
    elif len(found) != len(bindings):
        return None
    if len(found) != 1 or not isinstance(found[0].expr, ast.Call):
        return None
    return found[0] if (ctx.symbols.qual(found[0].expr.func, found[0].scope) or "").startswith("torch.optim.") else None


def _of_table(ctx: Context, expr: ast.expr, scope: Scope) -> list[Ref]:
    """`for o in opts.values()` of `opts = {k: SGD(h.parameters()) for k, h in heads.items()}`: the one construction."""
    for binding in ctx.symbols.bindings(dotted(expr) or "", scope):
        source = binding.value
        if binding.loop and isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) and not source.args:
            tables = ctx.symbols.resolve(source.func.value, binding.scope)
            return [Ref(t.expr.value, t.scope) for t in tables if isinstance(t.expr, ast.DictComp)]
    return []


def _owned(given: ast.expr) -> list[str]:
    """The modules and parameters that an optimiser is given; empty where one of them has no name."""
    entries = given.elts if isinstance(given, ast.List | ast.Tuple) else [given]
    found: list[str] = []
    for entry in entries:
        inside = entry.value if isinstance(entry, ast.Starred) else entry
        if isinstance(inside, ast.Dict):
            keys = [getattr(k, "value", None) for k in inside.keys]
            inside = inside.values[keys.index("params")] if "params" in keys else inside
        if (
            isinstance(inside, ast.Call)
            and isinstance(inside.func, ast.Attribute)
            and last_name(inside.func) == "parameters"
        ):
            inside = inside.func.value
        elif entry is given:
            return []  # a list under a name
        text = dotted(inside)
        if text is None:
            return []
        found.append(text)
    return found


def _fixed(guards: set[str]) -> set[str]:
    """Conditions that do not change from iteration to iteration, or that ask for the scaler or an accumulated step."""
    return {g for g in guards if asks_for_amp(g) or "%" in g}


def _varying(ctx: Context, use: ast.expr, guards: set[str]) -> str:
    """The condition around a use that holds in some iterations only and that the step does not share."""
    node: ast.AST = use
    above = ctx.symbols.parent.get(node)
    own: dict[str, bool] = {}
    while above is not None and not isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        if isinstance(above, ast.If | ast.IfExp) and node is not above.test:
            asked = _asked(ctx, above.test, ctx.symbols.scope(above))
            for text in (condition_text(above.test), condition_text(asked)):
                own[text] = _varies(ctx, asked, ctx.symbols.scope(above))
        node, above = above, ctx.symbols.parent.get(above)
    function = ctx.symbols.scope(use)
    tests = [t for t, varies in own.items() if varies]
    if not tests or guards - set(own) - {g for g in guards if asks_for_amp(g) or ("%" in g and "%" not in tests[0])}:
        return ""
    shared = any(t in guards or any(_same_question(t, g) for g in guards) for t in tests)
    return "" if shared or function is None else tests[-1]


def _same_question(test: str, guard: str) -> bool:
    return test.replace(" ", "") == guard.replace(" ", "")


def _asked(ctx: Context, test: ast.expr, scope: Scope) -> ast.expr:
    """The condition behind a name, or behind a parameter that one call gives."""
    if isinstance(test, ast.Name) and ctx.symbols.parameter_scope(test.id, scope) is not None:
        refs = ctx.symbols.resolve(test, scope)
        return refs[0].expr if len(refs) == 1 else test
    return written_out(test, ctx.symbols, scope)


def _varies(ctx: Context, test: ast.expr, scope: Scope) -> bool:
    """A comparison of a count of the run, or chance."""
    for node in walk(test):
        if isinstance(node, ast.Call) and _CHANCE.match(last_name(node.func)):
            return True
        if not isinstance(node, ast.Name | ast.Attribute) or isinstance(ctx.symbols.parent.get(node), ast.Attribute):
            continue
        if _COUNTS.match(last_name(node)) and _of_the_run(ctx, node, scope):
            return isinstance(test, ast.Compare | ast.BinOp | ast.BoolOp | ast.UnaryOp)
    return False


def _of_the_run(ctx: Context, count: ast.expr, scope: Scope) -> bool:
    """Not the index of a loop over layers inside one step."""
    name = dotted(count)
    loops = [b.node for b in ctx.symbols.bindings(name or "", scope) if b.loop]
    if loops:
        return any(
            isinstance(loop, ast.For)
            and any(isinstance(n, ast.Call) and last_name(n.func) in _TRAINS for n in walk(loop))
            for loop in loops
        )
    return last_name(count) not in ("i", "idx", "it")


def _without_grad(ctx: Context, use: ast.expr) -> bool:
    above = ctx.symbols.parent.get(use)
    while above is not None:
        if isinstance(above, ast.With):
            names = [i.context_expr.func for i in above.items if isinstance(i.context_expr, ast.Call)]
            if any(last_name(n) in ("no_grad", "inference_mode") for n in names):
                return True
        if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = [d.func if isinstance(d, ast.Call) else d for d in above.decorator_list]
            return any(last_name(d) in ("no_grad", "inference_mode") for d in decorators)
        above = ctx.symbols.parent.get(above)
    return False


def _one_of_table(ctx: Context, given: ast.expr, made: Ref, guards: set[str], event: Event) -> str:
    """One optimiser for each head, and in each iteration one head: `heads[task](x)`, then a step of every optimiser."""
    table = ctx.symbols.parent.get(made.expr)
    assert isinstance(table, ast.DictComp)
    source = table.generators[0].iter
    heads = (
        dotted(source.func.value) if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) else None
    )
    if (
        heads is None
        or guards - _fixed(guards)
        or not isinstance(given, ast.Call)
        or last_name(given.func) != "parameters"
    ):
        return ""
    chosen: list[ast.Name] = []
    for node in walk(event.scope.node):
        if (
            not isinstance(node, ast.Name | ast.Attribute)
            or dotted(node) != heads
            or not isinstance(node.ctx, ast.Load)
        ):
            continue
        parent = ctx.symbols.parent.get(node)
        if isinstance(parent, ast.Subscript) and isinstance(parent.slice, ast.Name):
            chosen.append(parent.slice)
        elif not (isinstance(parent, ast.Attribute) and _of_parameters(ctx, parent)):
            return ""
    for key in chosen:
        bindings = ctx.symbols.bindings(key.id, event.scope)
        if (
            len(bindings) != 1
            or bindings[0].loop
            or not isinstance(bindings[0].value, ast.IfExp | ast.Call | ast.Subscript)
        ):
            return ""
    return f"each iteration trains one of `{heads}`, that of `{chosen[0].id}`" if chosen else ""


def _of_parameters(ctx: Context, parent: ast.Attribute) -> bool:
    """`heads.items()` in the table of optimisers, or in a loop that moves or freezes them."""
    loop = ctx.symbols.parent.get(ctx.symbols.parent.get(parent) or parent)
    inside = [n for n in walk(loop) if isinstance(n, ast.Call)] if isinstance(loop, ast.For) else []
    return isinstance(loop, ast.comprehension) or all(
        last_name(c.func) in ("items", "values", "cuda", "to", "train", "eval", "requires_grad_") for c in inside
    )


def _frozen(ctx: Context) -> dict[str, bool]:
    """Modules whose parameters are frozen; True where they are thawed later, in some epoch of the run."""
    frozen: set[str] = set()
    thawed: set[str] = set()
    later: set[str] = set()
    for call, scope in ctx.calls_named("requires_grad_"):
        if isinstance(call.func, ast.Attribute):
            off = bool(call.args) and ctx.symbols.const(call.args[0], scope) is False
            side = frozen if off else later if _in_some_epoch(ctx, call) else thawed
            side.update(_module_of(ctx, call.func.value, scope))
    for node in ctx.symbols.nodes(ast.Assign):  # for p in net.parameters(): p.requires_grad = False
        for target in node.targets:
            if isinstance(target, ast.Attribute) and target.attr == "requires_grad":
                off = isinstance(node.value, ast.Constant) and node.value.value is False
                conditional = isinstance(ctx.symbols.parent.get(node), ast.If)
                names = _module_of(ctx, target.value, ctx.symbols.scope(node))
                side = frozen if off and not conditional else later if _in_some_epoch(ctx, node) else thawed
                side.update(names)
    return {name: name in later for name in frozen - thawed}


def _in_some_epoch(ctx: Context, node: ast.AST) -> bool:
    """`if epoch == 5:` around what thaws, in the function that trains."""
    above = ctx.symbols.parent.get(node)
    while above is not None and not isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef):
        if isinstance(above, ast.If) and _varies(ctx, above.test, ctx.symbols.scope(above)):
            return True
        above = ctx.symbols.parent.get(above)
    return False


def _module_of(ctx: Context, expr: ast.expr, scope: Scope) -> set[str]:
    """The module itself, or for a parameter the module whose parameters the loop goes through."""
    text = dotted(expr) or ""
    for binding in ctx.symbols.bindings(text, scope):
        if binding.loop and isinstance(binding.value, ast.Call) and isinstance(binding.value.func, ast.Attribute):
            return {dotted(binding.value.func.value) or ""} - {""}
    return {text} - {""}


def without_gradients(ctx: Context) -> Iterator[Finding]:
    """scaler.step on an optimiser of parameters that are all frozen."""
    if "requires_grad" not in ctx.text:
        return
    names = _frozen(ctx)
    if not names or ("requires_grad = True" in ctx.text and not any(names.values())):
        return
    for graph in ctx.graphs:
        for node, event in graph.events("scaler-step"):
            if not isinstance(event.node, ast.Call) or not event.node.args:
                continue
            for ref in ctx.symbols.resolve(event.node.args[0], event.scope):
                if not isinstance(ref.expr, ast.Call) or not ref.expr.args:
                    continue
                first = ref.expr.args[0]
                if (
                    isinstance(first, ast.Call)
                    and last_name(first.func) == "parameters"
                    and isinstance(first.func, ast.Attribute)
                ):
                    name = dotted(first.func.value)
                    if name in names and not (names[name] and {t for t, _ in node.guards} - {"self.training"}):
                        thawed = " until it is thawed" if names[name] else ""
                        yield ctx.finding(
                            "R28", event.node, ERROR,
                            f"every parameter of `{name}` is frozen{thawed}, so this optimiser gets no gradients: \"No inf checks were recorded for this "
                            "optimizer\"",
                            "build the optimiser from the parameters that require gradients",
                        )  # fmt: skip
