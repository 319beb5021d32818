"""What a finding says was done must be what the final plan does."""

from __future__ import annotations

from deploychain.plan import Finding, NodePlan, as_decided


def test_a_finding_about_a_pinned_node_does_not_say_that_it_is_kept() -> None:
    findings = (
        Finding("a", None, "overflow", "error", "reaches 1e5", "kept in FP32; or scale before"),
        Finding("b", None, "overflow", "error", "reaches 1e5", "kept in FP32; or scale before"),
        Finding("c", None, "qdq", "warning", "shape [1]", "repaired"),
    )
    nodes = (
        NodePlan(name="a", op="Mul", module=None, precision="fp16", rule="pin", reason=""),
        NodePlan(name="b", op="Mul", module=None, precision="fp32", rule="overflow", reason=""),
    )
    assert [f.remedy for f in as_decided(findings, nodes)] == [
        "computes in FP16 all the same (pin); scale before",
        "kept in FP32; or scale before",
        "repaired",
    ]
