#!/usr/bin/env python3
"""Make pipelines/data/textures.npz: three photographed textures, the backgrounds of the detector example.

    pip install scikit-image==0.25.2
    python scripts/make_textures.py

Takes the upper half (256 x 512, grey, uint8) of scikit-image's `brick`, `grass` and `gravel`. The same input gives
the same bytes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from make_fashion_mnist import write_npz

TARGET = Path(__file__).resolve().parent.parent / "pipelines" / "data" / "textures.npz"
NAMES = ("brick", "grass", "gravel")
ROWS = 256


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", type=Path, default=TARGET)
    args = parser.parse_args()
    try:
        from skimage import data
    except ImportError as error:
        raise SystemExit(f"{error} (pip install scikit-image==0.25.2)") from None
    arrays = {name: np.asarray(getattr(data, name)(), np.uint8)[:ROWS] for name in NAMES}
    write_npz(args.target, arrays)
    print(
        f"{args.target}: {', '.join(f'{k} {v.shape}' for k, v in arrays.items())}, {args.target.stat().st_size} bytes"
    )


if __name__ == "__main__":
    main()
