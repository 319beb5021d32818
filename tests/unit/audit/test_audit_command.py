"""The JSON that scripts rely on, exit codes, formats, settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from deploychain.audit.command import Request, run
from deploychain.cli.app import main
from deploychain.errors import ConfigError

PLANTED = Path(__file__).parents[2] / "audit_set" / "planted"
ERROR, WARNING = PLANTED / "r07_plain.py", PLANTED / "r09_clamp_sigmoid.py"

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["schema", "findings", "files", "problems"],
    "additionalProperties": False,
    "properties": {
        "schema": {"type": "string"},
        "files": {"type": "integer"},
        "findings": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["path", "line", "column", "rule", "severity", "message", "fix"],
                "additionalProperties": False,
                "properties": {
                    "path": {"type": "string"},
                    "line": {"type": "integer", "minimum": 1},
                    "column": {"type": "integer", "minimum": 1},
                    "rule": {"pattern": "^R[0-9]{2}$"},
                    "severity": {"enum": ["error", "warning", "note"]},
                    "message": {"type": "string"},
                    "fix": {"type": "string"},
                },
            },
        },
        "problems": {
            "type": "array",
            "items": {"type": "object", "required": ["path", "text"], "additionalProperties": False,
                      "properties": {"path": {"type": "string"}, "text": {"type": "string"}}},
        },
    },
}  # fmt: skip


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    try:
        main(["audit", *arguments])
        code = 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    return code, capsys.readouterr().out


def test_json_form_and_exit_1(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("def f(:\n")
    code, out = call(capsys, str(ERROR), str(broken), "--format", "json")
    document = json.loads(out)
    jsonschema.validate(document, SCHEMA)
    assert code == 1
    assert document["files"] == 2
    assert [(f["rule"], f["severity"], f["path"]) for f in document["findings"]] == [("R07", "error", str(ERROR))]
    assert document["findings"][0]["line"] == next(
        i
        for i, line in enumerate(ERROR.read_text().splitlines(), start=1)
        if line.strip().startswith("clip_grad_norm_(")
    )
    assert document["problems"][0]["path"] == str(broken)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([str(WARNING)], 0),  # warnings do not fail by default
        ([str(WARNING), "--fail-on", "warning"], 1),
        ([str(ERROR), "--ignore", "R07"], 0),
        ([str(ERROR), "--select", "R01,R02"], 0),
        ([str(ERROR), "--select", "r07"], 1),
        ([str(PLANTED / "r14_import.py"), "--fail-on", "warning"], 0),
        ([str(PLANTED / "r14_import.py"), "--fail-on", "note"], 1),
        ([str(ERROR), "--format", "xml"], 2),
        ([str(ERROR), "--select", "R99"], 2),
        ([str(ERROR), "--fail-on", "never"], 2),
        (["does/not/exist.py"], 2),
        ([], 2),
    ],
)  # fmt: skip
def test_exit_codes(capsys: pytest.CaptureFixture[str], arguments: list[str], code: int) -> None:
    assert call(capsys, *arguments)[0] == code


def test_text_shows_place_rule_consequence_and_fix(capsys: pytest.CaptureFixture[str]) -> None:
    _, out = call(capsys, str(ERROR))
    assert "r07_plain.py:13:9: error R07 unscale-before-clip" in out
    assert "1/65536" in out
    assert "+ scaler.unscale_(optimizer)" in out
    assert out.rstrip().endswith("1 error, 0 warnings, 0 notes in 1 file")


def test_github_commands_escape(capsys: pytest.CaptureFixture[str]) -> None:
    _, out = call(capsys, str(ERROR), "--format", "github")
    line = out.strip()
    assert line.startswith("::error file=")
    assert ",line=13,col=9,title=R07::" in line
    assert "\n" not in line and "%0A" in line


def test_sarif_is_valid_in_the_parts_that_code_scanning_reads(tmp_path: Path) -> None:
    broken = tmp_path / "b.py"
    broken.write_text("def f(:\n")
    output = run(Request(paths=(ERROR, WARNING, broken), format="sarif")).output
    assert isinstance(output, dict)
    assert output["version"] == "2.1.0"
    (only,) = output["runs"]
    rules = [r["id"] for r in only["tool"]["driver"]["rules"]]
    assert rules == ["R07", "R09"]
    for result in only["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        region = result["locations"][0]["physicalLocation"]["region"]
        assert region["startLine"] >= 1 and region["startColumn"] >= 1
    assert [r["level"] for r in only["results"]] == ["error", "warning"]
    assert "syntax error" in only["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]


def test_settings_come_from_pyproject_and_the_command_line_wins(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.deploychain.audit]\nignore = ["R07"]\nfail-on = "warning"\n')
    file = tmp_path / "train.py"
    file.write_text(ERROR.read_text())
    assert run(Request(paths=(file,))).report.findings == ()
    again = run(Request(paths=(file,), ignore="R01"))
    assert [f.rule for f in again.report.findings] == ["R07"]
    (tmp_path / "warn.py").write_text(WARNING.read_text())
    assert run(Request(paths=(tmp_path / "warn.py",))).failed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tool.deploychain.audit]\nselekt = []\n", "selekt"),
        ('[tool.deploychain.audit]\nselect = "R01"\n', "list of strings"),
        ('[tool.deploychain.audit]\nignore = ["R77"]\n', "R77"),
        ("[tool.deploychain.audit\n", "not valid TOML"),
        ("[tool.deploychain]\naudit = 3\n", "audit must be a table"),
        ("tool = 3\n", "tool must be a table"),
        ('[tool.deploychain.audit]\nexclude = [""]\n', "exclude must be a list"),
    ],
)
def test_wrong_settings_say_where(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    (tmp_path / "a.py").write_text("x = 1\n")
    with pytest.raises(ConfigError, match=said):
        run(Request(paths=(tmp_path / "a.py",)))


def test_explain_shows_belief_and_truth(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = call(capsys, "--explain", "r8")
    assert code == 0
    assert out.startswith("R08 half-params-in-training")
    assert (
        "Often said:" in out and "Measured:" in out and "Attempting to unscale FP16 gradients" in " ".join(out.split())
    )
    assert call(capsys, "--explain", "R29")[0] == 2


def test_rule_list_has_28(capsys: pytest.CaptureFixture[str]) -> None:
    _, out = call(capsys, "--list-rules")
    assert [line[:3] for line in out.strip().splitlines()] == [f"R{i:02d}" for i in range(1, 29)]


@pytest.mark.parametrize(
    ("comment", "said"),
    [("ignore", "without a rule"), ("ignore[]", "without a rule"), ("ignore[R07, R99] reason", "R99: no such rule")],
)
def test_a_comment_that_switches_nothing_off_is_a_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], comment: str, said: str
) -> None:
    file = tmp_path / "train.py"
    file.write_text(f"import torch\n\nx = 1  # deploychain: {comment}\n")
    code, out = call(capsys, str(file), "--json")
    assert code == 0
    assert [p["text"].split(";")[0] for p in json.loads(out)["problems"]] == [f"line 3: `deploychain: ignore` {said}"]


def test_demo_without_a_rule_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "--demo")[0] == 2
