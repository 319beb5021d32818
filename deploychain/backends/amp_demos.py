"""The experiments behind the rules: `deploychain audit --explain R08 --demo` runs one in seconds, on the CPU.

Each returns what it measured by name, so that the tests assert on the very numbers that people see.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from deploychain.errors import ConfigError

Facts = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What an experiment measured. `rows` are the facts as printed."""

    rule: str
    facts: Mapping[str, Any]
    conclusion: str
    seconds: float
    how: str

    @property
    def rows(self) -> list[tuple[str, str]]:
        return [(name, _shown(value)) for name, value in self.facts.items()]


def run_demo(rule: str) -> DemoResult:
    """Run the experiment of a rule with a fixed seed and one thread; the caller's random state is restored.

    Raises:
        ConfigError: there is no such rule.
    """
    demo = _all().get(rule)
    if demo is None:
        raise ConfigError(f"rule {rule} has no experiment", where="--demo", remedy="rules are R01 to R28")
    start = time.monotonic()
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        facts, conclusion = demo()
    return DemoResult(rule, facts, conclusion, time.monotonic() - start, f"torch {torch.__version__}, CPU")


def _all() -> dict[str, Callable[[], tuple[Facts, str]]]:
    from deploychain.backends import amp_demos_graph, amp_demos_numerics, amp_demos_training

    return {**amp_demos_training.DEMOS, **amp_demos_numerics.DEMOS, **amp_demos_graph.DEMOS}


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(_shown(v) for v in value)
    return str(value)


def caught(action: Callable[[], object]) -> str:
    """ "RuntimeError: first line" of what an action raises; "" where it raises nothing."""
    try:
        action()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return ""
