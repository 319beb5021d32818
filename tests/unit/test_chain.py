"""The chain's caching, selection, interruption and error rules, on small stages of its own."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deploychain import chain
from deploychain.config import load_pipeline
from deploychain.errors import CapabilityError, ConfigError, DeploychainError, StageError
from deploychain.job import Job, Stage, StageResult

RUNS: list[str] = []


def stage(
    name: str, requires: tuple[str, ...], produces: str, body: Callable[[Job[Any]], None] | None = None, **more: Any
) -> Stage:
    def run(job: Job[Any]) -> StageResult:
        RUNS.append(name)
        if body is not None:
            body(job)
        text = name + "".join(job.input(kind).read_text() for kind in requires) + str(more.get("salt", ""))
        (job.out / "out.txt").write_text(text)
        return StageResult({produces: "out.txt"}, {"length": len(text)})

    return Stage(name, more.get("version", 1), requires, (), (produces,), more.get("facts", ()), False, run)


@pytest.fixture
def stages(monkeypatch: pytest.MonkeyPatch) -> dict[str, Stage]:
    RUNS.clear()
    table = {
        "train": stage("train", (), "checkpoint"),
        "weights": stage("weights", ("checkpoint",), "weights"),
        "export": stage("export", ("weights",), "onnx-fp32"),
    }
    monkeypatch.setattr(chain, "registry", lambda: table)
    return table


def run(tmp_path: Path, *sets: str, **selection: Any) -> chain.RunResult:
    file = tmp_path / "pipeline.yaml"
    if not file.exists():
        file.write_text("name: p\nstages: {train: {epochs: 1}, weights: , export: }\n")
    return chain.run(load_pipeline(file, sets), selection=chain.Selection(**selection))


def statuses(result: chain.RunResult) -> list[str]:
    return [row.status for row in result.stages]


def test_second_run_does_nothing_and_a_change_runs_only_what_depends_on_it(
    tmp_path: Path, stages: dict[str, Stage]
) -> None:
    assert statuses(run(tmp_path)) == ["ran", "ran", "ran"]
    assert statuses(run(tmp_path)) == ["cached", "cached", "cached"]
    assert RUNS == ["train", "weights", "export"]
    # Training again gives the same bytes, so what is behind it is cached by content.
    result = run(tmp_path, "train.epochs=2")
    assert statuses(result) == ["ran", "cached", "cached"]
    assert "setting epochs was 1, now 2" in result.stages[0].reason
    assert statuses(run(tmp_path, "export.tolerance=0.5")) == ["cached", "cached", "ran"]
    # Going back finds the old result.
    assert statuses(run(tmp_path)) == ["cached", "cached", "cached"]


def test_a_new_stage_version_or_fact_makes_it_stale(
    tmp_path: Path, stages: dict[str, Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = {"torch": "1"}
    monkeypatch.setattr(chain, "fact", facts.__getitem__)
    stages["weights"] = stage("weights", ("checkpoint",), "weights", facts=("torch",))
    run(tmp_path)
    facts["torch"] = "2"
    result = run(tmp_path)
    assert statuses(result) == ["cached", "ran", "cached"]
    assert "fact torch was 1, now 2" in result.stages[1].reason
    stages["weights"] = stage("weights", ("checkpoint",), "weights", version=2, facts=("torch",))
    assert statuses(run(tmp_path)) == ["cached", "ran", "cached"]


def test_a_damaged_artefact_is_noticed(tmp_path: Path, stages: dict[str, Stage]) -> None:
    result = run(tmp_path)
    (result.run_dir / "weights" / "out.txt").write_text("tampered")
    again = run(tmp_path)
    assert statuses(again) == ["cached", "ran", "cached"]
    assert "changed by hand" in again.stages[1].reason
    assert (again.run_dir / "weights" / "out.txt").read_text() == "weightstrain"


def test_a_damaged_companion_is_noticed(tmp_path: Path, stages: dict[str, Stage]) -> None:
    def external(job: Job[Any]) -> None:
        (job.out / "out.txt.data").write_text("weights of a large model")

    stages["weights"] = stage("weights", ("checkpoint",), "weights", external)
    result = run(tmp_path)
    (result.run_dir / "weights" / "out.txt.data").unlink()
    assert statuses(run(tmp_path)) == ["cached", "ran", "cached"]


def test_same_size_and_time_tampering_is_caught_when_the_file_is_used(tmp_path: Path, stages: dict[str, Stage]) -> None:
    result = run(tmp_path)
    file = result.run_dir / "train" / "out.txt"
    stat = file.stat()
    file.write_text("TRAIN")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(StageError, match="changed since it was published"):
        run(tmp_path, force=("weights",))


def test_a_record_that_was_edited_by_hand_is_not_believed(tmp_path: Path, stages: dict[str, Stage]) -> None:
    record = run(tmp_path).run_dir / "weights" / "record.json"
    content = json.loads(record.read_text())
    content["summary"]["length"] = 99
    record.write_text(json.dumps(content))
    assert statuses(run(tmp_path)) == ["cached", "ran", "cached"]
    assert json.loads(record.read_text())["summary"]["length"] == len("weightstrain")


def test_a_folder_in_the_way_of_a_link_is_named(tmp_path: Path, stages: dict[str, Stage]) -> None:
    (tmp_path / "runs" / "p" / "train").mkdir(parents=True)
    with pytest.raises(CapabilityError, match="in the way") as caught:
        run(tmp_path)
    assert caught.value.where.endswith("runs/p/train")


def test_selection(tmp_path: Path, stages: dict[str, Stage]) -> None:
    assert statuses(run(tmp_path, last="weights")) == ["ran", "ran", "not-run"]
    assert statuses(run(tmp_path, first="export")) == ["cached", "cached", "ran"]
    with pytest.raises(StageError, match=r"stale: setting epochs was 1, now 9"):
        run(tmp_path, "train.epochs=9", only="weights")
    assert statuses(run(tmp_path, force=("weights",))) == ["cached", "ran", "cached"]
    with pytest.raises(ConfigError, match="did you mean 'weights'"):
        run(tmp_path, only="weight")
    with pytest.raises(ConfigError, match="not a stage of this chain"):
        run(tmp_path, only="qat")
    with pytest.raises(ConfigError, match="after"):
        run(tmp_path, first="export", last="train")


def test_dry_run_says_why_and_writes_nothing(tmp_path: Path, stages: dict[str, Stage]) -> None:
    (tmp_path / "pipeline.yaml").write_text("name: p\nstages: {train: {epochs: 1}, weights: , export: }\n")
    pipeline = load_pipeline(tmp_path / "pipeline.yaml")
    rows = chain.dry_run(pipeline).stages
    assert [(r.status, r.reason) for r in rows] == [
        ("stale", "never run"),
        ("waiting", "its inputs come from train, which runs first"),
        ("waiting", "its inputs come from weights, which runs first"),
    ]
    assert not (tmp_path / "runs").exists()
    chain.run(pipeline)
    assert {r.status for r in chain.dry_run(pipeline).stages} == {"cached"}
    assert RUNS == ["train", "weights", "export"]


def test_a_failed_stage_keeps_what_is_finished_and_publishes_nothing(tmp_path: Path, stages: dict[str, Stage]) -> None:
    def fail(job: Job[Any]) -> None:
        (job.out / "half.txt").write_text("half")
        raise ValueError("no such thing")

    stages["weights"] = stage("weights", ("checkpoint",), "weights", fail)
    with pytest.raises(StageError, match="ValueError: no such thing"):
        run(tmp_path)
    root = tmp_path / "runs" / "p"
    assert [p.name.split("-")[0] for p in (root / "cache").iterdir()] == ["train"]
    assert list((root / "tmp").iterdir()) == []
    report = json.loads((root / "run.json").read_text())
    assert [s["status"] for s in report["stages"]] == ["ran", "failed", "not-run"]
    assert report["ok"] is False


@pytest.mark.parametrize(
    ("error", "kind", "code", "text"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), CapabilityError, 4, "disk is full"),
        (RuntimeError("PytorchStreamWriter failed writing file"), CapabilityError, 4, "disk is full"),
        (MemoryError(), CapabilityError, 4, "out of memory"),
        (KeyError("x"), StageError, 3, "KeyError: 'x'"),
    ],
)
def test_exceptions_map_to_their_family(
    tmp_path: Path, stages: dict[str, Stage], error: Exception, kind: type, code: int, text: str
) -> None:
    def fail(job: Job[Any]) -> None:
        raise error

    stages["train"] = stage("train", (), "checkpoint", fail)
    with pytest.raises(DeploychainError) as caught:
        run(tmp_path)
    assert type(caught.value) is kind
    assert caught.value.exit_code == code
    assert text in str(caught.value)


def test_missing_inputs_are_named_before_anything_runs(tmp_path: Path, stages: dict[str, Stage]) -> None:
    (tmp_path / "pipeline.yaml").write_text("name: p\nstages:\n  weights:\n")
    with pytest.raises(ConfigError, match="weights needs checkpoint, which nothing before it makes") as caught:
        run(tmp_path)
    assert caught.value.where.endswith("pipeline.yaml:3")
    assert "stage train" in caught.value.remedy
    (tmp_path / "pipeline.yaml").write_text("name: p\nstart: {checkpoint: c.pt}\nstages:\n  weights:\n")
    with pytest.raises(ConfigError, match=r"c\.pt does not exist") as caught:
        run(tmp_path)
    assert caught.value.where.endswith("pipeline.yaml:2")


def test_missing_package_is_named_before_anything_runs(tmp_path: Path, stages: dict[str, Stage]) -> None:
    base = stages["export"]
    stages["export"] = Stage(
        base.name, 1, base.requires, (), base.produces, (), False, base.run, needs=("no_such_package",)
    )
    with pytest.raises(CapabilityError, match="export needs no_such_package"):
        run(tmp_path)
    assert RUNS == []


def test_start_from_a_file(tmp_path: Path, stages: dict[str, Stage]) -> None:
    (tmp_path / "c.pt").write_text("given")
    (tmp_path / "pipeline.yaml").write_text("name: p\nstart: {checkpoint: c.pt}\nstages: {weights: , export: }\n")
    result = run(tmp_path)
    assert statuses(result) == ["ran", "ran"]
    assert (result.run_dir / "export" / "out.txt").read_text() == "exportweightsgiven"
    (tmp_path / "c.pt").write_text("other")
    again = run(tmp_path)
    assert statuses(again) == ["ran", "ran"]
    assert "input checkpoint changed" in again.stages[0].reason


def test_watched_data_makes_stages_that_use_the_task_stale(tmp_path: Path, stages: dict[str, Stage]) -> None:
    base = stages["train"]
    stages["train"] = Stage("train", 1, (), (), base.produces, (), True, base.run)
    (tmp_path / "task.py").write_text("class T: ...\n")
    (tmp_path / "data.bin").write_text("1")
    text = "name: p\ntask: task.py:T\nwatch: [data.bin]\nstages: {train: , weights: , export: }\n"
    (tmp_path / "pipeline.yaml").write_text(text)
    run(tmp_path)
    (tmp_path / "data.bin").write_text("22")
    result = run(tmp_path)
    assert statuses(result) == ["ran", "cached", "cached"]
    assert "data.bin changed" in result.stages[0].reason
    (tmp_path / "task.py").write_text("class T: pass\n")
    assert "task code changed" in run(tmp_path).stages[0].reason
    (tmp_path / "pipeline.yaml").write_text(text.replace("data.bin", "nothing-*.bin"))
    with pytest.raises(ConfigError, match="matches no file"):
        run(tmp_path)


def test_two_runs_at_once_are_refused(tmp_path: Path, stages: dict[str, Stage]) -> None:
    def nested(job: Job[Any]) -> None:
        run(tmp_path)

    stages["train"] = stage("train", (), "checkpoint", nested)
    with pytest.raises(CapabilityError, match="another run"):
        run(tmp_path)


KILLED = """
import sys, time
from pathlib import Path
from deploychain import chain
from deploychain.config import load_pipeline
from deploychain.job import Stage, StageResult

def first(job):
    (job.out / "out.txt").write_text("first")
    return StageResult({"checkpoint": "out.txt"})

def second(job):
    state = job.scratch / "state"
    if state.exists():
        (job.out / "out.txt").write_text("resumed " + state.read_text())
        return StageResult({"weights": "out.txt"})
    state.write_text("epoch 1")
    (job.out / "out.txt").write_text("half writ")
    print("ready", flush=True)
    time.sleep(60)

chain.registry = lambda: {
    "train": Stage("train", 1, (), (), ("checkpoint",), (), False, first),
    "weights": Stage("weights", 1, ("checkpoint",), (), ("weights",), (), False, second),
}
result = chain.run(load_pipeline(Path(sys.argv[1])))
print([r.status for r in result.stages])
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_killed_in_a_stage_resumes_and_never_shows_a_half(tmp_path: Path, how: signal.Signals) -> None:
    (tmp_path / "pipeline.yaml").write_text("name: p\nstages: {train: , weights: }\n")
    script = tmp_path / "drive.py"
    script.write_text(textwrap.dedent(KILLED))
    command = [sys.executable, str(script), str(tmp_path / "pipeline.yaml")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(how)
        process.wait(timeout=20)
    root = tmp_path / "runs" / "p"
    assert [p.name.split("-")[0] for p in (root / "cache").iterdir()] == ["train"]
    assert not (root / "weights").exists()
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "['cached', 'ran']"
    assert (root / "weights" / "out.txt").read_text() == "resumed epoch 1"
    assert list((root / "scratch").glob("weights-*")) == []


def test_clock_is_not_part_of_the_key(tmp_path: Path, stages: dict[str, Stage]) -> None:
    run(tmp_path)
    time.sleep(0.01)
    os.utime(tmp_path / "pipeline.yaml")
    assert statuses(run(tmp_path)) == ["cached"] * 3
