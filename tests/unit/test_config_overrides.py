"""`--set`, and values that YAML reads differently from what a person means."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploychain.config import load_pipeline
from deploychain.errors import ConfigError


def write(tmp_path: Path, text: str) -> Path:
    (tmp_path / "task.py").write_text("class Task: ...\n")
    file = tmp_path / "pipeline.yaml"
    file.write_text(text)
    return file


@pytest.mark.parametrize("start", ["weights: w.safetensors", "checkpoint: c.pt", "onnx: m.onnx"])
def test_setting_one_key_leaves_no_stage_out(start: str, tmp_path: Path) -> None:
    file = write(tmp_path, f"task: task.py:Task\nstart: {{{start}}}\n")

    def names(*sets: str) -> list[str]:
        return [name for name, _ in load_pipeline(file, sets).settings.stages.named()]

    assert names("build.opt_batch=4") == names()
    assert names()[-3:] == ["build", "evaluate", "compare"]


def test_an_unknown_stage_in_set_is_told_there_with_the_nearest_stage(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_pipeline(write(tmp_path, "task: task.py:Task\n"), ["trian.epochs=3"])
    assert caught.value.where == "--set trian.epochs=3"
    assert caught.value.remedy == "did you mean 'train'?"


@pytest.mark.parametrize(("text", "value"), [("8.9", "8.9"), ("12.0", "12.0"), ('"8.6"', "8.6")])
def test_a_compute_capability_needs_no_quotes(text: str, value: str, tmp_path: Path) -> None:
    file = write(tmp_path, f"task: task.py:Task\nstages: {{build: {{compute_capability: {text}}}}}\n")
    build = load_pipeline(file).settings.stages.build
    assert build is not None and build.compute_capability == value


@pytest.mark.parametrize("value", [".inf", ".nan"])
def test_numbers_are_finite(value: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"train\.lr"):
        load_pipeline(write(tmp_path, f"task: task.py:Task\nstages: {{train: {{lr: {value}}}}}\n"))


def test_a_document_in_itself_is_told_with_its_file(tmp_path: Path) -> None:
    file = write(tmp_path, "task: &a [*a]\n")
    with pytest.raises(ConfigError, match="contains itself") as caught:
        load_pipeline(file)
    assert caught.value.where == f"{file}:1"
