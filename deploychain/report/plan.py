"""Plans, differences and sensitivities as tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from deploychain import console
from deploychain.numerics.sensitivity import SensitivityTable
from deploychain.plan import Change, Finding, ModelPlan

if TYPE_CHECKING:
    from deploychain.stages.attribution import Attribution

_STYLES = {"error": "bold red", "warning": "yellow", "note": "dim"}
_ROWS = 40


def print_plan(plan: ModelPlan, notes: Sequence[str], files: Sequence[str]) -> None:
    """What was found, which nodes stay out of the low precision, what it costs, what was written."""
    print_findings(plan.findings)
    special = [n for n in plan.nodes if n.precision == "fp32" and n.rule not in ("operator", "integer")]
    if special:
        groups: dict[tuple[str, str], list[str]] = {}
        for node in special:
            groups.setdefault((node.reason, node.guard or "-"), []).append(node.name)
        rows = [(_several(names), guard, reason) for (reason, guard), names in groups.items()]
        console.table(("Node", "Built", "Why it stays FP32"), rows[:_ROWS], ratio="Why it stays FP32")
        if len(rows) > _ROWS:
            console.out(f"... and {len(rows) - _ROWS} more (all in the plan file)")
    counts = Counter(n.precision for n in plan.nodes)
    console.out("nodes: " + ", ".join(f"{count} {name}" for name, count in counts.most_common()))
    console.out(f"casts: {plan.casts} left, {plan.casts_removed} removed because they cancelled out")
    if plan.drop is not None:
        evaluations = f", {plan.evaluations} evaluations" if plan.evaluations else ""
        console.out(f"drop: {number(plan.drop)} ({plan.drop_of}; emulated, {plan.samples} samples{evaluations})")
    if plan.within is False:
        console.out("no plan keeps the drop within the limit", style="bold red")
    if plan.left:
        kinds = ", ".join(sorted({f.kind for f in plan.left}))
        console.out(f"errors left in the converted model: {len(plan.left)} ({kinds})", style="bold red")
    for note in notes:
        console.note(note)
    for file in files:
        console.out(f"written: {file}")


def print_findings(findings: Sequence[Finding]) -> None:
    if not findings:
        console.out("no findings")
        return
    ordered = sorted(findings, key=lambda f: list(_STYLES).index(f.severity))
    groups: dict[tuple[str, str, str], list[str]] = {}
    for finding in ordered:
        text = f"{finding.detail}. {finding.remedy}" if finding.remedy else finding.detail
        groups.setdefault((finding.severity, finding.kind, text), []).append(finding.node)
    rows = [(severity, kind, _several(nodes), text) for (severity, kind, text), nodes in groups.items()]
    styles = {index: _STYLES[row[0]] for index, row in enumerate(rows)}
    console.table(("Severity", "Kind", "Node", "What"), rows[:_ROWS], styles=styles, ratio="What")
    if len(rows) > _ROWS:
        console.out(f"... and {len(rows) - _ROWS} more findings (--json has all)")


def _several(names: Sequence[str]) -> str:
    """The first names of those that share a row; the files have all."""
    shown = "\n".join(names[:3])
    return shown if len(names) <= 3 else f"{shown}\n+ {len(names) - 3} more"


def print_changes(changes: Sequence[Change]) -> None:
    if not changes:
        console.out("the plans agree on every node")
        return
    rows = [(c.model, c.node, f"{c.before or '-'} -> {c.after or '-'}", c.reason) for c in changes]
    console.table(("Model", "Node", "Precision", "Why"), rows, ratio="Why")


def print_sensitivity(table: SensitivityTable, of: str, limit: int = 25) -> None:
    rows = [
        (
            row.block,
            "/".join(row.ops[:3]),
            "-" if row.local_snr_db is None else number(row.local_snr_db),
            "not run" if row.alone is None else number(row.alone),
            "not run" if row.spared is None else number(row.spared),
        )
        for row in table.rows[:limit]
    ]
    console.table(
        ("Block", "Ops", "Local SNR dB", "Alone low", "All but it low"),
        rows,
        right=("Local SNR dB", "Alone low", "All but it low"),
        ratio="Block",
    )
    how = "exact" if table.exact else "only the blocks with the lowest local SNR were run (--budget)"
    console.out(f"everything low: {number(table.everything)}; drops in {of}; {table.evaluations} evaluations, {how}")


def print_attribution(found: Attribution, limit: int = 15) -> None:
    """The steps of the chain, and the nodes of the one that lost most."""
    steps = found.steps
    rows = [
        (
            row.stage,
            row.source,
            "not run" if row.metric is None else f"{row.metric:.4f}",
            "-" if row.loss is None else f"{row.loss:+.4f}",
            "-" if row.added is None else f"{100 * row.added:.3g} %",
        )
        for row in steps.rows
    ]
    worst = {index: "bold yellow" for index, row in enumerate(steps.rows) if row.stage == steps.worst}
    columns = ("Step", "Made from", steps.metric or "Metric", "Loss", "Error added")
    console.table(columns, rows, right=columns[2:], styles=worst)
    if steps.worst:
        console.out(f"lost most: {steps.worst} (by {steps.by})")
    if found.note:
        console.out(found.note)
    if not found.nodes:
        return
    nodes = [
        (
            n.node,
            n.planned or "-",
            n.built or "unknown",
            n.verdict,
            "not run" if n.alone is None else number(n.alone),
            "not run" if n.spared is None else number(n.spared),
        )
        for n in found.nodes[:limit]
    ]
    names = ("Node", "Planned", "Built", "Verdict", "Alone %", "Spared %")
    console.table(names, nodes, right=names[4:], ratio="Node")
    total = "" if found.everything is None else f"all of them together: {number(found.everything)} % output error; "
    console.out(f"{total}{found.evaluations} evaluations")


def number(value: float) -> str:
    """A drop or a ratio in a few characters."""
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return f"{value:.3g}"
