"""Two engines compared: aligned by ONNX nodes, because layer names change with every fusion."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Literal

from deploychain.engine.classify import ARITHMETIC, is_matrix_layer, is_qdq_node
from deploychain.engine.evidence import Evidence
from deploychain.engine.judge import MATRIX_OPS
from deploychain.engine.model import Run, Stat
from deploychain.errors import ConfigError
from deploychain.precision import Precision
from deploychain.records import LayerKind, LayerRecord, to_json

DIFF_SCHEMA = "deploychain.diff/1"
ChangeKind = Literal["precision", "fused", "split", "regrouped", "only-a", "only-b", "same"]

# Options that change what a latency means: (section keys by any of their spellings, what it is called here).
_CONDITIONS = (
    (("CUDA Graph",), "CUDA graph"),
    (("Spin-wait",), "spin wait"),
    (("Data transfers",), "data transfers"),
    (("Inference Streams", "Streams"), "inference streams"),
    (("Batch", "Max batch"), "batch"),
    (("Input inference shapes", "Input inference shape", "Input inference shape "), "input shapes"),
    (("Multithreading",), "multithreading"),
    (("ExposeDMA",), "exposed DMA"),
    (("DLACore",), "DLA core"),
)


@dataclass(frozen=True, slots=True)
class Change:
    """One group of layers of A and B that hold the same ONNX nodes."""

    kind: ChangeKind
    nodes: tuple[str, ...]
    a: tuple[LayerRecord, ...]
    b: tuple[LayerRecord, ...]
    how: str = "nodes"  # aligned by "nodes", by layer "name", or by "order" (operators and shapes: a guess)

    @property
    def share_a(self) -> float | None:
        return _sum(layer.share for layer in self.a)

    @property
    def share_b(self) -> float | None:
        return _sum(layer.share for layer in self.b)


@dataclass(frozen=True, slots=True)
class EngineDiff:
    """What differs between two engines or two runs of one."""

    a: Evidence
    b: Evidence
    changes: tuple[Change, ...]
    comparable: bool  # whether latencies were measured under the same conditions
    reasons: tuple[str, ...]  # why not
    anyway: bool = False

    @property
    def times_shown(self) -> bool:
        return self.comparable or self.anyway

    def of_kind(self, *kinds: ChangeKind) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.kind in kinds)

    def headline(self) -> str:
        """The one line to read first."""
        if self.a.summary is None or self.b.summary is None or not self.a.layers or not self.b.layers:
            return "One side lists no layers: the engines cannot be compared layer by layer."
        if not any(change.a and change.b for change in self.changes):
            return "The two engines have no layer or ONNX node in common: they are of different models."
        parts = [f"{len(self.of_kind('precision'))} precision changes"]
        for kind, word in (("fused", "fused further in B"), ("split", "split in B"), ("regrouped", "regrouped")):
            found = self.of_kind(kind)  # type: ignore[arg-type]
            if found:
                parts.append(f"{len(found)} {word}")
        for kind, word in (("only-a", "only in A"), ("only-b", "only in B")):
            found = self.of_kind(kind)  # type: ignore[arg-type]
            if found:
                parts.append(f"{len(found)} {word}")
        same = len(self.of_kind("same"))
        guessed = sum(change.how == "order" for change in self.changes)
        note = f" {guessed} groups were paired by operators and shapes: a guess." if guessed else ""
        return f"{', '.join(parts)}; {same} layer groups are the same.{note} {self._latency()}"

    def _latency(self) -> str:
        one, two = _latency(self.a), _latency(self.b)
        if one is None or two is None or one.mean is None or two.mean is None:
            return "No latency to compare."
        if not self.times_shown:
            return f"Latencies are not compared: {self.reasons[0]}."
        change = f" ({(two.mean / one.mean - 1) * 100:+.1f} %)" if one.mean else ""
        note = "" if self.comparable else f" although {self.reasons[0]}"
        return f"Latency {one.mean:.4g} -> {two.mean:.4g} ms{change}{note}."

    def to_json(self) -> dict[str, Any]:
        """The document of ``deploychain diff --json`` (schema ``deploychain.diff/1``)."""
        one, two = _latency(self.a), _latency(self.b)
        document = {
            "schema": DIFF_SCHEMA,
            "headline": self.headline(),
            "a": _side(self.a),
            "b": _side(self.b),
            "comparable": self.comparable,
            "reasons": self.reasons,
            "latency_ms": {"a": one, "b": two} if self.times_shown and one is not None and two is not None else None,
            "changes": [
                {
                    "kind": change.kind,
                    "how": change.how,
                    "nodes": change.nodes,
                    "a": [_layer(layer, self.times_shown) for layer in change.a],
                    "b": [_layer(layer, self.times_shown) for layer in change.b],
                }
                for change in self.changes
            ],
            "summary": {
                **{k: len(self.of_kind(k)) for k in ("precision", "fused", "split", "regrouped", "same")},
                "only_a": len(self.of_kind("only-a")),
                "only_b": len(self.of_kind("only-b")),
            },
        }
        made: dict[str, Any] = to_json(document)
        return made


def files_of(path: Path) -> list[str | os.PathLike[str]]:
    """A file, or the files of a folder (hidden ones left out).

    Raises:
        ConfigError: the folder holds no file.
    """
    if not path.is_dir():
        return [path]
    found = sorted(p for p in path.iterdir() if p.is_file() and not p.name.startswith("."))
    if not found:
        raise ConfigError("the folder holds no file", where=str(path))
    return [*found]


def diff_evidence(a: Evidence, b: Evidence, *, anyway: bool = False) -> EngineDiff:
    """Align the layers of two engines by the ONNX nodes that they hold, and compare.

    Layers without nodes are aligned by name. Copies are counted, not aligned: they come and go with their neighbours.
    """
    comparable, reasons = conditions(a, b)
    return EngineDiff(a, b, tuple(_changes(a.layers, b.layers)), comparable, tuple(reasons), anyway)


def conditions(a: Evidence, b: Evidence) -> tuple[bool, list[str]]:
    """Whether times of the two may be compared, and why not. What is not known is not the same."""
    one, two = _timed_run(a), _timed_run(b)
    if one is None or two is None:
        side = "A" if one is None else "B"
        return False, [f"nothing says under which version, flags and device {side} was measured"]
    reasons = []
    for word, x, y in (("TensorRT version", one.tensorrt, two.tensorrt), ("device", one.device, two.device)):
        if x is None or y is None:
            reasons.append(f"the {word} of {'A' if x is None else 'B'} is not known")
        elif x != y:
            reasons.append(f"{word} differs: {x} and {y}")
    left, right = _flat(one), _flat(two)
    for keys, word in _CONDITIONS:
        x = next((left[k] for k in keys if k in left), None)
        y = next((right[k] for k in keys if k in right), None)
        if (x is None) != (y is None):
            reasons.append(f"{word} not known for {'A' if x is None else 'B'}")
        elif x is not None and y is not None and x != y:
            reasons.append(f"{word} differs: {x or 'none'} and {y or 'none'}")
    for status, word in (("failed", "a run failed"), ("incomplete", "a run is incomplete")):
        if status in (one.status, two.status):
            reasons.append(word)
    return not reasons, reasons


def _flat(run: Run) -> Mapping[str, str]:
    return {key: value for section in run.options.values() for key, value in section.items()}


def _timed_run(evidence: Evidence) -> Run | None:
    timed = [run for run in evidence.runs if run.latency is not None or run.profile is not None]
    return timed[-1] if timed else evidence.run


def _latency(evidence: Evidence) -> Stat | None:
    for run in reversed(evidence.runs):
        if run.latency is not None:
            return run.latency
    return next((r.times.latency for r in evidence.inputs if r.times is not None), None)


# -- alignment ----------------------------------------------------------------------------------------------------


def _owners(layers: Sequence[LayerRecord]) -> dict[str, int]:
    """Node -> index of the layer that computes it. A Myelin kernel also names nodes whose bias or scale it applies."""
    owners: dict[str, int] = {}
    order = sorted(range(len(layers)), key=lambda i: not is_matrix_layer(layers[i]))
    for index in order:
        for node in layers[index].onnx_nodes:
            owners.setdefault(node, index)
    return owners


def _changes(a: Sequence[LayerRecord], b: Sequence[LayerRecord]) -> list[Change]:
    left = [layer for layer in a if layer.kind in ARITHMETIC or layer.kind is LayerKind.DATA_MOVEMENT]
    right = [layer for layer in b if layer.kind in ARITHMETIC or layer.kind is LayerKind.DATA_MOVEMENT]
    parent = list(range(len(left) + len(right)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    own_a, own_b = _owners(left), _owners(right)
    shared: dict[int, list[str]] = defaultdict(list)
    for node, i in own_a.items():
        j = own_b.get(node)
        if j is not None:
            shared[i].append(node)
            parent[root(len(left) + j)] = root(i)
    _by_name(left, right, parent, root, own_a, own_b)
    groups: dict[int, tuple[list[int], list[int]]] = {}
    for i in range(len(parent)):
        sides = groups.setdefault(root(i), ([], []))
        sides[0 if i < len(left) else 1].append(i if i < len(left) else i - len(left))
    changes = [
        _change(
            [left[i] for i in sides[0]], [right[j] for j in sides[1]], [n for i in sides[0] for n in shared.get(i, ())]
        )
        for sides in groups.values()
    ]
    return _by_order(changes)


def _by_name(
    left: Sequence[LayerRecord],
    right: Sequence[LayerRecord],
    parent: list[int],
    root: Any,
    own_a: Mapping[str, int],
    own_b: Mapping[str, int],
) -> None:
    """Join layers that share no node but have one name, duplicates in order."""
    joined = {i for node, i in own_a.items() if node in own_b}
    taken = {j for node, j in own_b.items() if node in own_a}
    waiting: dict[str, list[int]] = defaultdict(list)
    for j in range(len(right) - 1, -1, -1):
        if j not in taken:
            waiting[right[j].name].append(j)
    for i, layer in enumerate(left):
        if i not in joined and waiting.get(layer.name):
            parent[root(len(left) + waiting[layer.name].pop())] = root(i)


def _change(a: list[LayerRecord], b: list[LayerRecord], nodes: list[str]) -> Change:
    kind: ChangeKind
    if not b:
        kind = "only-a"
    elif not a:
        kind = "only-b"
    elif _precisions(a) != _precisions(b):
        kind = "precision"
    elif len(a) == len(b) == 1:
        kind = "same"
    elif len(a) > len(b):
        kind = "fused"
    elif len(a) < len(b):
        kind = "split"
    else:
        kind = "same" if [x.name for x in a] == [x.name for x in b] else "regrouped"
    return Change(kind, tuple(dict.fromkeys(nodes)), tuple(a), tuple(b), "nodes" if nodes else "name")


_OPERATOR = re.compile(r"(?:^|[/.])([A-Za-z]+)(?:_\d+)?$")


def _signature(change: Change) -> tuple[object, ...]:
    """The main operator of a group, and the shape of its last output. Activations may be fused without a name."""
    layers = change.a or change.b
    operators = [
        found.group(1)
        for layer in layers
        for node in layer.onnx_nodes
        if not is_qdq_node(node) and (found := _OPERATOR.search(node))
    ]
    main = next((name for name in operators if name in MATRIX_OPS), operators[0] if operators else None)
    outputs = layers[-1].outputs
    return (main, outputs[0].dims if outputs else None) if main else ()


def _by_order(changes: list[Change]) -> list[Change]:
    """Pair what is left on both sides by operators and shapes, in order: exporters renumber nodes between exports."""
    left = [c for c in changes if c.kind == "only-a" and _signature(c)]
    right = [c for c in changes if c.kind == "only-b" and _signature(c)]
    if not left or not right or len(left) * len(right) > 4_000_000:
        return changes
    matcher = SequenceMatcher(None, [_signature(c) for c in left], [_signature(c) for c in right], autojunk=False)
    paired: dict[int, Change] = {}
    gone: set[int] = set()
    for i, j, size in matcher.get_matching_blocks():
        for k in range(size):
            one, two = left[i + k], right[j + k]
            made = _change(list(one.a), list(two.b), list(one.nodes))
            nodes = made.nodes or tuple(dict.fromkeys(n for layer in one.a for n in layer.onnx_nodes))
            paired[id(one)] = Change(made.kind, nodes, made.a, made.b, "order")
            gone.add(id(two))
    return [paired.get(id(c), c) for c in changes if id(c) not in gone]


def _precisions(layers: list[LayerRecord]) -> set[Precision | None]:
    return {layer.compute for layer in layers if layer.kind in ARITHMETIC}


def _sum(values: Any) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) if known else None


def copies(evidence: Evidence) -> tuple[int, float | None, float | None]:
    """Number of reformats and casts, their milliseconds and their share of the layer time."""
    found = [layer for layer in evidence.layers if layer.kind is LayerKind.COPY]
    return len(found), _sum(layer.time_ms for layer in found), _sum(layer.share for layer in found)


def _layer(layer: LayerRecord, times: bool) -> dict[str, Any]:
    return {
        "name": layer.name,
        "compute": layer.compute,
        "verdict": layer.verdict,
        "time_ms": layer.time_ms if times else None,
        "share": layer.share,
    }


def _side(evidence: Evidence) -> dict[str, Any]:
    count, time, share = copies(evidence)
    run = _timed_run(evidence)
    return {
        "inputs": [{"path": r.path, "kind": r.kind, "problem": r.problem} for r in evidence.inputs],
        "headline": evidence.headline(),
        "tensorrt": run.tensorrt if run else None,
        "device": run.device if run else None,
        "summary": evidence.summary,
        "copies": {"layers": count, "time_ms": time, "share": share},
    }
