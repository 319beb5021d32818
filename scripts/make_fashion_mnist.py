#!/usr/bin/env python3
"""Make pipelines/data/fashion-mnist.npz: a balanced subset of Fashion-MNIST.

    apt-get install dataset-fashion-mnist
    python scripts/make_fashion_mnist.py

Takes the first 600 images of each class from the training set and the first 100 of each class from the test set
(6,000 + 1,000 images of 28x28, uint8), in the order of the originals. The same input gives the same bytes: the zip
members carry a fixed date, and nothing is random.
"""

from __future__ import annotations

import argparse
import gzip
import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

SOURCE = Path("/usr/share/datasets/fashion-mnist")
TARGET = Path(__file__).resolve().parent.parent / "pipelines" / "data" / "fashion-mnist.npz"
CLASSES = 10
PER_CLASS = {"train": 600, "t10k": 100}

Bytes = npt.NDArray[np.uint8]


def read_idx(path: Path) -> Bytes:
    """Read a gzipped idx file of unsigned bytes: two zero bytes, type 0x08, rank, big-endian sizes, data."""
    with gzip.open(path) as stream:
        zeros, kind, rank = struct.unpack(">HBB", stream.read(4))
        if zeros != 0 or kind != 0x08:
            raise SystemExit(f"{path}: not an idx file of unsigned bytes")
        shape = struct.unpack(f">{rank}I", stream.read(4 * rank))
        return np.frombuffer(stream.read(), np.uint8).reshape(shape)


def first_of_each_class(labels: Bytes, count: int) -> npt.NDArray[np.int64]:
    """Indices of the first ``count`` samples of every class, in ascending order."""
    return np.sort(np.concatenate([np.flatnonzero(labels == c)[:count] for c in range(CLASSES)]))


def write_npz(path: Path, arrays: dict[str, Bytes]) -> None:
    """Like `numpy.savez_compressed`, with nothing of the clock in the file; replaced whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".npz.tmp")
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, member.getvalue(), compresslevel=9)
    temporary.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, default=SOURCE, help="folder of the four *-ubyte.gz files")
    parser.add_argument("--target", type=Path, default=TARGET)
    args = parser.parse_args()
    arrays: dict[str, Bytes] = {}
    for split, count in PER_CLASS.items():
        try:
            images = read_idx(args.source / f"{split}-images-idx3-ubyte.gz")
            labels = read_idx(args.source / f"{split}-labels-idx1-ubyte.gz")
        except OSError as error:
            raise SystemExit(f"{error.filename}: {error.strerror} (apt-get install dataset-fashion-mnist)") from None
        chosen = first_of_each_class(labels, count)
        prefix = "train" if split == "train" else "test"
        arrays[f"{prefix}_images"], arrays[f"{prefix}_labels"] = images[chosen], labels[chosen]
    write_npz(args.target, arrays)
    print(
        f"{args.target}: {', '.join(f'{k} {v.shape}' for k, v in arrays.items())}, {args.target.stat().st_size} bytes"
    )


if __name__ == "__main__":
    main()
