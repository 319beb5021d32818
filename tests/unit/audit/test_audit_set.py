"""The labelled set: recall on planted mistakes, and not one finding on sound code."""

# ruff: noqa: E501
from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from deploychain.audit.rules import load_rules
from deploychain.audit.runner import audit_paths

SET = Path(__file__).parents[2] / "audit_set"
PLANTED = sorted((SET / "planted").glob("*.py"))
SOUND = sorted((SET / "sound").glob("*.py"))


def expected(file: Path) -> set[str]:
    match = re.search(r"# expect: ([R\d, ]+)", file.read_text(encoding="utf-8"))
    assert match is not None, f"{file.name} has no label"
    return set(match[1].replace(" ", "").split(","))


def test_the_set_is_large_enough_and_covers_every_rule_twice() -> None:
    assert len(PLANTED) >= 60
    assert len(SOUND) >= 60
    forms: dict[str, int] = defaultdict(int)
    for file in PLANTED:
        for rule in expected(file):
            forms[rule] += 1
    assert {rule for rule in load_rules() if forms[rule] < 2} == set()


@pytest.mark.parametrize("file", PLANTED, ids=lambda f: f.stem)
def test_a_planted_mistake_is_found_and_nothing_else(file: Path) -> None:
    report = audit_paths([file])
    assert report.problems == ()
    assert {f.rule for f in report.findings} == expected(file)


@pytest.mark.parametrize("file", SOUND, ids=lambda f: f.stem)
def test_sound_code_has_no_finding(file: Path) -> None:
    report = audit_paths([file])
    assert report.problems == ()
    assert [(f.rule, f.line, f.message) for f in report.findings] == []


def test_table(capsys: pytest.CaptureFixture[str]) -> None:
    """Prints recall per rule and the false positives; `pytest -s` or scripts/bench_audit.py shows it."""
    found, planted = defaultdict(int), defaultdict(int)
    for file in PLANTED:
        got = {f.rule for f in audit_paths([file]).findings}
        for rule in expected(file):
            planted[rule] += 1
            found[rule] += rule in got
    false = sum(len(audit_paths([file]).findings) for file in SOUND)
    with capsys.disabled():
        print(
            f"\naudit set: {sum(found.values())} of {sum(planted.values())} planted found, {false} findings on {len(SOUND)} sound"
        )
    assert sum(found.values()) / sum(planted.values()) >= 0.95
    assert false == 0


def test_findings_are_the_same_in_every_run() -> None:
    """Not a word hangs on the order of a set, which changes from process to process."""
    said = []
    for seed in ("1", "2"):
        command = [sys.executable, "-m", "deploychain", "audit", str(SET), "--format", "json"]
        done = subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True)
        assert done.returncode == 1, done.stderr
        said.append(done.stdout.splitlines())
    assert said[0] == said[1]
