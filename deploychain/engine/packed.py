"""Files as they are kept: plain, or packed by gzip. What a packed file holds is bounded before it is read.

A gzip file of one megabyte can unpack to a gigabyte, so its size is measured first, in pieces and on no disk.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import IO, cast

from deploychain.errors import ArtifactError

# A verbose log packs to a twentieth: a log of a gigabyte is a file of fifty megabytes.
MAX_UNPACKED = 1 << 30
# What must be read whole (JSON) costs a multiple of its size in memory; 50,000 layers are 51 MB.
MAX_UNPACKED_WHOLE = 128 << 20
_MAGIC = b"\x1f\x8b"
_PIECE = 1 << 20


def is_packed(path: Path) -> bool:
    """Whether the file is a gzip archive, by its content.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        return file.read(2) == _MAGIC


def open_bytes(path: Path) -> IO[bytes]:
    """The bytes of a file, unpacked where it is packed.

    Raises:
        OSError: the file cannot be opened.
    """
    return cast("IO[bytes]", gzip.open(path, "rb")) if is_packed(path) else path.open("rb")


def text_size(path: Path) -> int:
    """Bytes of the text in a file; that of a packed one is found by unpacking it, to its checksum.

    Raises:
        ArtifactError: a packed file is cut or damaged, or holds more than `MAX_UNPACKED`.
        OSError: the file cannot be read.
    """
    if not is_packed(path):
        return path.stat().st_size
    size = 0
    try:
        with open_bytes(path) as file:
            while piece := file.read(_PIECE):
                size += len(piece)
                if size > MAX_UNPACKED:
                    raise ArtifactError(
                        f"a gzip archive of more than {MAX_UNPACKED >> 20} MiB: unpack it, if it is what you expect",
                        where=str(path),
                    )
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise ArtifactError(
            "a gzip archive that is cut or damaged: unpack what is left of it (zcat) and read that", where=str(path)
        ) from None
    return size
