"""The user's npz file: read whole, without pickles, or refused with one sentence."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from deploychain.errors import ArtifactError
from deploychain.numerics.npz import read_npz


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
