"""A manifest from elsewhere becomes commands and file names: what it may say is bounded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_bundle

from deploychain.device.bundle import TensorFile, load_arrays, open_bundle, read_manifest
from deploychain.errors import ArtifactError


@pytest.fixture
def manifest(tmp_path: Path) -> dict[str, Any]:
    _, _, reader = open_bundle(tiny_bundle.write_bundle(tmp_path))
    return reader.manifest


def test_the_plain_one_is_read(manifest: dict[str, Any]) -> None:
    bundle = read_manifest(manifest, "x")
    assert [w.name for w in bundle.engines] == ["fp32", "fp16", "int8"]
    assert bundle.engine("int8").weak.flags == ("fp16", "int8")
    with pytest.raises(ArtifactError, match="no bf16 engine"):
        bundle.engine("bf16")


def flag(m: dict[str, Any]) -> None:
    m["engines"][1]["weak"]["flags"] = ["saveEngine=/etc/passwd"]


def held(m: dict[str, Any]) -> None:
    m["engines"][1]["weak"]["layer_precisions"] = {"/c1/Conv": "fp32 --saveEngine=/etc/passwd"}


def engine(m: dict[str, Any]) -> None:
    m["engines"][0]["name"] = "../../x"


def model(m: dict[str, Any]) -> None:
    m["engines"][0]["model"] = "/etc/passwd"


def golden(m: dict[str, Any]) -> None:
    m["golden"]["inputs"][0]["file"] = "../input.npy"


def profile_keys(m: dict[str, Any]) -> None:
    m["profiles"]["x"] = {"min": [1, 4]}


def profile_order(m: dict[str, Any]) -> None:
    m["profiles"]["x"]["max"] = [1, 4]


def profile_rank(m: dict[str, Any]) -> None:
    m["profiles"]["x"]["opt"] = [8, 4, 4]


def schema(m: dict[str, Any]) -> None:
    m["schema"] = "deploychain.bundle/9"


def missing(m: dict[str, Any]) -> None:
    del m["golden"]


@pytest.mark.parametrize(
    "change", [flag, held, engine, model, golden, profile_keys, profile_order, profile_rank, schema, missing]
)
def test_what_it_may_not_say(manifest: dict[str, Any], change: Callable[[dict[str, Any]], None]) -> None:
    change(manifest)
    with pytest.raises(ArtifactError):
        read_manifest(manifest, "x")


def test_arrays_are_never_pickles(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{"x": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(ArtifactError, match="not a readable array"):
        load_arrays(tmp_path, (TensorFile("a", "a.npy", "|O", (1,)),))
    np.save(tmp_path / "a.npy", np.zeros(3, np.float32))
    with pytest.raises(ArtifactError, match="the manifest says"):
        load_arrays(tmp_path, (TensorFile("a", "a.npy", "<f4", (4,)),))
