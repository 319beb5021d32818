"""What looks like an overflow or a lost constant and is none: attention masks, eps beside large values."""

from __future__ import annotations

import numpy as np
import pytest

from deploychain.numerics.decide import decide
from deploychain.numerics.masks import mask_nodes
from deploychain.numerics.nodes import Constant, NodeInfo, Wiring
from deploychain.numerics.range import TensorRange, range_of
from deploychain.numerics.rules import Rules
from deploychain.plan import Finding


def node(name: str, inputs: tuple[str, ...], constants: tuple[Constant, ...] = (), op: str = "") -> NodeInfo:
    floats = tuple(i for i in inputs if i not in {c.name for c in constants})
    return NodeInfo(name, op or name, None, inputs, (f"{name}_out",), floats, (f"{name}_out",), constants)


def constant(name: str, values: object) -> Constant:
    return Constant(name, range_of(name, np.asarray(values, np.float32)))


SCORES = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
CAUSAL = np.triu(np.full((4, 4), -1e9, np.float32), 1)


def attention(added: np.ndarray, end: str) -> tuple[list[NodeInfo], dict[str, TensorRange]]:
    """scores + added -> Softmax (or another end)."""
    infos = [node("Add", ("scores", "m"), (constant("m", added),)), node(end, ("Add_out",))]
    total = SCORES + added
    values = {"scores": SCORES, "Add_out": total, f"{end}_out": np.exp(np.minimum(total, 0))}
    return infos, {n: range_of(n, v) for n, v in values.items()}


def serious(findings: tuple[Finding, ...]) -> list[str]:
    return [f"{f.kind} {f.node}" for f in findings if f.severity != "note"]


@pytest.mark.parametrize("snr", [-np.inf, 0.0, np.nan])
def test_an_additive_mask_before_a_softmax_is_only_a_note(snr: float) -> None:
    infos, ranges = attention(CAUSAL, "Softmax")
    plans, findings = decide(infos, ranges, Rules(), {"Add": snr})
    assert serious(findings) == []
    assert {f.kind for f in findings} == {"weight-overflow", "overflow"}
    assert plans[0].precision == "fp32"


def test_the_same_addition_before_anything_else_is_an_error() -> None:
    infos, ranges = attention(CAUSAL, "Relu")
    _, findings = decide(infos, ranges, Rules(), {})
    assert serious(findings) == ["weight-overflow Add", "overflow Add"]


def test_a_shift_of_all_scores_is_no_mask() -> None:
    infos, ranges = attention(np.full((4, 4), -1e6, np.float32), "Softmax")
    assert mask_nodes(infos, ranges, Wiring.of(infos)) == frozenset()


def test_a_mask_that_is_computed_or_given_marks_the_addition_behind_it() -> None:
    keep = (SCORES > 0).astype(np.float32)
    infos = [
        node("Sub", ("mask", "one"), (constant("one", 1.0),)),
        node("Mul", ("Sub_out", "big"), (constant("big", -1e9),)),
        node("Add", ("scores", "Mul_out")),
        node("Softmax", ("Add_out",)),
    ]
    made = (1 - keep) * np.float32(-1e9)
    values = {"mask": keep, "scores": SCORES, "Sub_out": 1 - keep, "Mul_out": made, "Add_out": SCORES + made}
    ranges = {n: range_of(n, v) for n, v in values.items()}
    assert mask_nodes(infos, ranges, Wiring.of(infos)) == {"Mul", "Add"}
    given = [node("Add", ("scores", "Mul_out")), node("Softmax", ("Add_out",))]
    assert mask_nodes(given, ranges, Wiring.of(given)) == {"Add"}


def test_logits_that_overflow_below_zero_are_no_mask() -> None:
    infos = [node("MatMul", ("q", "k")), node("Softmax", ("MatMul_out",))]
    logits = np.array([[-1e5, 3.0], [1.0, 2.0]], np.float32)
    _, findings = decide(infos, {"MatMul_out": range_of("MatMul_out", logits)}, Rules(), {})
    assert serious(findings) == ["overflow MatMul"]


def test_an_unknown_local_error_is_no_finding() -> None:
    """Infinite in FP32 already (a mask of minus infinity): nothing can be said about the rounding."""
    infos, ranges = attention(np.triu(np.full((4, 4), -np.inf, np.float32), 1), "Softmax")
    plans, findings = decide(infos, ranges, Rules(), {"Add": np.nan})
    assert serious(findings) == []
    assert plans[0].precision == "fp16"


@pytest.mark.parametrize(
    ("beside", "severity"),
    [([0.5, 2.0], "note"), ([0.0, 2.0], "error"), ([1e-6, 2.0], "error"), ([-0.5, 2.0], "error")],
)
def test_an_eps_that_vanishes_matters_only_beside_small_values(beside: list[float], severity: str) -> None:
    infos = [node("Add", ("variance", "eps"), (constant("eps", 1e-8),))]
    values = np.array(beside, np.float32)
    ranges = {"variance": range_of("variance", values), "Add_out": range_of("Add_out", values)}
    plans, findings = decide(infos, ranges, Rules(), {})
    assert [(f.kind, f.severity) for f in findings] == [("vanishing-constant", severity)]
    assert plans[0].precision == "fp32"
