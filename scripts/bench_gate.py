"""False alarms and power of the gate: simulated runs, judged by the real `judge` with the default limits.

Every simulated run has FP32 weights, an FP16 and an INT8 engine, ten classes, per-sample decisions and five latency
repeats. "No change" keeps every true accuracy and draws new noise:

  rebuild   the same weights: 0.1 % of the FP16 and 2 % of the INT8 decisions differ from FP32, each time anew
  retrain   other weights of the same true accuracy: 3 % of the FP32 decisions differ from the baseline's as well

Latency repeats scatter by 2 %. A drop is planted as a true drop of the population, never of the sample.

    python scripts/bench_gate.py            # all tables, about fifteen minutes on one core
    python scripts/bench_gate.py --runs 50  # a quick look
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timezone

import numpy as np

from deploychain.gate.baseline import from_comparison
from deploychain.gate.judgement import judge
from deploychain.gate.limits import AccuracyRule, GateLimits
from deploychain.records import COMPARISON_SCHEMA, Comparison, EvalReport, Latency, Provenance
from deploychain.verdicts import Entry

ACCURACY, CLASSES = 0.95, 10
FP16_CHANGED, INT8_CHANGED, RETRAIN_CHANGED = 0.001, 0.02, 0.03
Rng = np.random.Generator


@dataclass(frozen=True)
class Plant:
    """True drops, as a share of the parent's accuracy, and the slowdown factor of the FP16 engine."""

    fp16: float = 0.0
    int8: float = 0.0
    weights: float = 0.0
    latency: float = 1.0


def flipped(correct: np.ndarray, share: float, drop: float, rng: Rng) -> np.ndarray:
    """Change `share` of the decisions without a change in expectation, and lose `drop` of the right ones besides."""
    accuracy = ACCURACY
    lose = (share / 2 + drop * accuracy) / accuracy  # chance that a right answer turns wrong
    gain = (share / 2) / (1 - accuracy)
    chance = np.where(correct > 0, lose, gain)
    return np.where(rng.random(len(correct)) < chance, 1 - correct, correct)


def report(stage: str, correct: np.ndarray, parent: np.ndarray, reference: str) -> EvalReport:
    labels = np.arange(len(correct)) % CLASSES
    return EvalReport(
        stage=stage,
        ran=True,
        reference=reference,
        samples=len(correct),
        metrics={"top1": float(correct.mean())},
        per_sample={"top1": tuple(correct.tolist())},
        per_class={"top1": {str(c): float(correct[labels == c].mean()) for c in range(CLASSES)}},
        sample_classes=tuple(map(str, labels.tolist())),
        agreement=float((correct == parent).mean()),
        non_finite=0,
    )


def run(weights: np.ndarray, rng: Rng, plant: Plant) -> Comparison:
    base = flipped(weights, 0.0, plant.weights, rng) if plant.weights else weights
    fp16 = flipped(base, FP16_CHANGED, plant.fp16, rng)
    int8 = flipped(base, INT8_CHANGED, plant.int8, rng)

    def latency(stage: str, ms: float) -> Latency:
        repeats = ms * np.exp(rng.normal(0, 0.02, 5))
        return Latency(stage, "simulated", p50_ms=float(np.median(repeats)), repeats=tuple(repeats.tolist()))

    return Comparison(
        schema=COMPARISON_SCHEMA,
        provenance=Provenance("bench", "0" * 64, len(weights), "simulated", "10.3.0.30"),
        evals=(
            report("weights", base, base, ""),
            report("engine-fp16", fp16, base, "weights"),
            report("engine-int8", int8, base, "weights"),
        ),
        latency=(latency("engine-fp16", 2.0 * plant.latency), latency("engine-int8", 1.2)),
        directions={"top1": "higher"},
    )


def simulate(samples: int, retrain: bool, plant: Plant, runs: int, limits: GateLimits, seed: int) -> Counter[str]:
    """Verdicts of `runs` independent runs, each against a baseline of its own on its own test set."""
    entry = Entry(datetime(2026, 1, 1, tzinfo=timezone.utc).isoformat(), "bench", "simulated", {})
    verdicts: Counter[str] = Counter()
    for index in range(runs):
        rng = np.random.default_rng((seed, samples, index))
        weights = (rng.random(samples) < ACCURACY).astype(float)
        baseline = from_comparison(run(weights, rng, Plant()), (entry,))
        new = flipped(weights, RETRAIN_CHANGED, 0.0, rng) if retrain else weights
        made = run(new, rng, plant)
        verdicts[judge(made, replace_seed(limits, index), baseline).verdict.value] += 1
    return verdicts


def replace_seed(limits: GateLimits, seed: int) -> GateLimits:
    """No engine is simulated, only its decisions: there are no layers to judge."""
    return limits.model_copy(update={"seed": seed, "layers": ()})


def line(name: str, samples: int, verdicts: Counter[str]) -> str:
    total = sum(verdicts.values())
    share = {v: 100 * verdicts[v] / total for v in ("pass", "inconclusive", "fail")}
    return f"| {name} | {samples} | {share['pass']:.1f} | {share['inconclusive']:.1f} | {share['fail']:.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=2026)
    options = parser.parse_args()
    default = GateLimits()
    sizes = (360, 1000, 5000, 10_000)
    head = "| {} | samples | pass % | inconclusive % | fail % |\n| --- | ---: | ---: | ---: | ---: |"

    print(f"\n### False alarms: {options.runs} runs without a change\n\n" + head.format("noise"), flush=True)
    for name, retrain in (("rebuild", False), ("retrain", True)):
        for samples in sizes:
            print(
                line(name, samples, simulate(samples, retrain, Plant(), options.runs, default, options.seed)),
                flush=True,
            )

    print(
        f"\n### Power: {options.runs} runs with a true drop of twice the limit\n\n" + head.format("planted"), flush=True
    )
    plants = (
        ("INT8 2 % below FP32 (limit 1 %)", Plant(int8=0.02)),
        ("all stages 2 % below the baseline (limit 1 %)", Plant(weights=0.02)),
        ("FP16 0.2 % below FP32 (limit 0.1 %)", Plant(fp16=0.002)),
        ("FP16 0.6 % below FP32 (the practical margin)", Plant(fp16=0.006)),
    )
    for name, plant in plants:
        for samples in sizes:
            print(line(name, samples, simulate(samples, False, plant, options.runs, default, options.seed)), flush=True)
    print(
        line(
            "latency +40 % (limit 20 %)",
            1000,
            simulate(1000, False, Plant(latency=1.4), options.runs, default, options.seed),
        )
    )

    rules = tuple(
        AccuracyRule.model_validate({**rule.model_dump(exclude_none=True), "practical": 0.0})
        for rule in default.accuracy
    )
    strict = default.model_copy(update={"accuracy": rules})
    print(f"\n### The same with `practical: 0` (twice the limit must be excluded), {options.runs} runs\n")
    print(head.format("planted"), flush=True)
    for name, plant in (("no change (rebuild)", Plant()), ("FP16 0.2 % below FP32", replace(Plant(), fp16=0.002))):
        for samples in (1000, 5000, 10_000, 50_000):
            print(line(name, samples, simulate(samples, False, plant, options.runs, strict, options.seed)), flush=True)


if __name__ == "__main__":
    main()
