"""The baseline file: readable, diffable, verified, and changed by acceptance only."""

from __future__ import annotations

import dataclasses
import json
import math
from datetime import datetime, timezone
from pathlib import Path

import pytest
from gate_synthetic import fields, healthy, lose, provenance, same
from hypothesis import given, settings
from hypothesis import strategies as st

from deploychain.errors import ArtifactError, ConfigError
from deploychain.gate import accept
from deploychain.gate.baseline import BaselineError, dumps, encode_series, from_comparison, load
from deploychain.gate.facts import differences
from deploychain.records import Comparison, EvalReport


def made(tmp_path: Path, comparison: Comparison | None = None, reason: str = "first") -> Path:
    path = tmp_path / "baselines" / "gate-baseline.json"
    accept(comparison or healthy(), path, reason=reason, author="A. Uthor <a@example.org>")
    return path


def test_it_reads_back_what_was_measured(tmp_path: Path) -> None:
    baseline = load(made(tmp_path))
    assert baseline == from_comparison(healthy(), baseline.history)
    assert baseline.provenance.data_sha256 == "a" * 64
    assert baseline.provenance.tensorrt == "10.3.0.30"
    packed = baseline.stages["engine-int8"].per_sample["top1"]
    assert packed.values() == healthy().evals[-1].per_sample["top1"]
    assert baseline.engines["fp16"].layers[0].nodes == ("b1/conv1", "b1/conv1/relu")


def test_the_file_is_readable_and_diffable(tmp_path: Path) -> None:
    path = made(tmp_path)
    before = path.read_text().splitlines()
    assert json.loads("\n".join(before))["schema"] == "deploychain.baseline/2"
    # One metric of one stage changes: its record, its samples, its class, the provenance stay line by line comparable.
    accept(lose("engine-int8", 5)(healthy()), path, reason="second", author="B")
    after = path.read_text().splitlines()
    touched = [line for line in after if line not in before]
    assert len(touched) < 40
    assert max(map(len, (line for line in after if '"data"' not in line))) < 200


def test_an_acceptance_keeps_who_when_why_and_what(tmp_path: Path) -> None:
    path = made(tmp_path)
    when = datetime(2026, 5, 2, 12, 30, tzinfo=timezone.utc)
    _, entry = accept(lose("engine-int8", 5)(healthy()), path, reason=" smaller head ", author="B", now=when)
    history = load(path).history
    assert [e.reason for e in history] == ["first", "smaller head"]
    assert history[-1] == entry
    assert (entry.date, entry.author) == ("2026-05-02T12:30:00Z", "B")
    change = {c.name: (c.old, c.new) for c in entry.changes}
    assert change["engine-int8/top1"] == (0.97, 0.969)
    assert "engine-fp16/top1" not in change


@pytest.mark.parametrize(
    "damage",
    [
        lambda t: t.replace("0.97", "0.96", 1),
        lambda t: t.replace("first", "First"),
        lambda t: t.replace('"a@example.org', '"b@example.org').replace("Uthor", "Nother"),
        lambda t: t.replace("10.3.0.30", "10.3.0.31"),
        lambda t: t.replace('"digest": "sha256:', '"digest": "sha256:0'),
        lambda t: t.replace('"digest"', '"digest2"'),
        lambda t: t.replace('"schema": "deploychain.baseline/2"', '"schema": "deploychain.baseline/3"'),
        lambda t: "",
        lambda t: "[" * 100_000,
        lambda t: t[:-20],
        lambda t: '{"schema": "deploychain.baseline/2", "digest": NaN}',
    ],
)
def test_a_damaged_baseline_is_refused_for_reading_and_for_accepting(damage, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = made(tmp_path)
    text = damage(path.read_text())
    assert text != path.read_text()
    path.write_text(text)
    with pytest.raises(BaselineError):
        load(path)
    with pytest.raises(BaselineError):
        accept(healthy(), path, reason="over it", author="A")
    assert path.read_text() == text


def test_formatting_is_no_edit(tmp_path: Path) -> None:
    path = made(tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text()), indent=4))
    assert load(path).history[0].reason == "first"


@pytest.mark.parametrize(
    "change",
    [
        fields("engine-fp16", metrics={"top1": None}),
        fields("engine-fp16", non_finite=1),
        provenance(data_sha256=None),
        lambda c: dataclasses.replace(c, evals=tuple(dataclasses.replace(r, ran=False) for r in c.evals)),
    ],
)
def test_what_was_not_measured_cannot_be_accepted(change, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "b.json"
    with pytest.raises(ArtifactError):
        accept(change(healthy()), path, reason="because", author="A")
    assert not path.exists() and not list(tmp_path.iterdir())


def test_an_acceptance_needs_a_reason(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="reason"):
        accept(healthy(), tmp_path / "b.json", reason="  ", author="A")


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        (same, set()),
        (provenance(data_sha256="b" * 64), {"data"}),
        (provenance(data_sha256=None), {"data"}),
        (provenance(samples=7), {"samples"}),
        (provenance(device=""), {"device"}),
        (provenance(tensorrt=None), {"tensorrt"}),
        (provenance(flags={}), {"flags"}),
        (provenance(versions={}), set()),
        (lambda c: dataclasses.replace(c, directions={"top1": "lower"}), {"directions"}),
    ],
)
def test_what_makes_two_measurements_incomparable(change, facts: set[str]) -> None:  # type: ignore[no-untyped-def]
    assert set(differences(change(healthy()), from_comparison(healthy()))) == facts


def test_two_unknown_data_hashes_are_not_equal() -> None:
    unknown = provenance(data_sha256=None)(healthy())
    assert "data" in differences(unknown, from_comparison(unknown))


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=70))
def test_bits_survive_packing(values: list[float]) -> None:
    packed = encode_series(values)
    assert packed is not None and packed.encoding == "bits"
    assert packed.values() == tuple(values)
    assert packed.mean == pytest.approx(sum(values) / len(values), rel=1e-5)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=50))
@settings(max_examples=50)
def test_decimals_survive_to_four_digits(values: list[float]) -> None:
    packed = encode_series([*values, 0.5])
    assert packed is not None and packed.encoding == "decimals"
    unpacked = packed.values()
    assert unpacked is not None
    assert all(math.isclose(a, b, rel_tol=1e-3, abs_tol=1e-300) for a, b in zip(unpacked, [*values, 0.5], strict=True))


def test_a_series_with_a_gap_is_not_kept() -> None:
    assert encode_series([1.0, None]) is None
    assert encode_series([1.0, math.nan]) is None
    assert encode_series([]) is None


def test_a_long_series_of_numbers_keeps_its_mean_and_deviation() -> None:
    packed = encode_series([0.25, 0.75] * 20_000)
    assert packed is not None and packed.values() is None
    assert (packed.count, packed.mean) == (40_000, 0.5)
    assert packed.deviation == pytest.approx(0.25, rel=1e-3)


def test_the_text_is_stable() -> None:
    text = dumps(from_comparison(healthy()))
    assert text == dumps(from_comparison(healthy()))
    report = EvalReport("s", True, samples=1, metrics={"b": 1.0, "a": 2.0})
    one = dataclasses.replace(healthy(), evals=(report,))
    two = dataclasses.replace(healthy(), evals=(dataclasses.replace(report, metrics={"a": 2.0, "b": 1.0}),))
    assert dumps(from_comparison(one)) == dumps(from_comparison(two))
