"""`gate accept` where it is not wanted: two at once, folders that cannot be written or looked into, no history."""

from __future__ import annotations

import dataclasses
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from gate_synthetic import healthy, write

from deploychain.errors import CapabilityError
from deploychain.gate import acceptance
from deploychain.gate.baseline import Baseline, BaselineError, load, save
from deploychain.gate.session import judge_run


def test_of_acceptances_at_once_none_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "b.json"
    acceptance.accept(healthy(), path, reason="first", author="A")

    def slowly(path: Path) -> Baseline:
        made = load(path)
        time.sleep(0.05)  # everybody has read before anybody writes, if nobody waits
        return made

    monkeypatch.setattr(acceptance, "load", slowly)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: acceptance.accept(healthy(), path, reason=f"no. {i}", author="A"), range(4)))
    assert sorted(entry.reason for entry in load(path).history) == ["first", "no. 0", "no. 1", "no. 2", "no. 3"]
    assert [x.name for x in tmp_path.iterdir()] == ["b.json"]  # neither a lock nor a temporary file is left


@pytest.mark.parametrize("name", ["file/b.json", "file/deeper/b.json"])
def test_a_place_that_cannot_be_written_is_said(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CapabilityError, match="baseline"):
        acceptance.accept(healthy(), tmp_path / name, reason="first", author="A")


def test_a_baseline_that_nobody_accepted_is_refused(tmp_path: Path) -> None:
    made, _ = acceptance.accept(healthy(), tmp_path / "b.json", reason="first", author="A")
    save(dataclasses.replace(made, history=()), tmp_path / "b.json")
    with pytest.raises(BaselineError, match="history is empty"):
        load(tmp_path / "b.json")


def test_judging_by_the_defaults_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = write(healthy(), tmp_path / "run")
    assert "limits" in [c.kind for c in judge_run(run, without_baseline=True).result.findings]
    (tmp_path / "gate.yaml").write_text("resamples: 1000\n")
    assert "limits" not in [c.kind for c in judge_run(run, without_baseline=True).result.findings]


def test_a_run_that_cannot_be_looked_into_is_incomplete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write(healthy(), tmp_path / "closed")
    real = Path.stat

    def stat(self: Path, **options: bool) -> object:
        if "closed" in self.parts:
            raise PermissionError(13, "Permission denied", str(self))
        return real(self, **options)

    monkeypatch.setattr(Path, "stat", stat)  # root may look into anything: no mode of a folder would stop a test
    monkeypatch.chdir(tmp_path)
    result = judge_run(run, without_baseline=True).result
    assert result.exit_code == 4
    assert "cannot read the comparison" in result.findings[0].message
