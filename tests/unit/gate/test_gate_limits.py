"""Limits: defaults, and errors that name the key, the line and the nearest valid key."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploychain.errors import ConfigError
from deploychain.gate.limits import AccuracyRule, GateLimits, limit_lines, load_limits, parse_limits


def test_defaults_are_those_of_the_documentation() -> None:
    limits = GateLimits()
    fp16, int8, baseline, classes = limits.accuracy
    assert (fp16.retention, int8.retention) == (99.9, 99.0)
    assert baseline.baseline_retention == 99.0 and classes.worst_class == 90.0
    assert limits.layers[0].max_fallback == 0 and limits.layers[0].max_unknown == 0
    assert [(r.max_increase, r.severity) for r in limits.latency] == [(10.0, "warning"), (20.0, "error")]
    assert limits.on_inconclusive == "fail"
    assert parse_limits(None, "x") == parse_limits({}, "x") == limits


@pytest.mark.parametrize(
    ("raw", "where", "hint"),
    [
        ({"acuracy": []}, "gate.acuracy", "did you mean `accuracy`?"),
        ({"accuracy": [{"retentoin": 99}]}, "gate.accuracy[0].retentoin", "did you mean `retention`?"),
        ({"layers": [{"max_falback": 1}]}, "gate.layers[0].max_falback", "did you mean `max_fallback`?"),
        ({"waivers": [{"reason": "long enough", "stages": "x"}]}, "gate.waivers[0].stages", "did you mean `stage`?"),
        ({"accuracy": [{"zzz": 99}]}, "gate.accuracy[0].zzz", "known keys: stage, metric"),
        ({"accuracy": [{"retention": 0.999}]}, "gate.accuracy[0].retention", "write 99.9 for 99.9 %, not 0.999"),
        ({"accuracy": [{"retention": 101}]}, "gate.accuracy[0].retention", "per cent"),
        ({"accuracy": [{"max_drop": -1}]}, "gate.accuracy[0].max_drop", "greater than or equal to 0"),
        ({"accuracy": [{"floor": float("nan")}]}, "gate.accuracy[0].floor", "finite"),
        ({"accuracy": [{"stage": [], "retention": 99}]}, "gate.accuracy[0].stage", "at least 1"),
        ({"accuracy": [{"stage": "x"}]}, "gate.accuracy[0]", "limits nothing"),
        ({"layers": [{}]}, "gate.layers[0]", "limits nothing"),
        ({"latency": [{"max_p50_ms": 5}]}, "gate.latency[0]", "needs `device`"),
        ({"waivers": [{"reason": "we accept everything"}]}, "gate.waivers[0]", "no gate"),
        ({"waivers": [{"stage": "x", "reason": "short"}]}, "gate.waivers[0].reason", "at least 10"),
        ({"accuracy": [], "layers": [], "latency": [], "size": []}, "gate", "nothing would be judged"),
        ({"on_inconclusive": "ignore"}, "gate.on_inconclusive", "'fail' or 'warn'"),
        ({"expect_change": ["data"]}, "gate.expect_change[0]", "tensorrt"),
    ],
)
def test_errors_name_the_key_and_help(raw: dict[str, object], where: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_limits(raw, "pipeline.yaml:9")
    assert caught.value.exit_code == 2
    assert f"{where}: " in str(caught.value)
    assert hint in str(caught.value)


def test_a_section_that_is_no_mapping() -> None:
    with pytest.raises(ConfigError, match="mapping"):
        parse_limits([1], "pipeline.yaml:9")  # type: ignore[arg-type]


def test_errors_name_the_line_of_the_key(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.yaml"
    path.write_text("task: task.py:T\ngate:\n  accuracy:\n    - stage: '*-int8'\n      retentoin: 99\n")
    with pytest.raises(ConfigError) as caught:
        load_limits(path)
    assert caught.value.where == f"{path}:5"


def test_lines_are_found_in_both_kinds_of_file(tmp_path: Path) -> None:
    body = "accuracy:\n  - stage: x\n    retention: 99\n"
    gate = tmp_path / "gate.yaml"
    gate.write_text(body)
    pipeline = tmp_path / "pipeline.yaml"
    pipeline.write_text("name: x\ngate:\n" + "".join(f"  {line}\n" for line in body.splitlines()))
    key = ("accuracy", 0, "retention")
    assert limit_lines(gate)[key] == 3
    assert limit_lines(pipeline)[key] == 5
    assert load_limits(gate) == load_limits(pipeline)
    assert load_limits(gate).accuracy == (AccuracyRule(stage=("x",), retention=99),)


def test_a_pipeline_without_limits_has_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.yaml"
    path.write_text("task: task.py:T\nstages: {train: {}}\n")
    assert load_limits(path) == GateLimits()


@pytest.mark.parametrize("text", ["- a\n", "a: [\n", "a: 1\na: 2\n", "\x00", "just text"])
def test_files_that_are_no_limits(text: str, tmp_path: Path) -> None:
    path = tmp_path / "gate.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError):
        load_limits(path)


def test_every_default_and_option_is_explained() -> None:
    # The schema is what editors show: an option without a word is a riddle.
    properties = GateLimits.model_json_schema()["properties"]
    explained = {name for name, field in properties.items() if "description" in field}
    assert explained >= {"baseline", "require", "expect_change", "on_inconclusive", "confidence", "false_alarms"}
