"""What reaches the chain from outside: the user's code, file patterns, and who reads ``ok`` and comparison.json."""

from __future__ import annotations

import errno
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from deploychain import chain
from deploychain.cli.app import main
from deploychain.config import load_pipeline
from deploychain.errors import CapabilityError, ConfigError, StageError
from deploychain.job import Job, Stage, StageResult
from deploychain.workspace import Workspace


def stage(
    name: str, requires: tuple[str, ...], produces: str, text: str = "{}", accepts: tuple[str, ...] = ()
) -> Stage:
    def run(job: Job[Any]) -> StageResult:
        (job.out / "out.txt").write_text(text)
        return StageResult({produces: "out.txt"})

    return Stage(name, 1, requires, accepts, (produces,), (), False, run)


def pipeline(tmp_path: Path, text: str, *sets: str) -> Any:
    file = tmp_path / "pipeline.yaml"
    file.write_text(text)
    return load_pipeline(file, sets)


def use(monkeypatch: pytest.MonkeyPatch, *stages: Stage) -> None:
    monkeypatch.setattr(chain, "registry", lambda: {s.name: s for s in stages})


def test_code_that_calls_sys_exit_is_a_failed_stage_not_a_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leave(job: Job[Any]) -> StageResult:
        raise SystemExit(0)

    use(monkeypatch, Stage("train", 1, (), (), ("checkpoint",), (), False, leave))
    with pytest.raises(StageError, match=r"sys\.exit\(0\)"):
        chain.run(pipeline(tmp_path, "stages: {train: }\n"))
    assert not list((tmp_path / "runs").glob("*/cache/*"))


@pytest.mark.parametrize("as_json", [False, True])
def test_an_interruption_is_told(
    as_json: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(job: Job[Any]) -> StageResult:
        raise KeyboardInterrupt

    use(
        monkeypatch,
        Stage("train", 1, (), (), ("checkpoint",), (), False, interrupt),
        stage("weights", ("checkpoint",), "weights"),
    )
    pipeline(tmp_path, "name: p\nstages: {train: , weights: }\n")
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as caught:
        main(["run", str(tmp_path / "pipeline.yaml"), *(["--json"] if as_json else [])])
    signal.signal(signal.SIGTERM, before)
    assert caught.value.code == 130
    shown = capsys.readouterr()
    if as_json:
        assert json.loads(shown.out)["error"]["kind"] == "interrupted"
    else:
        assert shown.out == "" and "interrupted (the same command goes on where it stopped)" in shown.err
    rows = json.loads((tmp_path / "runs/p/run.json").read_text())["stages"]
    assert [(r["status"], r["reason"]) for r in rows] == [
        ("failed", "was interrupted"),
        ("not-run", "train was interrupted"),
    ]


def test_ok_means_that_everything_asked_for_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, stage("train", (), "checkpoint"), stage("weights", ("checkpoint",), "weights"))
    made = pipeline(tmp_path, "stages: {train: , weights: }\n")
    assert not chain.dry_run(made).ok
    first = chain.run(made, selection=chain.Selection(last="train"))
    assert [row.status for row in first.stages] == ["ran", "not-run"]
    assert first.ok
    assert chain.run(made).ok and chain.dry_run(made).ok


def test_comparison_json_follows_the_settings_there_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def compare(job: Job[Any]) -> StageResult:
        # Equal length for both settings: only the content tells them apart.
        (job.out / "c.json").write_text(json.dumps({"evals": [], "engines": [], "n": job.settings.worst_samples}))
        return StageResult({"comparison": "c.json"})

    use(monkeypatch, Stage("compare", 1, (), (), ("comparison",), (), False, compare))
    for count in (3, 4, 3):
        made = pipeline(tmp_path, "name: p\nstages: {compare: }\n", f"compare.worst_samples={count}")
        result = chain.run(made)
        assert json.loads((result.run_dir / "comparison.json").read_text())["n"] == count


@pytest.mark.parametrize("pattern", ["", "a**b", "/no/such/*.npz", "a\0b"])
def test_a_watch_pattern_without_files_is_told(pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, stage("train", (), "checkpoint"))
    made = pipeline(tmp_path, f"watch: [{json.dumps(pattern)}]\nstages: {{train: }}\n")
    with pytest.raises(ConfigError, match="matches no file"):
        chain.dry_run(made)


def test_an_absolute_watch_pattern_is_a_pattern_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, stage("train", (), "checkpoint"))
    (tmp_path / "one.npz").write_bytes(b"1")
    made = pipeline(tmp_path, f"watch: [{tmp_path}/*.npz]\nstages: {{train: }}\n")
    assert chain.dry_run(made).stages[0].status == "stale"


def test_a_null_byte_in_a_start_path_is_a_missing_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, stage("weights", ("checkpoint",), "weights"))
    made = pipeline(tmp_path, 'start: {checkpoint: "a\\0b"}\nstages: {weights: }\n')
    with pytest.raises(ConfigError, match="does not exist"):
        chain.dry_run(made)


def test_weights_beside_a_start_model_are_causes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def message(*fields: tuple[int, bytes]) -> bytes:
        return b"".join(bytes([number << 3 | 2, len(value)]) + value for number, value in fields)

    tensor = message((8, b"w"), (13, message((1, b"location"), (2, b"m.data"))))
    tensor += b"\x70\x01"  # data_location: EXTERNAL
    (tmp_path / "m.onnx").write_bytes(message((7, message((1, message((4, b"Relu"))), (5, tensor)))))
    (tmp_path / "m.data").write_bytes(b"old weights")
    use(monkeypatch, stage("build", ("onnx-fp32",), "engine-fp32"))
    made = pipeline(tmp_path, "start: {onnx: m.onnx}\nstages: {build: }\n")
    chain.run(made)
    assert chain.dry_run(made).ok
    (tmp_path / "m.data").write_bytes(b"new weights")
    row = chain.dry_run(made).stages[0]
    assert row.status == "stale" and "m.data changed" in row.reason
    (tmp_path / "m.data").write_bytes(b"old weights")
    assert chain.dry_run(made).ok


@pytest.mark.parametrize("name", ["plan", "evaluate"])
def test_a_stage_that_needs_data_says_so_before_anything_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m.onnx").write_bytes(b"")
    use(monkeypatch, stage(name, ("onnx-fp32",), "comparison"))
    with pytest.raises(ConfigError, match=f"{name} needs data"):
        chain.dry_run(pipeline(tmp_path, f"start: {{onnx: m.onnx}}\nstages: {{{name}: }}\n"))


@pytest.mark.parametrize("where", ["run.json", "work folder", "stage's own words"])
def test_a_full_disk_is_told_wherever_it_is_met(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")

    def fail(*_: object) -> None:
        raise full

    def body(job: Job[Any]) -> StageResult:
        raise StageError("cannot write the model: No space left on device")

    use(monkeypatch, Stage("train", 1, (), (), ("checkpoint",), (), False, body))
    if where == "run.json":
        monkeypatch.setattr(chain, "write_json", fail)
    elif where == "work folder":
        monkeypatch.setattr(Workspace, "work_dir", fail)
    with pytest.raises(CapabilityError, match="disk is full"):
        chain.run(pipeline(tmp_path, "stages: {train: }\n"))


def test_a_run_folder_that_became_read_only_is_the_machines_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Workspace, stage: str) -> Path:
        raise OSError(errno.EROFS, "Read-only file system", str(self.root / "tmp"))

    use(monkeypatch, stage("train", (), "checkpoint"))
    monkeypatch.setattr(Workspace, "work_dir", fail)
    with pytest.raises(CapabilityError, match="cannot write the run folder: Read-only"):
        chain.run(pipeline(tmp_path, "stages: {train: }\n"))


def test_forged_numbers_are_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, stage("compare", (), "comparison", '{"evals": [{"top1": 0.5}], "engines": []}'))
    made = pipeline(tmp_path, "stages: {compare: }\n")
    result = chain.run(made)
    assert result.table == [{"top1": 0.5}]
    file = result.run_dir / "compare" / "out.txt"
    stat = file.stat()
    file.write_text(file.read_text().replace("0.5", "0.9"))
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(StageError, match="changed since it was published"):
        chain.run(made)


def test_a_project_may_move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, stage("train", (), "checkpoint", accepts=("data",)))
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "d.npz").write_bytes(b"1")
    chain.run(pipeline(tmp_path / "here", "name: p\nwatch: [d.npz]\nstages: {train: }\n"))
    (tmp_path / "here").rename(tmp_path / "there")
    assert chain.dry_run(load_pipeline(tmp_path / "there" / "pipeline.yaml")).ok


def test_forcing_a_stage_that_may_not_run_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, stage("train", (), "checkpoint"), stage("weights", ("checkpoint",), "weights"))
    made = pipeline(tmp_path, "stages: {train: , weights: }\n")
    with pytest.raises(ConfigError, match="--force weights: it is not among the stages that may run"):
        chain.run(made, selection=chain.Selection(last="train", force=("weights",)))


@pytest.mark.parametrize("harm", ["gone", "changed"])
def test_files_beside_an_artefact_belong_to_it(harm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def large(job: Job[Any]) -> StageResult:
        (job.out / "m.onnx").write_text("graph")
        (job.out / "m.onnx.data").write_text("weights")
        return StageResult({"onnx-fp32": "m.onnx"})

    use(monkeypatch, Stage("export", 1, (), (), ("onnx-fp32",), (), False, large))
    made = pipeline(tmp_path, "stages: {export: }\n")
    result = chain.run(made)
    assert chain.dry_run(made).ok
    file = result.run_dir / "export" / "m.onnx.data"
    if harm == "gone":
        file.unlink()
    else:
        file.write_text("WEIGHTS")
    assert chain.dry_run(made).stages[0].status == "stale"
    assert [row.status for row in chain.run(made).stages] == ["ran"]
    assert file.read_text() == "weights"


def test_a_preview_of_a_read_only_run_folder_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, stage("train", (), "checkpoint", accepts=("data",)))
    (tmp_path / "d.npz").write_bytes(b"1")
    made = pipeline(tmp_path, "watch: [d.npz]\nstages: {train: }\n")
    chain.run(made)
    (tmp_path / "d.npz").write_bytes(b"22")

    def read_only(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("deploychain.workspace.write_json", read_only)
    assert chain.dry_run(made).stages[0].reason == "data file d.npz changed"
