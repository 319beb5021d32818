"""Whatever a comparison or a baseline holds, the gate answers with a verdict, and damage never turns into a pass."""

from __future__ import annotations

import dataclasses
import json
import random
from pathlib import Path
from typing import Any

import pytest
from gate_synthetic import healthy, write

from deploychain.errors import ArtifactError
from deploychain.gate import GateLimits, accept, judge, parse_limits
from deploychain.gate.baseline import load
from deploychain.records import Comparison, load_comparison, to_json
from deploychain.report import html, junit, machine, markdown, sarif

ODD_NUMBERS: tuple[Any, ...] = (None, 0, 1, -1, 7, 1e308, -1e308, 5e-324, 0.5, 10**30)
ODD_TEXTS: tuple[Any, ...] = (None, "", "x", "weights", "engine-fp16", "int8", "\x1b[0m", "fallback", "unknown", "copy")
ALL = {
    "accuracy": [
        {"floor": 0.5, "retention": 99, "max_drop": 0.01, "baseline_retention": 99, "max_regression": 0.01,
         "worst_class": 90, "agreement": 0.9}
    ],
    "layers": [
        {"max_fallback": 0, "max_demoted": 0, "max_possible": 0, "max_unknown": 0, "max_lost": 0, "max_lowered": 0,
         "max_lost_fusions": 0, "max_copies": 5, "max_new_copies": 0, "min_share": 0.5, "min_time_share": 0.5}
    ],
    "latency": [{"device": "Orin*", "max_p50_ms": 9, "max_p99_ms": 9, "max_increase": 10}],
    "size": [{"max_bytes": 10_000_000, "max_increase": 10}],
}  # fmt: skip


def small() -> Comparison:
    """The healthy run, cut to 40 samples."""
    made = healthy()
    evals = []
    for r in made.evals:
        values = r.per_sample["top1"][:40]
        metrics = {"top1": sum(v or 0.0 for v in values) / 40}
        evals.append(
            dataclasses.replace(
                r, samples=40, per_sample={"top1": values}, metrics=metrics, sample_classes=r.sample_classes[:40]
            )
        )
    return dataclasses.replace(made, evals=tuple(evals), provenance=dataclasses.replace(made.provenance, samples=40))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += places(inner, (*path, key))
    return found


def put(document: Any, path: tuple[Any, ...], rng: random.Random) -> None:
    """Replace a value by an odd one of its kind, empty a container, or take the entry out."""
    for key in path[:-1]:
        document = document[key]
    old = document[path[-1]]
    if isinstance(document, dict) and rng.random() < 0.1:
        del document[path[-1]]
    elif isinstance(old, (dict, list)):
        document[path[-1]] = type(old)()
    else:
        document[path[-1]] = rng.choice(ODD_TEXTS if isinstance(old, str) else ODD_NUMBERS)


@pytest.mark.parametrize("seed", range(3))
def test_a_mutated_comparison_gets_a_verdict(seed: int, tmp_path: Path) -> None:
    accept(small(), tmp_path / "b.json", reason="first", author="A")
    baseline = load(tmp_path / "b.json")
    limits = parse_limits({**ALL, "resamples": 500}, "")
    text = json.dumps(to_json(small()))
    rng = random.Random(seed)
    # One sample in fifty, so that the long series do not take all the mutations.
    every = [
        p for p in places(json.loads(text)) if not {"per_sample", "sample_classes"} & set(p) or rng.random() < 0.02
    ]
    judged = 0
    for _ in range(30):
        document = json.loads(text)
        for path in rng.sample(every, rng.choice((1, 2, 8))):
            try:
                put(document, path, rng)
            except (KeyError, TypeError, IndexError):
                continue  # an earlier mutation took the place away
        (tmp_path / "comparison.json").write_text(json.dumps(document))
        try:
            comparison = load_comparison(tmp_path / "comparison.json")
        except ArtifactError:
            continue
        judged += 1
        result = judge(comparison, limits, baseline)
        assert 0 <= result.exit_code <= 5
        json.dumps(result.to_dict(), allow_nan=False)
        for render in (junit.render, sarif.render, markdown.render, machine.openmetrics):
            render(result)
        html.render(comparison, result)
    assert judged >= 5


def test_taking_evidence_away_never_turns_a_verdict_into_a_pass(tmp_path: Path) -> None:
    # Each stage, engine, metric or latency that is taken out of a passing run must be missed.
    limits = GateLimits(resamples=500)
    accept(healthy(), tmp_path / "b.json", reason="first", author="A")
    baseline = load(tmp_path / "b.json")
    whole = load_comparison(write(healthy(), tmp_path / "run") / "comparison.json")
    assert judge(whole, limits, baseline).exit_code == 0
    for index, report in enumerate(whole.evals):
        without = [r for i, r in enumerate(whole.evals) if i != index]
        for evals in (
            without,
            [*without, dataclasses.replace(report, ran=False)],
            [*without, dataclasses.replace(report, metrics={})],
            [*without, dataclasses.replace(report, metrics={"top1": None})],
            [*without, dataclasses.replace(report, samples=0)],
        ):
            made = dataclasses.replace(whole, evals=tuple(evals))
            assert judge(made, limits, baseline).exit_code == 4, report.stage
    for index in range(len(whole.engines)):
        made = dataclasses.replace(whole, engines=whole.engines[:index] + whole.engines[index + 1 :])
        assert judge(made, limits, baseline).exit_code == 4
    for index in range(len(whole.latency)):
        made = dataclasses.replace(whole, latency=whole.latency[:index] + whole.latency[index + 1 :])
        assert judge(made, limits, baseline).exit_code == 4
    empty = dataclasses.replace(whole, evals=(), engines=(), latency=())
    assert judge(empty, limits).exit_code == 4
