"""A short form of scripts/bench_gate.py: false alarms and power, with fixed seeds."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from deploychain.gate.limits import GateLimits

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "bench_gate.py"


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_gate", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_gate"] = module
    spec.loader.exec_module(module)
    return module


LIMITS = GateLimits(resamples=1000)


@pytest.mark.parametrize("retrain", [False, True], ids=["rebuild", "retrain"])
def test_runs_without_a_change_do_not_fail_and_mostly_pass(bench: ModuleType, retrain: bool) -> None:
    verdicts = bench.simulate(2000, retrain, bench.Plant(), 40, LIMITS, 7)
    assert verdicts["fail"] == 0
    assert verdicts["pass"] >= 30


@pytest.mark.parametrize("plant", [{"int8": 0.02}, {"weights": 0.02}, {"latency": 1.4}], ids=str)
def test_twice_the_limit_does_not_get_through(bench: ModuleType, plant: dict[str, float]) -> None:
    verdicts = bench.simulate(2000, False, bench.Plant(**plant), 40, LIMITS, 8)
    assert verdicts["pass"] <= 2
    assert verdicts["fail"] >= 20
