"""The CI files: short, valid, and their steps really run."""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from gate_synthetic import healthy, lose, write

from deploychain.gate import accept

ROOT = Path(__file__).resolve().parents[3]
FILES = {
    "action.yml": "vendor.github-actions",
    "docs/ci/gitlab.yml": "vendor.gitlab-ci",
    "docs/ci/example/.github/workflows/precision.yml": "vendor.github-workflows",
    ".pre-commit-hooks.yaml": None,
}


@pytest.mark.parametrize("name", FILES)
def test_each_is_under_forty_lines(name: str) -> None:
    assert len((ROOT / name).read_text().splitlines()) < 40


@pytest.mark.parametrize("name", [name for name, schema in FILES.items() if schema])
def test_each_validates_against_the_schema_of_its_service(name: str) -> None:
    pytest.importorskip("check_jsonschema", reason="check-jsonschema, which ships the schemas, is not installed")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", FILES[name], str(ROOT / name)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A repository with an accepted baseline and two runs, and `deploychain` and a `python` whose pip only records."""
    accept(healthy(), tmp_path / "gate-baseline.json", reason="first", author="A")
    write(healthy(), tmp_path / "runs" / "a good run")
    write(lose("engine-int8", 250)(healthy()), tmp_path / "runs" / "bad")
    (tmp_path / "gate.yaml").write_text("on_inconclusive: fail\n")
    tools = tmp_path / "tools"
    tools.mkdir()
    python = shlex.quote(sys.executable)
    log = shlex.quote(str(tmp_path / "pip.log"))
    _script(tools / "deploychain", f'PYTHONPATH={shlex.quote(str(ROOT))} exec {python} -m deploychain "$@"')
    _script(tools / "python", f'[ "$1 $2" = "-m pip" ] && {{ echo "$@" >> {log}; exit 0; }}; exec {python} "$@"')
    return tmp_path


def _script(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def _environment(place: Path, **values: str) -> dict[str, str]:
    base = {k: v for k, v in os.environ.items() if not k.startswith(("GITHUB_", "CI_"))}
    return {**base, "PATH": f"{place / 'tools'}:{os.environ['PATH']}", **values}


def _expand(text: str, inputs: dict[str, str]) -> str:
    return re.sub(r"\$\{\{\s*inputs\.([a-z-]+)\s*\}\}", lambda m: inputs[m[1]], text)


def run_action(place: Path, **given: str) -> tuple[int, dict[str, str], str]:
    """Run the steps of action.yml as the runner does: bash -eo pipefail, inputs through the environment."""
    action: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    inputs = {name: str(spec.get("default", "")) for name, spec in action["inputs"].items()}
    inputs.update({name.replace("_", "-"): value for name, value in given.items()})
    output, summary = place / "output.txt", place / "summary.md"
    output.write_text("")
    code, text = 0, ""
    for step in action["runs"]["steps"]:
        assert step["shell"] == "bash"
        assert "${{" not in step["run"], "an input pasted into a script could run as code"
        values = {name: _expand(str(value), inputs) for name, value in step.get("env", {}).items()}
        environment = _environment(
            place,
            GITHUB_ACTION_PATH=str(ROOT),
            GITHUB_OUTPUT=str(output),
            GITHUB_STEP_SUMMARY=str(summary),
            GITHUB_ACTIONS="true",
            **values,
        )
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)
        code, text = done.returncode, text + done.stdout + done.stderr
        if code:
            break
    return code, dict(line.split("=", 1) for line in output.read_text().splitlines()), text


def test_the_action_passes_a_healthy_run(place: Path) -> None:
    code, outputs, text = run_action(place, run="runs/a good run")
    assert (code, outputs) == (0, {"verdict": "pass"}), text
    assert (place / "pip.log").read_text().strip() == f"-m pip install --quiet {ROOT}"
    assert (place / "gate-report" / "report.html").is_file()
    assert "## Precision gate: pass" in (place / "summary.md").read_text()
    assert "::error" not in text


def test_the_action_fails_a_damaged_run_and_annotates(place: Path) -> None:
    code, outputs, text = run_action(place, run="runs/bad", out="reports/gate", limits="gate.yaml")
    assert (code, outputs) == (1, {"verdict": "fail"}), text
    assert "::error file=gate.yaml,line=1,title=gate%3A engine-int8 retention top1::" in text
    assert (place / "reports" / "gate" / "gate.sarif").is_file()
    assert "## Precision gate: fail" in (place / "summary.md").read_text()


def test_the_action_passes_its_options_on(place: Path) -> None:
    code, outputs, text = run_action(place, run="runs/bad", baseline="nowhere.json", expect_change="tensorrt device")
    assert (code, outputs) == (1, {"verdict": "fail"}), text
    assert "nowhere.json: there is no baseline" in text
    code, outputs, text = run_action(place, run="runs/bad", on_inconclusive="perhaps")
    assert (code, outputs) == (2, {"verdict": "configuration"}), text
    code, outputs, _ = run_action(place, run="runs/none")
    assert (code, outputs) == (4, {"verdict": "incomplete"})


def test_a_verdict_of_before_is_not_told_again(place: Path) -> None:
    assert run_action(place, run="runs/a good run")[1] == {"verdict": "pass"}
    (place / "tools" / "deploychain").write_text("#!/bin/bash\nexit 4\n")
    code, outputs, text = run_action(place, run="runs/bad")
    assert (code, outputs) == (4, {"verdict": "incomplete"}), text


def test_a_folder_that_cannot_be_written_is_no_regression(place: Path) -> None:
    code, outputs, text = run_action(place, run="runs/a good run", out="gate.yaml")
    assert (code, outputs) == (4, {"verdict": "incomplete"}), text
    assert "Traceback" not in text


def test_an_input_is_data(place: Path) -> None:
    run_action(place, run="$(touch hacked); touch hacked", expect_change="tensorrt")
    run_action(place, run="--help")
    assert not (place / "hacked").exists()


def test_the_gitlab_script_runs(place: Path) -> None:
    template = yaml.safe_load((ROOT / "docs/ci/gitlab.yml").read_text())
    job = template["precision-gate"]
    variables = {k: str(v) for k, v in template["variables"].items()}
    for run, expected in (("runs/a good run", 0), ("runs/bad", 1)):
        environment = _environment(place, **{**variables, "GATE_RUN": run})
        script = "\n".join([*job["before_script"], *job["script"]])
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", script], cwd=place, env=environment, capture_output=True
        )
        assert done.returncode == expected, done.stderr
    for report in job["artifacts"]["reports"].values():
        assert (place / report).is_file()


def test_the_pre_commit_hooks_run(place: Path) -> None:
    hooks = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    used = yaml.safe_load((ROOT / "docs/ci/example/.pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert {hook["id"] for hook in used} == set(hooks)

    def run(name: str, *arguments: str) -> int:
        command = [*shlex.split(hooks[name]["entry"]), *arguments]
        return subprocess.run(command, cwd=place, env=_environment(place), capture_output=True).returncode

    assert re.search(hooks["deploychain-baseline"]["files"], "gate-baseline.json")
    assert run("deploychain-baseline", "gate-baseline.json") == 0
    assert run("deploychain-gate", "runs/a good run") == 0
    assert run("deploychain-gate", "runs/bad") == 1
    text = (place / "gate-baseline.json").read_text()
    (place / "gate-baseline.json").write_text(text.replace("0.97", "0.50", 1))
    assert run("deploychain-baseline", "gate-baseline.json") == 3


def test_the_example_pipeline_has_valid_limits(place: Path) -> None:
    from deploychain.gate import load_limits

    limits = load_limits(ROOT / "docs/ci/example/pipeline.yaml")
    assert limits.accuracy[1].retention == 99


def test_json_on_standard_output_is_one_document(place: Path) -> None:
    command = [str(place / "tools" / "deploychain"), "gate", "runs/bad", "--json", "--out", "o"]
    done = subprocess.run(command, cwd=place, env=_environment(place), capture_output=True, text=True)
    assert done.returncode == 1
    assert json.loads(done.stdout)["verdict"] == "fail"
    assert done.stderr == ""
