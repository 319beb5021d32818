"""The user's npz file: read whole, without pickles, or refused with one sentence."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from deploychain.errors import ArtifactError
from deploychain.numerics.npz import check_types, read_npz


class Bomb:
    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.file,)


def test_arrays_by_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", image=np.arange(6.0).reshape(2, 3), targets=np.array([1, 0]))
    found = read_npz(tmp_path / "d.npz")
    assert found["image"].tolist() == [[0, 1, 2], [3, 4, 5]] and found["targets"].tolist() == [1, 0]


def write(kind: str, path: Path, flag: Path) -> None:
    good = path.with_suffix(".good.npz")
    np.savez(good, image=np.arange(4000.0))
    data = good.read_bytes()
    if kind == "objects":
        np.savez(path, image=np.array([Bomb(flag)], dtype=object))
    elif kind == "pickle":
        path.write_bytes(pickle.dumps(Bomb(flag)))
    elif kind == "npy":
        with path.open("wb") as stream:
            np.save(stream, np.zeros(3))
    elif kind == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif kind == "flipped":
        path.write_bytes(data[:900] + bytes([data[900] ^ 1]) + data[901:])
    elif kind == "no samples":
        np.savez(path, image=np.zeros((0, 3)))
    elif kind == "scalar":
        np.savez(path, image=np.float32(3))


@pytest.mark.parametrize("kind", ["objects", "pickle", "npy", "cut", "flipped", "no samples", "scalar", "missing"])
def test_anything_else_is_refused_and_nothing_is_executed(kind: str, tmp_path: Path) -> None:
    path, flag = tmp_path / "d.npz", tmp_path / "executed"
    write(kind, path, flag)
    with pytest.raises(ArtifactError) as caught:
        read_npz(path)
    assert caught.value.where == str(path) and "numpy.savez" in caught.value.remedy
    assert not flag.exists()


F32, F16, I64, I32, U8, BOOL = map(np.dtype, ("float32", "float16", "int64", "int32", "uint8", "bool"))


@pytest.mark.parametrize(
    ("have", "wanted", "remedy"),
    [
        ("float64", F32, None),
        ("float16", F32, None),
        ("float32", F16, None),
        ("int32", I64, None),  # no value can be lost
        ("bool", I64, None),
        ("uint8", F32, "x.astype(numpy.float32)"),  # each value is exact in FP32, and means something else
        ("int64", F32, "preprocess it as in training"),
        ("bool", F32, "x.astype(numpy.float32)"),
        ("int64", F16, "x.astype(numpy.float16)"),
        ("int64", I32, "x.astype(numpy.int32), if no value is lost"),
        ("float32", I64, "x.astype(numpy.int64), if no value is lost"),
        ("uint8", BOOL, "x.astype(numpy.bool"),
        ("<U3", F32, "x.astype(numpy.float32)"),
    ],
)
def test_an_array_whose_values_would_change_their_meaning_is_refused(have: str, wanted: object, remedy: str) -> None:
    arrays = {"x": np.zeros((2, 3), have), "more": np.zeros(2)}
    if remedy is None:
        check_types(arrays, {"x": wanted}, "d.npz")
        return
    with pytest.raises(ArtifactError) as caught:
        check_types(arrays, {"x": wanted}, "d.npz")
    error = caught.value
    assert error.where == "d.npz" and remedy in error.remedy
    assert error.message == f"array 'x' holds {np.dtype(have).name}, the model's input 'x' takes {wanted.name}"


def test_arrays_that_are_matched_by_order_are_checked_as_well() -> None:
    with pytest.raises(ArtifactError, match="array 'b' holds int64, the model's input 'y' takes float32"):
        check_types({"a": np.zeros(2, np.float32), "b": np.zeros(2, np.int64)}, {"x": F32, "y": F32}, "d.npz")
    check_types({"a": np.zeros(2, np.int64)}, {"x": F32, "y": F32}, "d.npz")  # others say what is missing
