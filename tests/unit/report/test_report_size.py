"""Reports of large runs stay small enough to open."""

from __future__ import annotations

from gate_synthetic import healthy

from deploychain.report import html
from deploychain.verdicts import Check, GateResult, Status, Verdict


def test_five_thousand_findings_are_a_page_that_opens() -> None:
    checks = tuple(Check("engine-int8", "fallback", Status.FAIL, "m" * 300, node=f"node{i}") for i in range(5000))
    text = html.render(healthy(), GateResult(Verdict.FAIL, checks))
    assert "5000 findings" in text and "4000 more findings are in gate.json" in text
    assert text.count("node <span") == 1000
    assert len(text) < 2_000_000
