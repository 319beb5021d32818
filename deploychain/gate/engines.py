"""Layers of built engines against limits and the accepted baseline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from deploychain.gate.baseline import BaselineEngine, arithmetic, count_copies, layer_nodes
from deploychain.gate.context import Context, literal, matches
from deploychain.gate.limits import LayerRule
from deploychain.precision import Precision
from deploychain.records import EngineReport, LayerRecord, LayerVerdict
from deploychain.verdicts import Check, Status


def stage_of(engine: str) -> str:
    """The evaluation stage that an engine belongs to: fp16 -> engine-fp16."""
    return engine if engine.startswith("engine-") else f"engine-{engine}"


def judge_layers(context: Context) -> Iterator[Check]:
    """Every layer rule on every built engine that it names."""
    built = {engine.name: engine for engine in context.comparison.engines if engine.built}
    for index, rule in enumerate(context.limits.layers):
        hit = False
        for engine in built.values():
            if matches(engine.name, rule.engine):
                hit = True
                yield from _EngineUnderRule(context, rule, index, engine).judge()
        yield from unmatched(context, "layers", index, rule.required, rule.engine, hit)


def unmatched(
    context: Context, section: str, index: int, required: bool, patterns: Sequence[str], hit: bool
) -> Iterator[Check]:
    """What a required rule names and the run lacks."""
    if not required:
        return
    known = {engine.name for engine in context.comparison.engines}
    absent = [name for name in literal(patterns) if name not in known]
    if not hit and not absent and not any(matches(name, patterns) for name in known):
        absent = [", ".join(patterns)]
    for name in absent:
        message = f"{section}[{index}] limits engine {name}, and the run has none of that name"
        yield Check(stage_of(name), "missing", Status.INCOMPLETE, message, rule=(section, index))


def precisions(engine: BaselineEngine) -> dict[str, str]:
    """Node -> lowest precision of the layers that hold it.

    A node can be in several layers (an INT8 convolution and the layer that requantises for it): its own arithmetic is
    the lowest of them.
    """
    lowest: dict[str, str] = {}
    for layer in engine.layers:
        for node in layer.nodes if layer.compute is not None else ():
            now = lowest.get(node)
            if layer.compute is not None and (now is None or Precision(layer.compute).rank < Precision(now).rank):
                lowest[node] = layer.compute
    return lowest


def moved_nodes(
    layers: Sequence[LayerRecord], before: Mapping[str, str], direction: Literal["higher", "lower"]
) -> Iterator[tuple[LayerRecord, list[str]]]:
    """Layers that compute in a higher or lower precision than in the baseline, with the nodes for which that holds."""
    lowest: dict[str, LayerRecord] = {}
    for layer in layers:
        for node in layer_nodes(layer):
            if layer.compute is not None and (node not in lowest or layer.compute.rank < _rank(lowest[node])):
                lowest[node] = layer
    moved: dict[int, tuple[LayerRecord, list[str]]] = {}
    for node, layer in lowest.items():
        if node in before:
            change = _rank(layer) - Precision(before[node]).rank
            if change > 0 if direction == "higher" else change < 0:
                moved.setdefault(id(layer), (layer, []))[1].append(node)
    yield from moved.values()


def _rank(layer: LayerRecord) -> int:
    return layer.compute.rank if layer.compute is not None else 0


def suspects(context: Context, stage: str) -> tuple[str, str, str]:
    """(nodes, module, source) that may explain a loss: what the stage's engine computes in less than in the baseline.

    All empty where there is no baseline, no such engine, or no such node.
    """
    name = "int8" if stage == "qat" else stage.rpartition("-")[2]
    engine = next((e for e in context.comparison.engines if e.name == name and e.built), None)
    old = context.baseline.engines.get(name) if context.baseline is not None else None
    if engine is None or old is None:
        return "", "", ""
    moved = list(moved_nodes(arithmetic(engine), precisions(old), "lower"))[:5]
    if not moved:
        return "", "", ""
    layer = moved[0][0]
    return " + ".join(node for _, nodes in moved for node in nodes), layer.module or "", layer.source


class _EngineUnderRule:
    def __init__(self, context: Context, rule: LayerRule, index: int, engine: EngineReport) -> None:
        self.context, self.rule, self.index, self.engine = context, rule, index, engine
        self.stage = stage_of(engine.name)
        self.layers: list[LayerRecord] = [
            layer for layer in arithmetic(engine) if any(matches(n, rule.node) for n in layer_nodes(layer))
        ]
        baseline = context.baseline
        self.old: BaselineEngine | None = baseline.engines.get(engine.name) if baseline is not None else None

    def _check(self, kind: str, message: str, status: Status, **fields: object) -> Check:
        field = fields.pop("field", None)
        return Check(
            self.stage,
            kind,
            status,
            message,
            severity=self.rule.severity,
            rule=("layers", self.index, *((str(field),) if field else ())),
            look=f"deploychain report {self.context.run}",
            **fields,  # type: ignore[arg-type]
        )

    def judge(self) -> Iterator[Check]:
        if not self.layers:
            if self.engine.layers and self.rule.node != ("*",):
                what = f"no layer of engine {self.engine.name} matches {', '.join(self.rule.node)}"
            else:
                what = f"engine {self.engine.name} has no layer evidence"
            yield self._check("missing", what, Status.INCOMPLETE)
            return
        for verdict, field, kind, word in (
            (LayerVerdict.FALLBACK, "max_fallback", "fallback", "runs in a higher precision than asked"),
            (LayerVerdict.DEMOTED, "max_demoted", "demoted", "runs in a lower precision than asked"),
            (LayerVerdict.POSSIBLE, "max_possible", "possible-fallback", "may hold a fallback"),
        ):
            limit = getattr(self.rule, field)
            if limit is not None:
                yield from self._count(verdict, field, kind, word, limit)
        if self.rule.max_unknown is not None:
            yield from self._unknown(self.rule.max_unknown)
        yield from self._shares()
        if self.rule.max_copies is not None:
            yield self._total_copies(self.rule.max_copies)
        yield from self._against_baseline()

    def _count(self, verdict: LayerVerdict, field: str, kind: str, word: str, limit: int) -> Iterator[Check]:
        found = [layer for layer in self.layers if layer.verdict is verdict]
        unknown = sum(layer.verdict is LayerVerdict.UNKNOWN for layer in self.layers)
        opaque = sum(layer.verdict is LayerVerdict.POSSIBLE for layer in self.layers)
        if len(found) <= limit:
            hidden = opaque if verdict is not LayerVerdict.POSSIBLE else 0
            open_ends = [f"{unknown} unknown"] * bool(unknown) + [f"{hidden} opaque"] * bool(hidden)
            rest = f"; {' and '.join(open_ends)} could not be judged" if open_ends else ""
            message = (
                f"{len(found)} of {len(self.layers)} layers of engine {self.engine.name}: {word}, limit {limit}{rest}"
            )
            # Not one layer is known: nothing was counted. Whoever limits the opaque ones says how many may be, and
            # nothing of those that are simply unknown.
            blind = unknown + hidden == len(self.layers) and (unknown > 0 or self.rule.max_possible is None)
            status = Status.INCOMPLETE if blind else Status.PASS
            yield self._check(kind, message, status, value=float(len(found)), limit=float(limit), field=field)
            if hidden and not blind and verdict is LayerVerdict.FALLBACK and self.rule.max_possible is None:
                what = f"{hidden} of {len(self.layers)} layers of engine {self.engine.name} are opaque"
                hint = "may hold a fallback: limit them with max_possible"
                yield self._check("possible-fallback", f"{what} and {hint}", Status.NOTE)
            return
        # Each layer is a finding of its own: it has its own node, module and source line.
        for layer in sorted(found, key=lambda x: -(x.share or 0.0)):
            precision = f"{layer.compute or 'unknown'} instead of {layer.asked or self.engine.asked}"
            share = f", {100 * layer.share:.3g} % of the layer time" if layer.share is not None else ""
            reason = f": {layer.reason}" if layer.reason else ""
            yield self._check(
                kind,
                f"layer {layer.name} of engine {self.engine.name} {word} ({precision}{share}){reason}; "
                f"{len(found)} such layers, limit {limit}",
                Status.FAIL,
                node=" + ".join(layer.onnx_nodes) or layer.name,
                module=layer.module or "",
                value=float(len(found)),
                limit=float(limit),
                field=field,
                source=layer.source,
            )

    def _unknown(self, limit: int) -> Iterator[Check]:
        found = [layer for layer in self.layers if layer.verdict is LayerVerdict.UNKNOWN]
        count = {"value": float(len(found)), "limit": float(limit), "field": "max_unknown"}
        if len(found) <= limit:
            what = f"{len(found)} of {len(self.layers)} layers of engine {self.engine.name} could not be judged"
            yield self._check("unknown-layers", f"{what}, limit {limit}", Status.PASS, **count)
            return
        # One finding a layer: a waiver of one says nothing of the others.
        for layer in found:
            yield self._check(
                "unknown-layers",
                f"layer {layer.name} of engine {self.engine.name} could not be judged"
                f"{': ' if layer.reason else ''}{layer.reason}; {len(found)} such layers, limit {limit}",
                Status.INCOMPLETE,
                node=" + ".join(layer.onnx_nodes) or layer.name,
                module=layer.module or "",
                source=layer.source,
                **count,
            )

    def _shares(self) -> Iterator[Check]:
        """Shares between what surely is as asked and what may be: an unknown layer is neither."""
        sure = {LayerVerdict.AS_ASKED, LayerVerdict.EXPECTED}
        may = sure | {LayerVerdict.UNKNOWN, LayerVerdict.POSSIBLE}
        for field, limit in (("min_share", self.rule.min_share), ("min_time_share", self.rule.min_time_share)):
            if limit is None:
                continue
            timed = field == "min_time_share"
            weights = [layer.time_ms if timed else 1.0 for layer in self.layers]
            kind, what = ("time-share", "layer time") if timed else ("layer-share", "layers")
            if any(w is None or not 0 <= w < 1e9 for w in weights) or sum(w or 0.0 for w in weights) <= 0:
                message = f"engine {self.engine.name} was not profiled layer by layer"
                yield self._check(kind, message, Status.INCOMPLETE, limit=limit, field=field)
                continue
            total = sum(w or 0.0 for w in weights)
            pairs = list(zip(weights, self.layers, strict=True))
            low = sum(w or 0.0 for w, layer in pairs if layer.verdict in sure) / total
            high = sum(w or 0.0 for w, layer in pairs if layer.verdict in may) / total
            status = Status.PASS if low >= limit else Status.FAIL if high < limit else Status.INCONCLUSIVE
            upto = f" (up to {100 * high:.3g} %, with those that could not be judged)" if high > low else ""
            message = (
                f"{100 * low:.3g} % of the {what} of engine {self.engine.name} is as asked{upto}, "
                f"limit {100 * limit:.3g} %"
            )
            yield self._check(kind, message, status, value=low, limit=limit, field=field)

    def _total_copies(self, limit: int) -> Check:
        copies = count_copies(self.engine)
        return self._check(
            "copies",
            f"{copies} casts and reformats in engine {self.engine.name}, limit {limit}",
            Status.FAIL if copies > limit else Status.PASS,
            value=float(copies),
            limit=float(limit),
            field="max_copies",
        )

    def _against_baseline(self) -> Iterator[Check]:
        rule, old = self.rule, self.old
        if self.context.baseline is None or (
            rule.max_lost is None
            and rule.max_lowered is None
            and rule.max_lost_fusions is None
            and rule.max_new_copies is None
        ):
            return
        if old is None:
            status = Status.INCOMPLETE if rule.required and literal(rule.engine) else Status.NOTE
            yield self._check("baseline", f"engine {self.engine.name} is not in the baseline", status)
            return
        if rule.max_lost is not None:
            yield from self._moved(old, rule.max_lost, "higher")
        if rule.max_lowered is not None:
            yield from self._moved(old, rule.max_lowered, "lower")
        if rule.max_lost_fusions is not None:
            yield from self._lost_fusions(old, rule.max_lost_fusions)
        if rule.max_new_copies is not None:
            copies = count_copies(self.engine)
            more = copies - old.copies
            yield self._check(
                "new-copies",
                f"{copies} casts and reformats in engine {self.engine.name}, {old.copies} in the baseline, "
                f"{rule.max_new_copies} more allowed",
                Status.FAIL if more > rule.max_new_copies else Status.PASS,
                value=float(copies),
                baseline=float(old.copies),
                limit=float(rule.max_new_copies),
                field="max_new_copies",
            )

    def _moved(self, old: BaselineEngine, limit: int, direction: Literal["higher", "lower"]) -> Iterator[Check]:
        kind, field = ("lost-precision", "max_lost") if direction == "higher" else ("lowered-precision", "max_lowered")
        before = precisions(old)
        moved = list(moved_nodes(self.layers, before, direction))
        count, top = float(len(moved)), float(limit)
        if direction == "higher":
            yield from self._untold(before)
        if len(moved) <= limit:
            message = (
                f"{len(moved)} layers of engine {self.engine.name} run in a {direction} precision "
                f"than in the baseline, limit {limit}"
            )
            yield self._check(kind, message, Status.PASS, value=count, limit=top, field=field)
            return
        for layer, nodes in moved:
            yield self._check(
                kind,
                f"layer {layer.name} of engine {self.engine.name} computes in {layer.compute}, "
                f"in {before[nodes[0]]} in the baseline; {len(moved)} such layers, limit {limit}",
                Status.FAIL,
                node=" + ".join(nodes),
                module=layer.module or "",
                value=count,
                limit=top,
                field=field,
                source=layer.source,
            )

    def _untold(self, before: Mapping[str, str]) -> Iterator[Check]:
        """Nodes whose precision the baseline knows and this engine does not tell."""
        wanted = {node for node in before if matches(node, self.rule.node)}
        told = {node for layer in self.layers if layer.compute is not None for node in layer_nodes(layer)}
        for layer in self.layers:
            nodes = sorted(wanted.intersection(layer_nodes(layer)) - told)
            # An unknown layer is counted by max_unknown already.
            if nodes and layer.verdict is not LayerVerdict.UNKNOWN:
                told.update(nodes)
                yield self._check(
                    "lost-precision",
                    f"layer {layer.name} of engine {self.engine.name} does not tell what it computes in; "
                    f"{before[nodes[0]]} in the baseline",
                    Status.INCOMPLETE,
                    node=" + ".join(nodes),
                    module=layer.module or "",
                    source=layer.source,
                    field="max_lost",
                )
        present = {node for layer in self.engine.layers for node in layer_nodes(layer)}
        gone = sorted(wanted - present)
        if gone:
            names = ", ".join(gone[:5]) + (", ..." if len(gone) > 5 else "")
            counts = f"{len(gone)} of {len(wanted)} nodes of engine {self.engine.name} in the baseline"
            message = f"{counts} are in no layer now: {names}"
            # A change of the model takes nodes away and leaves others; with none left nothing is compared.
            status = Status.INCOMPLETE if len(gone) == len(wanted) else Status.NOTE
            yield self._check("lost-precision", message, status, field="max_lost")

    def _lost_fusions(self, old: BaselineEngine, limit: int) -> Iterator[Check]:
        now = [set(layer_nodes(layer)) for layer in self.layers]
        present = set().union(*now)
        split = []
        for layer in old.layers:
            nodes = [node for node in layer.nodes if node in present]
            if len(nodes) > 1 and not any(held.issuperset(nodes) for held in now):
                split.append((nodes, sum(not held.isdisjoint(nodes) for held in now)))
        over = len(split) > limit
        for nodes, parts in split if over else []:
            yield self._check(
                "lost-fusion",
                f"{' + '.join(nodes)} was one layer of engine {self.engine.name} in the baseline and is {parts} now; "
                f"{len(split)} such layers, limit {limit}",
                Status.FAIL,
                node=" + ".join(nodes),
                value=float(len(split)),
                limit=float(limit),
                field="max_lost_fusions",
            )
        if not over:
            message = f"{len(split)} fusions of the baseline are lost in engine {self.engine.name}, limit {limit}"
            yield self._check(
                "lost-fusion",
                message,
                Status.PASS,
                value=float(len(split)),
                limit=float(limit),
                field="max_lost_fusions",
            )
