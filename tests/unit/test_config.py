"""pipeline.yaml: every error names file, line, key, what was expected and the nearest valid key."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploychain.config import load_pipeline
from deploychain.errors import ConfigError

GOOD = """\
name: fashion
task: task.py:FashionTask
stages:
  train: {epochs: 3, precision: fp16-mixed}
  weights:
  export:
"""


def write(tmp_path: Path, text: str, task: bool = True) -> Path:
    if task:
        (tmp_path / "task.py").write_text("class FashionTask: ...\n")
    file = tmp_path / "pipeline.yaml"
    file.write_text(text)
    return file


def failure(tmp_path: Path, text: str, *sets: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load_pipeline(write(tmp_path, text), sets)
    return caught.value


def test_named_stages_get_defaults_and_unnamed_ones_are_absent(tmp_path: Path) -> None:
    pipeline = load_pipeline(write(tmp_path, GOOD))
    assert [name for name, _ in pipeline.settings.stages.named()] == ["train", "weights", "export"]
    assert pipeline.settings.stages.train is not None
    assert pipeline.settings.stages.train.epochs == 3
    assert pipeline.settings.stages.export is not None
    assert pipeline.settings.stages.export.opset == 17
    assert pipeline.task is not None
    assert pipeline.task.file == tmp_path / "task.py"


def test_without_stages_the_whole_chain_runs(tmp_path: Path) -> None:
    pipeline = load_pipeline(write(tmp_path, "task: task.py:FashionTask\n"))
    assert [n for n, _ in pipeline.settings.stages.named()] == [
        "train", "weights", "qat", "export", "plan", "build", "evaluate", "compare",
    ]  # fmt: skip
    assert pipeline.settings.name == tmp_path.name.strip("-.")


def test_a_foreign_onnx_leaves_the_training_stages_out(tmp_path: Path) -> None:
    pipeline = load_pipeline(write(tmp_path, "start: {onnx: m.onnx}\ndata: d.npz\n"))
    assert [n for n, _ in pipeline.settings.stages.named()] == ["plan", "build", "evaluate", "compare"]


@pytest.mark.parametrize(
    ("text", "line", "message", "remedy"),
    [
        (GOOD.replace("epochs: 3", "epochz: 3"), 4, "stages.train.epochz: unknown key", "'epochs'"),
        (GOOD.replace("  weights:", "  wieghts:"), 5, "unknown stage", "'weights'"),
        (GOOD.replace("fp16-mixed", "fp16"), 4, "stages.train.precision", "'fp16-mixed'"),
        (GOOD.replace("epochs: 3", "epochs: many"), 4, "stages.train.epochs", "schema"),
        (GOOD.replace("epochs: 3", "epochs: 0"), 4, "greater than or equal to 1, found 0", "schema"),
        (GOOD + "  weights:\n", 7, "appears twice", "keep one"),
        (GOOD.replace("task.py", "tusk.py"), 2, "does not exist", "relative to pipeline.yaml"),
        (GOOD.replace("task.py:FashionTask", "FashionTask"), 2, "task is 'FashionTask'", "task.py:ClassName"),
        (GOOD.replace("train: {", "train: [{"), 5, "not valid YAML", ""),
        ("- a\n- b\n", 1, "expected a mapping", "task:"),
        (GOOD.replace("stages:", "stages: [train]\nx:"), 3, "expected a mapping of stage names", "train, weights"),
    ],
)
def test_each_error_names_line_key_and_remedy(tmp_path: Path, text: str, line: int, message: str, remedy: str) -> None:
    error = failure(tmp_path, text)
    assert error.where == f"{tmp_path / 'pipeline.yaml'}:{line}"
    assert message in error.message
    assert remedy in error.remedy


def test_all_problems_are_listed_at_once(tmp_path: Path) -> None:
    error = failure(tmp_path, GOOD.replace("epochs: 3", "epochz: 3").replace("  weights:", "  wieghts:"))
    assert "2 problems" in error.message
    assert "pipeline.yaml:4: stages.train.epochz" in error.message
    assert "pipeline.yaml:5: stages.wieghts" in error.message


def test_set_overrides_and_names_itself_in_errors(tmp_path: Path) -> None:
    pipeline = load_pipeline(write(tmp_path, GOOD), ["train.epochs=7", "seed=5", "stages.export=false"])
    assert pipeline.settings.stages.train is not None
    assert pipeline.settings.stages.train.epochs == 7
    assert pipeline.settings.seed == 5
    assert pipeline.settings.stages.export is None
    assert failure(tmp_path, GOOD, "train.epochs=x").where == "--set train.epochs=x"
    assert "key=value" in failure(tmp_path, GOOD, "train.epochs").message


def test_the_order_of_overrides_does_not_matter(tmp_path: Path) -> None:
    file = write(tmp_path, "data: d.npz\n", task=False)
    one = load_pipeline(file, ["start.onnx=m.onnx", "plan.data_max=100"])
    other = load_pipeline(file, ["plan.data_max=100", "start.onnx=m.onnx"])
    assert one.settings == other.settings
    assert [n for n, _ in one.settings.stages.named()] == ["plan", "build", "evaluate", "compare"]


def test_a_stage_that_is_no_mapping_is_told_in_plain_words(tmp_path: Path) -> None:
    error = failure(tmp_path, GOOD.replace("  weights:", "  weights: 3"))
    assert error.message == "stages.weights: expected a mapping of settings, found 3"


def test_missing_file_folder_and_binary(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    with pytest.raises(ConfigError, match=r"pipeline\.yaml\?"):
        load_pipeline(tmp_path / "pipelin.yaml")
    with pytest.raises(ConfigError, match="folder"):
        load_pipeline(tmp_path)
    (tmp_path / "bin.yaml").write_bytes(b"\xff\xfe\x00a")
    with pytest.raises(ConfigError, match="UTF-8"):
        load_pipeline(tmp_path / "bin.yaml")


def test_alias_bomb_is_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    assert "too many values" in failure(tmp_path, "\n".join(lines)).message


def test_yaml_tags_are_not_executed(tmp_path: Path) -> None:
    error = failure(tmp_path, f"task: !!python/object/apply:os.system ['touch {tmp_path}/pwned']\n")
    assert "not valid YAML" in error.message
    assert not (tmp_path / "pwned").exists()
