"""Judging a scale series, reading logs, naming the guilty rank."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from deploychain.audit.monitor_log import audit_log, guilty_rank, plot_svg, read_log
from deploychain.audit.scale_health import judge_scale
from deploychain.errors import ArtifactError


def test_calibration_and_a_low_scale_are_healthy() -> None:
    # a summed loss: five skips at the start, then steady at 2^11
    changes = [(i + 1, 2.0 ** (16 - i)) for i in range(6)]
    assert judge_scale(changes, [2, 3, 4, 5, 6], 5000) == ()


def test_a_scale_below_one_is_an_error() -> None:
    found = judge_scale([(1, 4.0), (40, 2.0), (50, 0.5)], [40, 50], 60)
    assert [(s.rule, s.severity, s.step) for s in found] == [("R05", "error", 50)]


@pytest.mark.parametrize(("run", "wrong"), [(9, False), (10, True)])
def test_ten_skips_in_a_row(run: int, wrong: bool) -> None:
    skips = list(range(100, 100 + run))
    found = judge_scale([(1, 65536.0)], skips, 500)
    assert bool(found) is wrong
    if found:
        assert "steps 100 to 109" in found[0].message


@pytest.mark.parametrize(("count", "wrong"), [(10, False), (11, True)])
def test_skip_rate_over_a_thousand_steps(count: int, wrong: bool) -> None:
    skips = [100 + 80 * i for i in range(count)]
    assert bool(judge_scale([(1, 65536.0)], skips, 3000)) is wrong


def _log(path: Path, *records: dict[str, object]) -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in records))
    return path


def test_findings_of_a_log_are_audited(tmp_path: Path) -> None:
    log = _log(
        tmp_path / "m.jsonl",
        {"type": "start", "rank": None},
        {
            "type": "finding",
            "rule": "R01",
            "severity": "error",
            "where": "loss",
            "message": "the loss is float16",
            "step": 1,
        },
        {"type": "history", "first_step": 1, "last_step": 30, "scale": [[1, 8.0], [20, 0.25]], "non_finite_losses": []},
        {"type": "skip", "step": 20},
    )
    report = audit_log(log)
    assert [(f.rule, f.line) for f in report.findings] == [("R01", 2), ("R05", 4)]


def test_a_cut_last_line_is_dropped_and_a_cut_middle_line_is_an_error(tmp_path: Path) -> None:
    log = _log(tmp_path / "m.jsonl", {"type": "start", "rank": 0})
    log.write_text(log.read_text() + '{"type": "hist')
    assert len(read_log(log)) == 1
    log.write_text('{"type": "start"}\n{"type"\n{"type": "end"}\n')
    with pytest.raises(ArtifactError, match="not JSON"):
        read_log(log)
    log.write_text("{}\n")
    with pytest.raises(ArtifactError, match="no record"):
        read_log(log)
    assert audit_log(log).problems


def test_the_rank_that_saw_it_first_before_the_average_is_guilty(tmp_path: Path) -> None:
    quiet = {"type": "history", "first_step": 1, "last_step": 9, "scale": [], "non_finite_losses": []}
    a = _log(tmp_path / "a", {"type": "start", "rank": 0}, quiet, {"type": "skip", "step": 5, "rank": 0})
    tensor = {"name": "fc.weight", "kind": "gradient", "finite": False}
    b = _log(tmp_path / "b", {"type": "start", "rank": 1}, quiet, {"type": "sample", "step": 5, "tensors": [tensor]})
    assert guilty_rank([a]) is None
    assert guilty_rank([a, b]) == {"rank": 1, "step": 5, "kind": "gradient", "where": "fc.weight"}


def test_plot_is_well_formed_and_marks_the_skips() -> None:
    records = [
        {"type": "history", "first_step": 1, "last_step": 100, "scale": [[1, 65536.0], [30, 32768.0]]},
        {"type": "skip", "step": 30},
    ]
    root = ElementTree.fromstring(plot_svg(records))
    assert root.find("{http://www.w3.org/2000/svg}title").text == "Loss scale over 100 steps, 1 skipped"  # type: ignore[union-attr]
    assert plot_svg([]) == ""


def test_printed_logs_are_searched(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(
        "epoch 1\nUserWarning: In CUDA autocast, but the target dtype is not supported. Disabling autocast.\n"
        "loss 0.3\nFailed to convert the model to the target version 17 using the ONNX C API.\n"
    )
    assert [(f.rule, f.line) for f in audit_log(log).findings] == [("R27", 2), ("R19", 4)]
    assert audit_log(tmp_path / "none.log").problems[0].text.startswith("cannot be read")


@pytest.mark.parametrize(
    "record",
    [
        {"type": "finding"},
        {"type": "finding", "rule": "R99", "severity": "error", "where": "a", "message": "b"},
        {"type": "finding", "rule": "R01", "severity": "fatal", "where": "a", "message": "b"},
        {"type": "history", "scale": [["x", 1]], "last_step": 3},
        {"type": "skip"},
    ],
)
def test_a_damaged_record_is_a_problem(tmp_path: Path, record: dict[str, object]) -> None:
    log = tmp_path / "m.jsonl"
    log.write_text(json.dumps({"type": "start"}) + "\n" + json.dumps(record) + "\n", encoding="utf-8")
    report = audit_log(log)
    assert report.findings == ()
    assert report.problems[0].text.startswith("not a record that the monitor writes")


def test_the_older_form_of_the_warning_is_found(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("UserWarning: User provided device_type of 'cuda', but CUDA is not available. Disabling\n")
    assert [f.rule for f in audit_log(log).findings] == ["R27"]
