"""Promises to users and to ourselves: light imports, public names, help texts, import rules."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import deploychain

ROOT = Path(deploychain.__file__).parent.parent
HEAVY = ("torch", "onnx", "onnxruntime", "modelopt", "polygraphy", "tensorrt", "tensorrt_rtx", "scipy", "sklearn")


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=120, check=False
    )


def modules_after(code: str) -> set[str]:
    done = python(f"import sys, json\n{code}\nprint(json.dumps(sorted(sys.modules)), file=sys.stderr)")
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr.splitlines()[-1]))


def test_importing_the_package_imports_nothing_heavy() -> None:
    loaded = modules_after("import deploychain")
    assert not loaded & {*HEAVY, "numpy", "pydantic", "rich"}


def test_help_imports_no_framework_and_no_validation() -> None:
    loaded = modules_after("from deploychain.cli.app import main\ntry:\n main(['--help'])\nexcept SystemExit:\n pass")
    assert not loaded & {*HEAVY, "numpy", "pydantic", "yaml"}


def test_planning_a_run_imports_no_framework_and_no_numpy(tmp_path: Path) -> None:
    pipeline = ROOT / "pipelines" / "digits" / "pipeline.yaml"
    arguments = ["run", str(pipeline), "--run-dir", str(tmp_path / "none"), "--dry-run"]
    loaded = modules_after(
        f"from deploychain.cli.app import main\ntry:\n main({arguments!r})\nexcept SystemExit:\n pass"
    )
    assert "deploychain.stages.evaluate" in loaded
    assert not loaded & {*HEAVY, "numpy"}


def test_every_evidence_side_module_imports_without_frameworks() -> None:
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in sorted((ROOT / "deploychain").rglob("*.py"))
        if "backends" not in path.parts and path.name not in ("__init__.py", "__main__.py")
    ]
    assert len(names) > 30
    block = f"""
import sys, importlib
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in {HEAVY!r}:
            raise ImportError('framework import: ' + name)
sys.meta_path.insert(0, Refuse())
for name in {names!r}:
    importlib.import_module(name)
"""
    done = python(block)
    assert done.returncode == 0, done.stderr[-2000:]


def test_public_names_resolve() -> None:
    pytest.importorskip("torch", reason="the monitor needs torch")
    for name in deploychain.__all__:
        assert getattr(deploychain, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        deploychain.nothing  # noqa: B018


def test_every_command_has_help_that_fits_its_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "deploychain", "--help"],
        capture_output=True, text=True, timeout=60, check=True, env={**os.environ, "COLUMNS": "80"},
    )  # fmt: skip
    listed = done.stdout.partition("Commands:")[2].strip().splitlines()
    assert len(listed) >= 3
    for line in listed:
        assert not line.rstrip().endswith("..."), f"summary is cut: {line}"
        command = line.split()[0]
        shown = python("from deploychain.cli.app import main; import sys; main(sys.argv[1:])", command, "--help")
        assert shown.returncode == 0
        assert "Usage:" in shown.stdout


def test_errors_exit_by_family_and_come_as_json_when_asked(tmp_path: Path) -> None:
    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "deploychain", *arguments], capture_output=True, text=True, timeout=60, check=False
        )

    missing = call("run", str(tmp_path / "none.yaml"))
    assert missing.returncode == 2
    assert missing.stdout == ""
    assert "Traceback" not in missing.stderr
    as_json = call("run", str(tmp_path / "none.yaml"), "--json")
    assert as_json.returncode == 2
    error = json.loads(as_json.stdout)["error"]
    assert set(error) == {"kind", "message", "where", "remedy"}
    assert error["where"] == str(tmp_path / "none.yaml")
    usage = call("run", "--no-such-option", "--json")
    assert usage.returncode == 2
    assert "no-such-option" in json.loads(usage.stdout)["error"]["message"]
    assert "Traceback" in call("run", str(tmp_path / "none.yaml"), "--debug").stderr


def test_import_rules() -> None:
    tool = Path(sys.executable).parent / "lint-imports"
    if not tool.exists():
        pytest.skip("import-linter is not installed (extra: dev)")
    done = subprocess.run([str(tool)], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


def test_starter_is_a_valid_pipeline_of_under_15_lines(tmp_path: Path) -> None:
    from deploychain.config import load_pipeline
    from deploychain.errors import ConfigError
    from deploychain.starter import write_starter

    written = write_starter(tmp_path)
    assert [p.name for p in written] == ["pipeline.yaml", "task.py"]
    assert len((tmp_path / "pipeline.yaml").read_text().splitlines()) < 15
    assert len(load_pipeline(tmp_path / "pipeline.yaml").settings.stages.named()) == 8
    with pytest.raises(ConfigError, match="exists already"):
        write_starter(tmp_path)


def test_schema_names_every_setting_and_accepts_the_examples() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="extra: test")
    import yaml

    from deploychain.schema import schema_of

    schema = schema_of("pipeline")
    jsonschema.Draft202012Validator.check_schema(schema)
    examples = sorted((ROOT / "pipelines").glob("*/pipeline.yaml"))
    assert examples
    for example in examples:
        jsonschema.validate(yaml.safe_load(example.read_text()), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"stages": {"train": {"epochz": 1}}}, schema)
