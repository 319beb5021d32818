"""The precision plan: a file that people read, edit and keep in git, and that is re-applied as it is.

JSON (``deploychain.plan/1``) or YAML, by the file's suffix. Per model: every node with its precision, the rule and the
measured numbers behind it; ``pin:`` holds what the user insists on (node name patterns, fnmatch; later ones win).
"""

from __future__ import annotations

import difflib
import fnmatch
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from deploychain.errors import ArtifactError, ConfigError, StageError
from deploychain.records import PLAN_SCHEMA, to_json

PRECISIONS = ("fp32", "fp16", "bf16", "int8")
_OTHER_TYPES = ("uint8", "int32", "int64", "bool", "fp64")  # of nodes that carry shapes, indices or masks


@dataclass(frozen=True, slots=True)
class NodePlan:
    """The precision that one node should compute in, and why."""

    name: str
    op: str
    module: str | None
    precision: str
    reason: str
    rule: str = ""  # in-range, pin, operator, overflow, data-max, weight-overflow, ..., quantised, search
    abs_max: float | None = None  # over the node's float inputs and outputs, on calibration data
    overflow_share: float | None = None
    underflow_share: float | None = None
    local_snr_db: float | None = None
    guard: str = ""  # FP32 nodes, proved by building: held, demoted, unknown; empty: not proved
    anchored: bool = False  # a Clip to the range of FP32 behind it keeps the builder from folding it


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that low precision would do to a node."""

    node: str
    module: str | None
    kind: str  # overflow|underflow|vanishing-constant|weight-overflow|non-finite|sensitive|grid|qdq|guard
    severity: str  # error|warning|note
    detail: str
    remedy: str


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """The plan of one model."""

    precision: str  # fp16, bf16 or int8: what was asked for
    nodes: tuple[NodePlan, ...]
    findings: tuple[Finding, ...] = ()
    evaluations: int = 0  # model evaluations that the search took
    drop: float | None = None  # against FP32, in ``drop_of``
    drop_of: str = ""  # what drop measures: "top1, points" or "output error, %"
    within: bool | None = None  # whether the drop is within the limit; None: no limit was given
    output: str = ""  # the converted model's file name
    opset: int | None = None
    casts: int | None = None  # Cast nodes in the converted model
    casts_removed: int | None = None  # pairs that cancelled out
    samples: int | None = None  # calibration samples that the ranges come from
    notes: tuple[str, ...] = ()

    @property
    def left(self) -> tuple[Finding, ...]:
        """Errors of the converted model itself, which no plan could mend: breaches of Q/DQ rules, guards not held.

        The other findings say what low precision would do, and the plan has answered them.
        """
        return tuple(f for f in self.findings if f.severity == "error" and f.kind in ("qdq", "guard"))

    def count(self, precision: str) -> int:
        return sum(n.precision == precision for n in self.nodes)

    def of(self) -> dict[str, str]:
        """Node name -> precision."""
        return {n.name: n.precision for n in self.nodes}


@dataclass(frozen=True, slots=True)
class Plan:
    """One plan file."""

    models: Mapping[str, ModelPlan]
    pins: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    schema: str = PLAN_SCHEMA


@dataclass(frozen=True, slots=True)
class Change:
    """One node that two plans treat differently."""

    model: str
    node: str
    before: str | None  # None: the node is only in the other plan
    after: str | None
    reason: str


def write_plan(plan: Plan, path: Path) -> None:
    """Write a plan as YAML (.yaml, .yml) or JSON; whole or not at all.

    Raises:
        StageError: the file cannot be written.
    """
    document = to_json(plan)
    document["pin"] = document.pop("pins")
    order = ("schema", "pin", "settings", "models")
    document = {key: document[key] for key in order}
    if path.suffix in (".yaml", ".yml"):
        import yaml

        text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)
    else:
        text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    temporary = path.with_name(f".{path.name}.part")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StageError(f"cannot write the plan: {error.strerror}", where=str(path)) from None


def read_plan(path: Path) -> Plan:
    """Read and validate a plan file.

    Raises:
        ArtifactError: missing, not JSON or YAML, of another schema, or a key is wrong (it is named).
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ArtifactError(
            f"cannot read the plan: {getattr(error, 'strerror', None) or error}", where=str(path)
        ) from None
    try:
        if path.suffix in (".yaml", ".yml"):
            import yaml

            raw = yaml.safe_load(text)
        else:
            raw = json.loads(text)
    except Exception as error:  # yaml.YAMLError and ValueError
        raise ArtifactError(f"the plan cannot be read: {' '.join(str(error).split())[:300]}", where=str(path)) from None
    if not isinstance(raw, dict) or raw.get("schema") != PLAN_SCHEMA:
        found = raw.get("schema") if isinstance(raw, dict) else type(raw).__name__
        raise ArtifactError(f"schema is {found!r}, expected {PLAN_SCHEMA!r}", where=str(path))
    raw = {("pins" if key == "pin" else key): value for key, value in raw.items()}
    try:
        plan = TypeAdapter(Plan).validate_python(raw)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ArtifactError(f"{key}: {first['msg']}", where=str(path), remedy="see docs/plan.md for the keys") from None
    for model in plan.models.values():
        for node in model.nodes:
            if node.precision not in (*PRECISIONS, *_OTHER_TYPES):
                raise ArtifactError(
                    f"node {node.name!r} has the precision {node.precision!r}",
                    where=str(path),
                    remedy=", ".join(PRECISIONS),
                )
    for pattern, precision in plan.pins.items():
        if precision not in PRECISIONS:
            raise ArtifactError(
                f"pin {pattern!r} names the precision {precision!r}", where=str(path), remedy=", ".join(PRECISIONS)
            )
    return plan


def apply_plan(nodes: Sequence[NodePlan], saved: ModelPlan, pins: Mapping[str, str]) -> tuple[NodePlan, ...]:
    """The saved precisions for the nodes of a model, with pins on top.

    Raises:
        ConfigError: the model has nodes that the plan does not know, or the other way round, or a node cannot have
            the precision that the plan says.
    """
    known = {n.name: n for n in saved.nodes}
    here = {n.name for n in nodes}
    missing = sorted(here - known.keys()) or sorted(known.keys() - here)
    if missing:
        side = "is not in the plan" if missing[0] in here else "is in the plan but not in the model"
        raise ConfigError(
            f"node {missing[0]!r} {side} ({len(missing)} such nodes)",
            where=missing[0],
            remedy="make a new plan for this model, and compare them with `deploychain plan diff`",
        )
    low = "bf16" if saved.precision == "bf16" else "fp16"
    made = []
    for node in nodes:
        kept = replace(known[node.name], op=node.op, module=node.module)
        # An INT8 node keeps its quantisers, whatever is pinned, unless the pin has removed them from this model.
        may_pin = "int8" not in (kept.precision, node.precision) or node.precision in ("fp32", low)
        for pattern, precision in pins.items():
            if may_pin and kept.precision in PRECISIONS and fnmatch.fnmatchcase(node.name, pattern):
                kept = replace(kept, precision=precision, rule="pin", reason=f"pinned by {pattern!r}")
        if kept.precision not in ("fp32", low, node.precision):
            raise ConfigError(
                f"the plan says {kept.precision} for {node.name!r}, which can be fp32 or {low} in this model",
                where=node.name,
                remedy="edit the plan; only quantisers make a node INT8",
            )
        made.append(kept)
    return tuple(made)


def as_decided(findings: Iterable[Finding], nodes: Iterable[NodePlan]) -> tuple[Finding, ...]:
    """Findings of the rules, true of the final plan: a pin, a saved plan or the search may have lowered a node."""
    final = {n.name: n for n in nodes}
    told = []
    for finding in findings:
        node = final.get(finding.node)
        if node is not None and node.precision != "fp32" and finding.remedy.startswith("kept in FP32"):
            _, _, rest = finding.remedy.partition("; or ")
            done = f"computes in {node.precision.upper()} all the same ({node.rule})"
            finding = replace(finding, remedy=f"{done}; {rest}" if rest else done)
        told.append(finding)
    return tuple(told)


def unmatched(patterns: Iterable[str], names: Sequence[str]) -> tuple[str, str] | None:
    """The first node name pattern that matches no node, and what to say about it; None when all match."""
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            near = difflib.get_close_matches(pattern.strip("*"), names, 3, cutoff=0.4) or names[:3]
            return pattern, f"nodes have names like {', '.join(near)}"
    return None


def diff(before: Plan, after: Plan) -> tuple[Change, ...]:
    """The nodes whose precision differs, model by model, in the order of the newer plan."""
    changes: list[Change] = []
    for name in [*after.models, *(n for n in before.models if n not in after.models)]:
        old = {n.name: n for n in before.models[name].nodes} if name in before.models else {}
        new = {n.name: n for n in after.models[name].nodes} if name in after.models else {}
        for node in [*new, *(n for n in old if n not in new)]:
            a, b = old.get(node), new.get(node)
            was, now = (a.precision if a else None), (b.precision if b else None)
            if was != now:
                changes.append(Change(name, node, was, now, b.reason if b else "the node is gone"))
    return tuple(changes)
