"""The fingerprint of the task's code: what makes a stage stale, and what the user's code may not do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from deploychain.errors import ConfigError
from deploychain.task import TaskRef


def test_two_files_with_the_same_class_name_are_two_tasks(tmp_path: Path) -> None:
    for name in ("first.py", "second.py"):
        (tmp_path / name).write_text(f"class Task: name = {name!r}\n")
    prints = {TaskRef.parse(f"{name}:Task", tmp_path, {}).fingerprint() for name in ("first.py", "second.py")}
    assert len(prints) == 2


def test_a_change_in_any_module_of_the_package_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "fingerprinted_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "tasks.py").write_text("class Task: ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    task = TaskRef.parse("fingerprinted_package.tasks:Task", tmp_path, {})
    before = task.fingerprint()
    assert task.fingerprint() == before
    (package / "tasks.py").write_text("class Task: value = 1\n")
    assert task.fingerprint() != before


def test_a_change_in_a_single_module_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "fingerprinted_module.py"
    file.write_text("class Task: ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    task = TaskRef.parse("fingerprinted_module:Task", tmp_path, {})
    before = task.fingerprint()
    file.write_text("class Task: value = 1\n")
    assert task.fingerprint() != before


@pytest.mark.parametrize("module", ["no.such.module", "..x", "__main__"])
def test_a_module_that_is_not_found_is_told_on_loading(module: str, tmp_path: Path) -> None:
    task = TaskRef.parse(f"{module}:Task", tmp_path, {})
    task.fingerprint()
    with pytest.raises(ConfigError):
        task.load()


def test_a_folder_called_like_a_module_is_no_code(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text("class Task: ...\n")
    (tmp_path / "data.py").mkdir()
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere")
    TaskRef.parse("task.py:Task", tmp_path, {}).fingerprint()


def test_a_null_byte_in_the_path_is_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        TaskRef.parse("a\0b.py:Task", tmp_path, {})


@pytest.mark.parametrize(
    "code",
    ["import sys; sys.exit(0)", "class Task:\n    def __init__(self):\n        raise SystemExit(0)\n"],
    ids=["on import", "in the constructor"],
)
def test_a_task_that_exits_is_an_error(code: str, tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(code)
    with pytest.raises(ConfigError, match="SystemExit"):
        TaskRef.parse("task.py:Task", tmp_path, {}).load()
    sys.path.remove(str(tmp_path))
