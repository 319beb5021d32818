"""Paths through the training events of a function, its loops, and the functions of the file that it calls.

The graph has one node per statement that matters. A path carries what it assumed about conditions (`use_amp`,
`scaler is not None`), so that it never takes the FP32 branch at one `if` and the AMP branch at the next. An assumption
ends where a name in it is assigned. Loops run at least once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from deploychain.audit.amp import Amp
from deploychain.audit.astnames import Scope, argument_for, children_in_order, dotted, last_name
from deploychain.audit.callees import written_as
from deploychain.audit.conditions import (
    about_amp,
    about_skip,
    assigned,
    conditions,
    holds_once,
    periodic,
    renewed,
    target_names,
    with_gradients,
    written_out,
)
from deploychain.audit.dispatch import Dispatch, Frame, variants
from deploychain.audit.events import EventReader
from deploychain.audit.hooks import HookLists, unordered, unscales
from deploychain.audit.object_keys import given_names
from deploychain.audit.paths import Graph, Guard, Node
from deploychain.audit.symbols import Symbols
from deploychain.audit.training_functions import TrainingFunctions
from deploychain.audit.trainsteps import is_a_step
from deploychain.audit.values import words

_MAX_NODES = 4000
_MAX_DEPTH = 5
_MAX_ROUNDS = 4  # of a loop that is written out
_RUN_THEIR_ARGUMENT = words("map filter apply tree_map any all sorted")


class GraphBuilder:
    """Builds the graphs of one file: one per function that nothing in the file calls, and one for the module."""

    def __init__(self, symbols: Symbols, amp: Amp) -> None:
        self.symbols = symbols
        self.reader = EventReader(symbols, amp)
        hooks = HookLists(symbols)
        self.functions = TrainingFunctions(symbols, self.reader, hooks)
        self.dispatch = Dispatch(symbols, hooks, self.functions)

    def graphs(self) -> list[Graph]:
        symbols = self.symbols
        roots: list[tuple[Scope, Scope | None]] = [(symbols.module, None)]
        roots += [(f, f.owner) for f in self.functions.scopes if not symbols.call_sites(f)]
        roots += variants(symbols, self.functions)
        made = (_Build(self, root, concrete).graph() for root, concrete in roots)
        return [g for g in made if any(n.events for n in g.nodes)]


Edge = tuple[Node, tuple[Guard, ...]]


class _Build:
    def __init__(self, builder: GraphBuilder, root: Scope, concrete: Scope | None) -> None:
        self.dispatch, self.functions = builder.dispatch, builder.functions
        self.symbols = builder.symbols
        self.reader = builder.reader
        self.root = root
        self.nodes: list[Node] = []
        self.guards: tuple[Guard, ...] = ()
        self.loops: tuple[int, ...] = ()
        self.loop_kinds: dict[int, ast.AST] = {}
        self.around: dict[int, int] = {}
        self.breaks: list[list[Edge]] = []
        self.continues: list[list[Edge]] = []
        self.returns: list[list[Edge]] = []
        self.stack: list[Scope] = []
        self.frame = Frame(concrete)
        self.said: dict[str, str] = {}  # the strings that the function was called with
        self.early: set[int] = set()  # nodes of `if ...: return`
        self.graded: tuple[Guard, ...] = ()  # what holds where autograd is on: no backward runs without
        self.asked: dict[str, ast.expr] = {}  # the conditions that it was called with: `need_update=(i + 1) % n == 0`

    def graph(self) -> Graph:
        entry = self._node(0)
        self.returns.append([])
        end = self._function(self.root, {}, [(entry, ())])
        made = Graph(self.root, self.nodes, self.loop_kinds, self.around, cut=len(self.nodes) > _MAX_NODES)
        made.concrete = self.frame.concrete
        if not made.cut and is_a_step(self.symbols, made):
            made.implied = True
            again = self._node(0, set(self.root.parameters) - {"self"})
            self._link(end, again)
            again.succ.append((entry, ()))
            number = len(self.loop_kinds)
            self.loop_kinds[number] = self.root.node
            for node in self.nodes:
                node.loops = (number, *node.loops)
        return made

    def _function(self, scope: Scope, names: dict[str, str], frontier: list[Edge]) -> list[Edge]:
        self.stack.append(scope)
        self.returns.append([])
        kept, self.breaks, self.continues = (self.breaks, self.continues), [], []
        before = len(self.nodes)
        frontier = self._body(scope.body, frontier, scope, names)
        for node in self.nodes[before:] if len(self.stack) > 1 else ():
            if node.number in self.early:  # the rest of the helper is the other branch
                node.branches[1] = (node.branches[1][0], len(self.nodes))
                self.early.discard(node.number)
        self.breaks, self.continues = kept
        frontier += self.returns.pop()
        self.stack.pop()
        return frontier

    def _node(self, line: int, kills: Iterable[str] = ()) -> Node:
        node = Node(len(self.nodes), line, kills=frozenset(kills), guards=self.guards, loops=self.loops)
        self.nodes.append(node)
        return node

    def _link(self, frontier: list[Edge], node: Node) -> None:
        for source, guards in frontier:
            source.succ.append((node, guards))

    def _body(self, body: list[ast.stmt], frontier: list[Edge], scope: Scope, names: dict[str, str]) -> list[Edge]:
        outer = self.guards
        for statement in body:
            if not frontier or len(self.nodes) > _MAX_NODES:
                break
            frontier = self._statement(statement, frontier, scope, names)
        self.guards = outer
        return frontier

    def _statement(self, s: ast.stmt, frontier: list[Edge], scope: Scope, names: dict[str, str]) -> list[Edge]:
        if isinstance(
            s, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom | ast.Pass
        ):
            return frontier
        if isinstance(s, ast.If):
            return self._if(s.test, s.body, s.orelse, frontier, scope, names)
        if isinstance(s, ast.For | ast.AsyncFor):
            return self._loop(s, s.iter, s.target, frontier, scope, names)
        if isinstance(s, ast.While):
            return self._loop(s, s.test, None, frontier, scope, names)
        if isinstance(s, ast.With | ast.AsyncWith):
            outer = self.graded
            for item in s.items:
                frontier = self._expression(item.context_expr, frontier, scope, names)
                self.graded += with_gradients(item.context_expr, self.symbols, scope)
            frontier = self._body(s.body, frontier, scope, names)
            self.graded = outer
            return frontier
        if isinstance(s, ast.Try) or type(s).__name__ == "TryStar":
            return self._try(s, frontier, scope, names)  # type: ignore[arg-type]
        if isinstance(s, ast.Match):
            return self._match(s, frontier, scope, names)
        if isinstance(s, ast.Return):
            if s.value is not None:
                frontier = self._expression(s.value, frontier, scope, names)
            self.returns[-1] += frontier
            return []
        if isinstance(s, ast.Break | ast.Continue | ast.Raise):
            left = {ast.Break: self.breaks, ast.Continue: self.continues}.get(type(s))
            if left:
                left[-1] += frontier
            return []
        return self._simple(s, frontier, scope, names)

    def _simple(self, s: ast.stmt, frontier: list[Edge], scope: Scope, names: dict[str, str]) -> list[Edge]:
        frontier = self._expression(s, frontier, scope, names)
        kills = assigned(s)
        event = self.reader.of_assignment(s, scope)
        if event is None and not kills:
            return frontier
        node = self._node(s.lineno, kills)
        node.renews = frozenset(renewed(s))
        if event is not None:
            node.events.append(event)
        if isinstance(s, ast.Assign) and isinstance(s.value, ast.Constant) and isinstance(s.value.value, bool):
            node.sets = dict.fromkeys(kills, s.value.value)
        self._link(frontier, node)
        return [(node, ())]

    def _expression(self, root: ast.AST, frontier: list[Edge], scope: Scope, names: dict[str, str]) -> list[Edge]:
        """Events of an expression in the order of evaluation: arguments before the call."""
        if isinstance(root, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return frontier
        if isinstance(root, ast.Lambda):
            call = self.symbols.parent.get(root)
            run = isinstance(call, ast.Call) and last_name(call.func) in _RUN_THEIR_ARGUMENT
            return self._expression(root.body, frontier, scope, names) if run else frontier
        if isinstance(root, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) and self.functions.any_in(
            root, scope
        ):
            return self._comprehension(root, frontier, scope, names)
        if isinstance(root, ast.IfExp):
            return self._if(root.test, [root.body], [root.orelse], frontier, scope, names)
        for child in children_in_order(root):
            frontier = self._expression(child, frontier, scope, names)
        if isinstance(root, ast.Call):
            frontier = self._call(root, frontier, scope, names)
        return frontier

    def _comprehension(
        self, root: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
        frontier: list[Edge], scope: Scope, names: dict[str, str],
    ) -> list[Edge]:  # fmt: skip
        first = root.generators[0]
        frontier = self._expression(first.iter, frontier, scope, names)
        parts: list[ast.expr] = [*first.ifs]
        for later in root.generators[1:]:
            parts += [later.iter, *later.ifs]
        parts += [root.key, root.value] if isinstance(root, ast.DictComp) else [root.elt]
        every = self._each(first.target, first.iter, scope, names) if len(root.generators) == 1 else []
        if every:
            for given in every:
                for part in parts:
                    frontier = self._expression(part, frontier, scope, given)
            return frontier
        number = self._open_loop(root)
        top = self._node(root.lineno, target_names(first.target))
        top.renews = top.kills
        self._link(frontier, top)
        end: list[Edge] = [(top, ())]
        for part in parts:
            end = self._expression(part, end, scope, names)
        again = self._node(root.lineno)
        self._link(end, again)
        again.succ.append((top, ()))
        self.loops = self.loops[: self.loops.index(number)]
        return [(again, ())]

    def _each(self, target: ast.expr, values: ast.expr, scope: Scope, names: dict[str, str]) -> list[dict[str, str]]:
        """The names of each round of a loop over a few objects that the file names, else nothing."""
        items = self.reader.items(values, scope, names)
        if not 2 <= len(items) <= _MAX_ROUNDS:
            return []
        rounds = [given for item in items if (given := given_names(target, item))]
        return [{**names, **given} for given in rounds] if len(rounds) == len(items) else []

    def _open_loop(self, node: ast.AST) -> int:
        number = len(self.loop_kinds)
        self.loop_kinds[number] = node
        if self.loops:
            self.around[number] = self.loops[-1]
        self.loops = (*self.loops, number)
        return number

    def _call(self, call: ast.Call, frontier: list[Edge], scope: Scope, names: dict[str, str]) -> list[Edge]:
        inner = self.dispatch.runs(call, scope, self.frame, self.said)
        if inner is not None and self._follows(inner):
            return self._inside(inner, call, frontier, names)
        event = self.reader.of_call(call, scope, names) or self.reader.is_grad_argument(call, scope)
        if event is None:
            return frontier if inner is not None else self._hooks(call, frontier, scope, names)
        if inner is not None and (event.kind == "opaque" or self.dispatch.is_empty_override(inner, self.frame)):
            return frontier  # the file shows that function, and nothing happens in it
        node = self._node(call.lineno)
        node.events.append(event)
        if event.kind == "backward":
            frontier = [(source, guards + self.graded) for source, guards in frontier]
        self._link(frontier, node)
        return [(node, ())]

    def _follows(self, inner: Scope) -> bool:
        return len(self.stack) < _MAX_DEPTH and inner not in self.stack and inner in self.functions

    def _inside(self, inner: Scope, call: ast.Call, frontier: list[Edge], names: dict[str, str]) -> list[Edge]:
        mapped = {}
        said: dict[str, str] = {}
        asked: dict[str, ast.expr] = {}
        unnamed: set[str] = set()
        scope = self.symbols.scope(call)
        for parameter in inner.parameters:
            argument = argument_for(call, inner, parameter)
            if argument is not None and dotted(argument) is None:
                unnamed.add(parameter)
            if isinstance(argument, ast.Name | ast.Compare | ast.BoolOp | ast.UnaryOp):
                asked[parameter] = self._written_out(argument, scope)
            if argument is not None and dotted(argument) is not None:
                mapped[parameter] = self.reader.key(argument, names)
                mapped |= self.reader.parts(parameter, argument, scope, names)
            elif isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                said[parameter] = argument.value
        func = written_as(self.symbols, call.func, scope)
        own = func if inner.name == "__call__" and last_name(func) != "__call__" else getattr(func, "value", None)
        if inner.owner is not None and isinstance(own, ast.expr) and dotted(own) is not None:
            mapped["self"] = self.reader.key(own, names)
            mapped |= self.reader.parts("self", own, scope, names)
        # Inside, names mean other things: what is assumed about the caller's names must not leak in.
        node = self._node(call.lineno)
        node.renews = frozenset(unnamed)
        self._link(frontier, node)
        before = self.guards, self.said, self.asked, self.frame, self.graded
        self.said, self.asked, self.frame = said, asked, self.dispatch.inside(call, inner, self.frame)
        self.graded = tuple(g for g in self.graded if g[0].startswith("self.") and inner.owner is not None)
        out = self._function(inner, mapped, [(node, ())])
        self.guards, self.said, self.asked, self.frame, self.graded = before
        return out

    def _hooks(self, call: ast.Call, frontier: list[Edge], scope: Scope, names: dict[str, str]) -> list[Edge]:
        """`for hook in hooks: hook.after_backward(self)` of a list that is not known: one of those that unscale, if
        there are any, and then all others."""
        every = [f for f in unordered(self.symbols, call, scope, self.said) if self._follows(f)]
        first = [f for f in every if unscales(f)]
        if first:
            frontier = [edge for f in first for edge in self._inside(f, call, frontier, names)]
        for function in every:
            if function not in first:
                frontier = self._inside(function, call, frontier, names)
        return frontier

    def _if(
        self, test: ast.expr, body: list[ast.stmt] | list[ast.expr], orelse: list[ast.stmt] | list[ast.expr],
        frontier: list[Edge], scope: Scope, names: dict[str, str],
    ) -> list[Edge]:  # fmt: skip
        frontier = self._expression(test, frontier, scope, names)
        node = self._node(test.lineno)
        node.once = holds_once(test)
        node.amp, node.skip = about_amp(test), about_skip(test, self.symbols, scope)
        node.periodic = periodic(test, self.symbols, scope)
        test = self._written_out(test, scope)
        self._link(frontier, node)
        yes, no = conditions(test, True), conditions(test, False)
        outs: list[list[Edge]] = []
        outer = self.guards
        for part, guards in ((body, yes), (orelse, no)):
            start = len(self.nodes)
            self.guards = outer + guards
            edges: list[Edge] = [(node, guards)]
            if part and isinstance(part[0], ast.stmt):
                edges = self._body(part, edges, scope, names)
            else:
                for expr in part:
                    edges = self._expression(expr, edges, scope, names)
            node.branches.append((start, len(self.nodes)))
            node.leaves.append(not edges)
            outs.append(edges)
        self.guards = outer
        if isinstance(body[-1], ast.Return) and not orelse:
            self.early.add(node.number)
        # After `if not amp: ...; continue` the rest runs only with amp.
        if not outs[0]:
            self.guards = outer + no
        elif not outs[1]:
            self.guards = outer + yes
        return outs[0] + outs[1]

    def _written_out(self, test: ast.expr, scope: Scope) -> ast.expr:
        """A condition in the caller's words where it is an argument, else in its own."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self._written_out(test.operand, scope)
            return test if inner is test.operand else ast.copy_location(ast.UnaryOp(ast.Not(), inner), test)
        if isinstance(test, ast.Name) and test.id in self.asked and test.id in scope.parameters:
            return self.asked[test.id] if test.id not in scope.bindings else test
        return written_out(test, self.symbols, scope)

    def _loop(
        self, s: ast.For | ast.AsyncFor | ast.While, head: ast.expr, target: ast.expr | None,
        frontier: list[Edge], scope: Scope, names: dict[str, str],
    ) -> list[Edge]:  # fmt: skip
        frontier = self._expression(head, frontier, scope, names)
        every = self._each(target, head, scope, names) if target is not None and self.functions.any_in(s, scope) else []
        frames = [self.frame] * len(every) or self.dispatch.rounds(s, scope, self.frame, self.said)
        if frames:
            return self._rounds(s, every or [names] * len(frames), frames, frontier, scope)
        outer_loops, outer_guards = self.loops, self.guards
        self._open_loop(s)
        kills = target_names(target) if target is not None else set()
        top = self._node(s.lineno, kills)
        top.renews = top.kills
        self._link(frontier, top)
        self.breaks.append([])
        self.continues.append([])
        end = self._body(s.body, [(top, ())], scope, names)
        again = self._node(s.lineno)
        self._link(end + self.continues.pop(), again)
        again.succ.append((top, ()))
        self.loops, self.guards = outer_loops, outer_guards
        out: list[Edge] = self.breaks.pop()
        if not (isinstance(s, ast.While) and isinstance(s.test, ast.Constant) and s.test.value):
            out = [*out, (again, ())]
        if s.orelse:
            out = self._body(s.orelse, out, scope, names)
        return out

    def _rounds(
        self, s: ast.For | ast.AsyncFor | ast.While, every: list[dict[str, str]], frames: list[Frame],
        frontier: list[Edge], scope: Scope,
    ) -> list[Edge]:  # fmt: skip
        """`for opt in (opt_g, opt_d)`, `for hook in self.hooks`: the body once for each."""
        self.breaks.append([])
        outer = self.frame
        for given, self.frame in zip(every, frames, strict=True):
            self.continues.append([])
            top = self._node(s.lineno, {n for n in given if n not in scope.parameters})
            self._link(frontier, top)
            frontier = self._body(s.body, [(top, ())], scope, given) + self.continues.pop()
        self.frame = outer
        return (self._body(s.orelse, frontier, scope, every[-1]) if s.orelse else frontier) + self.breaks.pop()

    def _try(self, s: ast.Try, frontier: list[Edge], scope: Scope, names: dict[str, str]) -> list[Edge]:
        entry = self._node(s.lineno)
        self._link(frontier, entry)
        out = self._body(s.body, [(entry, ())], scope, names)
        if s.orelse:
            out = self._body(s.orelse, out, scope, names)
        for handler in s.handlers:
            out = out + self._body(handler.body, [(entry, ())], scope, names)
        if s.finalbody:
            out = self._body(s.finalbody, out, scope, names)
        return out

    def _match(self, s: ast.Match, frontier: list[Edge], scope: Scope, names: dict[str, str]) -> list[Edge]:
        node = self._node(s.lineno)
        self._link(frontier, node)
        out: list[Edge] = [(node, ())]
        for case in s.cases:
            out = out + self._body(case.body, [(node, ())], scope, names)
        return out
