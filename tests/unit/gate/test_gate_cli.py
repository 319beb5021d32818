"""The commands: exit codes, JSON, files."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from gate_synthetic import fields, healthy, lose, provenance, write

from deploychain.cli.app import main
from deploychain.gate.baseline import load


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    write(healthy(), tmp_path / "good")
    write(lose("engine-int8", 250)(healthy()), tmp_path / "bad")
    return tmp_path


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
        raise SystemExit(0)
    return int(caught.value.code or 0)


def accepted(*arguments: str) -> int:
    return run("gate", "accept", "good", "--reason", "first baseline", "--author", "A. Uthor", *arguments)


def test_exit_codes_are_the_documented_ones(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("gate", "good") == 3
    assert accepted() == 0
    assert run("gate", "good") == 0
    assert run("gate", "bad") == 1
    assert run("gate", "good", "--on-inconclusive", "perhaps") == 2
    (place / "gate.yaml").write_text("acuracy: []\n")
    assert run("gate", "good") == 2
    assert "did you mean `accuracy`?" in capsys.readouterr().err
    (place / "gate.yaml").unlink()
    write(fields("engine-fp16", metrics={"top1": None})(healthy()), place / "nan")
    assert run("gate", "nan") == 4
    assert run("gate", "missing") == 4
    write(lose("engine-fp16", 10)(healthy()), place / "unsure")
    assert run("gate", "unsure") == 5
    assert run("gate", "unsure", "--on-inconclusive", "warn") == 0


def test_the_ways_to_name_a_run(place: Path) -> None:
    accepted()
    assert run("gate", "check", "good") == run("gate", "good/comparison.json") == run("gate", "--json", "good") == 0


def test_json(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    accepted()
    capsys.readouterr()
    assert run("gate", "bad", "--json") == 1
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document["verdict"] == "fail" and captured.err == ""
    assert document["findings"][0]["stage"] == "engine-int8"
    assert run("gate", "bad", "--json", "--limits", "none.yaml") == 2
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "configuration"


def test_limits_of_a_pipeline_and_their_baseline(place: Path) -> None:
    project = place / "project"
    project.mkdir()
    (project / "pipeline.yaml").write_text(
        "task: t.py:T\ngate:\n  baseline: base/b.json\n  accuracy: [{stage: engine-int8, retention: 90}]\n"
    )
    assert accepted("--limits", "project/pipeline.yaml") == 0
    assert (project / "base" / "b.json").is_file() and not (place / "gate-baseline.json").exists()
    assert run("gate", "bad", "--limits", "project/pipeline.yaml") == 0  # 5 % lost, 10 % allowed
    assert run("gate", "bad", "--limits", "project/pipeline.yaml", "--baseline", "elsewhere.json") == 3


def test_expected_changes(place: Path) -> None:
    accepted()
    write(provenance(tensorrt="11.4.1")(healthy()), place / "new")
    assert run("gate", "new") == 3
    assert run("gate", "new", "--expect-change", "tensorrt") == 0
    assert run("gate", "new", "--expect-change", "data") == 2


def test_without_a_baseline(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("gate", "good", "--no-baseline") == 0
    assert "a slow decline stays unseen" in capsys.readouterr().out


def test_accept_and_history(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    accepted()
    write(lose("engine-int8", 5)(healthy()), place / "second")
    assert run("gate", "accept", "second", "--reason", "smaller head", "--author", "B", "--json") == 0
    capsys.readouterr()
    assert run("gate", "history") == 0
    text = capsys.readouterr().out
    assert "engine-int8/top1" in text and "█▁" in text and "smaller head" in text
    assert "onnx-fp16/top1" not in text  # it never changed
    assert run("gate", "history", "--value", "onnx-fp16/*") == 0
    assert "onnx-fp16/top1" in capsys.readouterr().out
    assert run("gate", "history", "--json") == 0
    assert [e["reason"] for e in json.loads(capsys.readouterr().out)["history"]] == ["first baseline", "smaller head"]
    assert load(place / "gate-baseline.json").history[1].author == "B"


def test_accept_refuses_what_it_must(place: Path) -> None:
    assert run("gate", "accept", "good") == 2  # no reason
    assert run("gate", "accept", "good", "--reason", " ") == 2
    assert run("gate", "accept", "missing", "--reason", "because") == 3
    assert not (place / "gate-baseline.json").exists()


def test_verify(place: Path) -> None:
    accepted()
    path = place / "gate-baseline.json"
    assert run("gate", "verify", str(path)) == 0
    path.write_text(path.read_text().replace("0.97", "0.91", 1))
    assert run("gate", "verify", str(path)) == 3


def test_report(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("report", "bad") == 0
    first = (place / "bad" / "report.html").read_text()
    assert "fail" in first and "judged without a baseline" in first
    accepted()
    assert run("report", "bad", "-o", "out/page.html") == 0
    assert "baseline of" in (place / "out" / "page.html").read_text()
    assert run("report", "good", "--no-gate", "-o", "plain.html") == 0
    assert "Findings of the gate" not in (place / "plain.html").read_text()
    assert run("report", "missing") == 3


def test_out_that_cannot_be_written(place: Path) -> None:
    (place / "file").write_text("")
    assert run("gate", "good", "--no-baseline", "--out", "file/below") == 4


def test_hostile_names_cannot_drive_the_terminal(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = "\x1b[2J[bold]evil[/bold]\n::error::x"
    made = dataclasses.replace(
        healthy(), evals=(*healthy().evals, dataclasses.replace(healthy().evals[0], stage=evil, ran=False, reason=evil))
    )
    write(made, place / "evil")
    assert run("gate", "evil", "--no-baseline", "--github") == 4
    text = capsys.readouterr().out
    assert "\x1b[2J" not in text and "[bold]evil[/bold]" in text
    assert not [line for line in text.splitlines() if line.startswith("::error::x")]


def test_the_summary_goes_where_github_says(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(place / "summary.md"))
    run("gate", "good", "--no-baseline")
    assert not (place / "summary.md").exists()  # only when asked
    run("gate", "good", "--no-baseline", "--github")
    assert "## Precision gate: pass" in (place / "summary.md").read_text()
