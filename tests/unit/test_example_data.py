"""The committed subset of Fashion-MNIST: balanced, the first images of each class, reproducible byte for byte."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
NPZ = ROOT / "pipelines" / "data" / "fashion-mnist.npz"
ORIGINAL = Path("/usr/share/datasets/fashion-mnist")


def test_the_subset_is_balanced_and_small() -> None:
    with np.load(NPZ) as data:
        assert data["train_images"].shape == (6000, 28, 28)
        assert data["test_images"].shape == (1000, 28, 28)
        assert np.bincount(data["train_labels"]).tolist() == [600] * 10
        assert np.bincount(data["test_labels"]).tolist() == [100] * 10
        assert all(data[name].dtype == np.uint8 for name in data.files)
    assert NPZ.stat().st_size < 3.5e6


def test_the_licence_notice_lies_beside_it() -> None:
    text = NPZ.with_suffix(".LICENSE").read_text()
    assert "Zalando SE" in text
    assert "permission notice shall be included" in " ".join(text.split())


@pytest.mark.skipif(not ORIGINAL.is_dir(), reason="the Debian package dataset-fashion-mnist is not installed")
def test_the_script_makes_the_committed_bytes_again(tmp_path: Path) -> None:
    target = tmp_path / "again.npz"
    script = ROOT / "scripts" / "make_fashion_mnist.py"
    subprocess.run([sys.executable, str(script), "--target", str(target)], check=True, capture_output=True)
    with np.load(NPZ) as committed, np.load(target) as again:
        for name in committed.files:
            np.testing.assert_array_equal(committed[name], again[name])
    first = hashlib.sha256(target.read_bytes()).hexdigest()
    subprocess.run([sys.executable, str(script), "--target", str(target)], check=True, capture_output=True)
    assert hashlib.sha256(target.read_bytes()).hexdigest() == first


def test_a_missing_source_is_one_line(tmp_path: Path) -> None:
    script = ROOT / "scripts" / "make_fashion_mnist.py"
    done = subprocess.run(
        [sys.executable, str(script), "--source", str(tmp_path), "--target", str(tmp_path / "x.npz")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "train-images-idx3-ubyte.gz" in done.stderr and "apt-get install" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())
