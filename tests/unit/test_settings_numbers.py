"""Numbers of the settings: `yes` is no number, and the limits stand in the JSON Schema that editors read."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from deploychain.config import load_pipeline
from deploychain.errors import ConfigError
from deploychain.gate.limits import GateLimits, load_limits
from deploychain.settings import PipelineSettings


def numbers(model: type[BaseModel]) -> Iterator[tuple[str, Any]]:
    """(name, annotation) of every number in a tree of settings, also of those inside tuples and dicts."""
    for name, field in model.model_fields.items():
        # Metadata of an Annotated field lies beside its annotation.
        whole = typing.Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
        for found in _numbers(whole):
            yield (f"{model.__name__}.{name}", found) if isinstance(found, _Leaf) else found


class _Leaf:
    def __init__(self, annotation: Any) -> None:
        self.adapter: TypeAdapter[Any] = TypeAdapter(annotation)


def _numbers(annotation: Any) -> Iterator[Any]:
    bare = typing.get_args(annotation)[0] if typing.get_origin(annotation) is typing.Annotated else annotation
    if bare in (int, float):
        yield _Leaf(annotation)
    elif isinstance(bare, type) and issubclass(bare, BaseModel):
        yield from numbers(bare)
    elif typing.get_origin(bare) in (typing.Union, types.UnionType, tuple, dict):
        for argument in typing.get_args(bare):
            yield from _numbers(argument)


@pytest.mark.parametrize("model", [PipelineSettings, GateLimits])
def test_no_number_of_the_settings_takes_true_for_one(model: type[BaseModel]) -> None:
    found = list(numbers(model))
    names = {name for name, _ in found}
    assert {
        "TrainSettings.epochs",
        "ShapeRange.min",
        "ExportSettings.dynamic_axes",
    } <= names or "LayerRule.max_lost" in names
    assert len(found) > 20
    for name, leaf in found:
        for value in (True, False):
            with pytest.raises(ValidationError) as caught:
                leaf.adapter.validate_python(value)
            assert "expected a number" in str(caught.value), name


@pytest.mark.parametrize(
    ("stages", "key"),
    [
        ("train: {epochs: true}", "stages.train.epochs"),
        ("train: {lr: yes}", "stages.train.lr"),
        ("train: {clip_norm: on}", "stages.train.clip_norm"),
        ("train: {threads: true}", "stages.train.threads"),
        ("build: {shapes: {x: {min: [yes, 1], opt: [1, 1], max: [1, 1]}}}", "stages.build.shapes.x.min.0"),
    ],
)
def test_true_is_told_with_its_line_and_key(tmp_path: Path, stages: str, key: str) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text(f"start: {{onnx: m.onnx}}\nstages:\n  {stages}\n")
    with pytest.raises(ConfigError) as caught:
        load_pipeline(file)
    assert caught.value.where == f"{file}:3"
    assert caught.value.message == f"{key}: expected a number, found True"


def test_true_is_refused_from_the_command_line_and_in_limits(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text("start: {onnx: m.onnx}\nseed: 3\n")
    with pytest.raises(ConfigError, match="seed: expected a number, found True"):
        load_pipeline(file, ["seed=true"])
    assert load_pipeline(file, ["seed=1"]).settings.seed == 1
    limits = tmp_path / "gate.yaml"
    limits.write_text("seed: yes\n")
    with pytest.raises(ConfigError, match=r"gate\.seed: expected a number"):
        load_limits(limits)


def test_switches_stay_switches(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text("start: {onnx: m.onnx}\nstages:\n  plan: {ptq: yes, max_drop: 1}\n")
    plan = load_pipeline(file).settings.stages.plan
    assert plan is not None
    assert plan.ptq is True
    assert plan.max_drop == 1.0


@pytest.mark.parametrize("model", [PipelineSettings, GateLimits])
def test_limits_are_json_schema_keywords(model: type[BaseModel]) -> None:
    """An editor ignores what is no keyword: `ge` limits nothing, `minimum` does."""
    text = json.dumps(model.model_json_schema())
    assert '"minimum"' in text
    for stray in ('"ge":', '"gt":', '"le":', '"lt":'):
        assert stray not in text
