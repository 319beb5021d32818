"""The bundle file: an uncompressed POSIX tar with a manifest first, reproducible to write and safe to read.

Written with the standard library. Read by a strict reader of its own: `tarfile` follows headers of any length, links,
sparse files and extensions, and a bundle has none of them. Here a member is a regular file with a short relative
name, announced by the manifest with size and sha256, in the manifest's order; anything else is refused before a byte
is written. The last member is the manifest's own sha256 (for `sha256sum -c` too): what it says of plans and metrics is
guarded like the files. Nothing is read into memory but the manifest.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from deploychain.artifact import sha256_of
from deploychain.errors import ArtifactError, CapabilityError

MANIFEST, SEAL = "manifest.json", "manifest.sha256"
_BLOCK = 512
_PIECE = 1 << 20
_MAX_MANIFEST = 16 << 20
_MAX_FILES = 1000
_MAX_SIZE = 0o77777777777  # what a tar header of this form can say: 8 GiB
_MAX_END = 20 * _BLOCK  # the end mark fills a record of 20 blocks at most
_OCTAL = re.compile(rb"[0-7]{1,11}[ \0]+")
SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")  # half a character: no file or terminal takes it
# Short, plain, relative: letters, digits, and - _ . in at most four parts that do not begin with a dot.
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*){0,3}")
_REMEDY = "make the bundle again with `deploychain bundle`, or copy it again"


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a bundle."""

    path: str
    size: int
    sha256: str


def is_name(path: str) -> bool:
    """Whether a file in a bundle may have this path."""
    return bool(_NAME.fullmatch(path)) and len(path) <= 99 and path != MANIFEST


def write_archive(target: Path, manifest: Mapping[str, Any], files: Mapping[str, Path]) -> str:
    """Write a bundle; equal input gives equal bytes. The file gets its name when it is whole.

    Args:
        manifest: its key ``files`` is set here: path, size and sha256 of each file, sorted by path.
        files: path inside the bundle -> file.

    Returns:
        sha256 of the manifest: it identifies the content.

    Raises:
        ArtifactError: a path or a size that a reader would refuse, or a file that changed while it was packed.
        CapabilityError: the file cannot be written.
    """
    if len(files) > _MAX_FILES:
        raise ArtifactError(f"{len(files)} files are too many for a bundle, the most is {_MAX_FILES}")
    entries = []
    for name, path in sorted(files.items()):
        if not is_name(name):
            raise ArtifactError(f"{name!r} is no name for a file in a bundle", where=str(path))
        if path.stat().st_size > _MAX_SIZE:
            raise ArtifactError("the file is over 8 GiB, more than a bundle's format holds", where=str(path))
        entries.append(Entry(name, path.stat().st_size, sha256_of(path)))
    content = {**manifest, "files": [{"path": e.path, "size": e.size, "sha256": e.sha256} for e in entries]}
    text = (json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n").encode()
    if len(text) > _MAX_MANIFEST:
        raise ArtifactError(
            f"the manifest has {len(text)} bytes, the most is {_MAX_MANIFEST}", remedy="pack fewer samples (--samples)"
        )
    try:
        _write(target, text, entries, files)
    except OSError as error:
        raise CapabilityError(f"cannot write the bundle: {error.strerror}", where=str(target)) from None
    return hashlib.sha256(text).hexdigest()


def _write(target: Path, text: bytes, entries: Sequence[Entry], files: Mapping[str, Path]) -> None:
    handle, made = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    part = Path(made)
    seal = _seal(text)
    try:
        with os.fdopen(handle, "wb") as raw, tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            tar.addfile(_header(MANIFEST, len(text)), io.BytesIO(text))
            for entry in entries:
                with files[entry.path].open("rb") as stream:
                    checked = _Hashing(stream)
                    tar.addfile(_header(entry.path, entry.size), checked)
                if checked.digest.hexdigest() != entry.sha256:
                    raise ArtifactError("the file changed while it was packed", where=str(files[entry.path]))
            tar.addfile(_header(SEAL, len(seal)), io.BytesIO(seal))
        part.chmod(0o644)
        part.replace(target)
    except BaseException:
        part.unlink()
        raise


def _seal(manifest: bytes) -> bytes:
    return f"{hashlib.sha256(manifest).hexdigest()}  {MANIFEST}\n".encode()


def _header(name: str, size: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)  # mtime, uid and gid are 0, the owner's names empty
    info.size, info.mode = size, 0o644
    return info


class _Hashing(io.RawIOBase):
    """A file that hashes what is read from it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self.digest = stream, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        piece = self._stream.read(size)
        self.digest.update(piece)
        return piece


class ArchiveReader:
    """A bundle, read strictly from front to back."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest: dict[str, Any] = {}
        self.entries: tuple[Entry, ...] = ()
        self.content_sha256 = ""
        self._text = b""

    def read_manifest(self) -> dict[str, Any]:
        """Read and check the manifest alone.

        Raises:
            ArtifactError: this is no bundle, or its manifest breaks the rules.
        """
        with self._open() as stream:
            self._manifest(stream)
        return self.manifest

    def verify(self) -> None:
        """Read everything and compare sizes and sha256; writes nothing.

        Raises:
            ArtifactError: what is wrong, and with which file.
        """
        with self._open() as stream:
            self._manifest(stream)
            for entry in self.entries:
                self._member(stream, entry, None)
            self._end(stream)

    def unpack(self, target: Path) -> None:
        """Verify and write the files. ``target`` appears when all of them are right, or not at all.

        Raises:
            ArtifactError: what is wrong, and with which file; or ``target`` exists.
            CapabilityError: the disk has no room.
        """
        if target.exists():
            raise ArtifactError("the folder exists already", where=str(target), remedy="name another one")
        with self._open() as stream:
            self._manifest(stream)
            target.parent.mkdir(parents=True, exist_ok=True)
            self._room(target.parent)
            work = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
            try:
                for entry in self.entries:
                    place = work / entry.path
                    place.parent.mkdir(parents=True, exist_ok=True)
                    with place.open("xb") as out:
                        self._member(stream, entry, out)
                self._end(stream)
                (work / MANIFEST).write_bytes(self._text)
                work.chmod(0o755)
                work.rename(target)
            except OSError as error:
                raise CapabilityError(
                    f"cannot unpack the bundle: {error.strerror}", where=str(target.parent), remedy="free space there"
                ) from None
            finally:
                shutil.rmtree(work, ignore_errors=True)  # after the renaming there is none

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        try:
            stream = self.path.open("rb")
        except OSError as error:
            raise ArtifactError(f"cannot read the bundle: {error.strerror}", where=str(self.path)) from None
        with stream:
            yield stream

    def _room(self, folder: Path) -> None:
        needed = sum(e.size for e in self.entries)
        free = shutil.disk_usage(folder).free
        if free < needed + (16 << 20):
            raise CapabilityError(
                f"the bundle needs {needed / 1e6:.0f} MB and the disk has {free / 1e6:.0f} MB free",
                where=str(folder),
                remedy="free space, or choose another disk",
            )

    def _manifest(self, stream: IO[bytes]) -> None:
        name, size = self._header(stream)
        if name != MANIFEST or size > _MAX_MANIFEST:
            raise self._bad(f"its first file is {name!r} ({size} bytes), not a manifest")
        text = self._exactly(stream, size)
        self._padding(stream, size)
        try:
            if SURROGATE.search(text):
                raise ValueError("it holds half a character")
            manifest = json.loads(text.decode("utf-8"))
            files = [Entry(str(f["path"]), f["size"], str(f["sha256"])) for f in manifest["files"]]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise self._bad(f"its manifest is damaged ({type(error).__name__}: {error})") from None
        self._check(files)
        self.manifest, self.entries, self._text = manifest, tuple(files), text
        self.content_sha256 = hashlib.sha256(text).hexdigest()

    def _check(self, files: Sequence[Entry]) -> None:
        if len(files) > _MAX_FILES:
            raise self._bad(f"it claims {len(files)} files, the most is {_MAX_FILES}")
        for entry in files:
            if not is_name(entry.path):
                raise self._bad(f"the name {entry.path!r} is not allowed in a bundle")
            if type(entry.size) is not int or entry.size < 0 or not re.fullmatch(r"[0-9a-f]{64}", entry.sha256):
                raise self._bad(f"the manifest's entry of {entry.path} makes no sense")
        names = [MANIFEST, SEAL, *(e.path.lower() for e in files)]
        if len(set(names)) != len(names) or any(a.startswith(b + "/") for a in names for b in names):
            raise self._bad("two of its files have the same name")
        # Nothing is compressed, so what is inside cannot be larger than the file.
        if sum(e.size for e in files) > self.path.stat().st_size:
            raise self._bad("its manifest claims more bytes than the file has: it was cut, or made up")

    def _header(self, stream: IO[bytes]) -> tuple[str, int]:
        block = self._exactly(stream, _BLOCK)
        if block[257:263] != b"ustar\0":
            raise self._bad("it is not a bundle (no POSIX tar header where one must be)")
        if block[156:157] not in (b"0", b"\0"):
            raise self._bad("it holds something else than regular files")
        if block[345:500].strip(b"\0") or block[157:257].strip(b"\0"):
            raise self._bad("it holds a name or a link that bundles do not have")
        recorded, size = self._octal(block[148:156]), self._octal(block[124:136])
        try:
            name = block[:100].rstrip(b"\0").decode("ascii")
        except ValueError:
            raise self._bad("a header is damaged") from None
        if recorded != sum(block[:148]) + 8 * 0x20 + sum(block[156:]):
            raise self._bad("a header is damaged (checksum)")
        return name, size

    def _octal(self, field: bytes) -> int:
        # int() takes signs, underscores and prefixes: no tar has them, and a negative size would read everything.
        if not _OCTAL.fullmatch(field):
            raise self._bad("a header is damaged")
        return int(field.rstrip(b" \0"), 8)

    def _member(self, stream: IO[bytes], entry: Entry, out: IO[bytes] | None) -> None:
        name, size = self._header(stream)
        if (name, size) != (entry.path, entry.size):
            raise self._bad(
                f"{name!r} ({size} bytes) stands where the manifest says {entry.path!r} ({entry.size} bytes)"
            )
        digest, left = hashlib.sha256(), size
        while left:
            piece = stream.read(min(_PIECE, left))
            if not piece:
                raise self._bad(f"it ends inside {name}")
            digest.update(piece)
            if out is not None:
                out.write(piece)
            left -= len(piece)
        self._padding(stream, size)
        if digest.hexdigest() != entry.sha256:
            raise self._bad(f"{name} is not what the manifest says (sha256 {digest.hexdigest()[:12]})")

    def _padding(self, stream: IO[bytes], size: int) -> None:
        if self._exactly(stream, -size % _BLOCK).strip(b"\0"):
            raise self._bad("it holds bytes between its files")

    def _end(self, stream: IO[bytes]) -> None:
        seal = _seal(self._text)
        if self._header(stream) != (SEAL, len(seal)) or self._exactly(stream, len(seal)) != seal:
            raise self._bad("its manifest is not what was packed, or something follows that it does not announce")
        self._padding(stream, len(seal))
        end = stream.read(_MAX_END + 1)
        if len(end) > _MAX_END or end.strip(b"\0"):
            raise self._bad("it holds more than its manifest says")

    def _exactly(self, stream: IO[bytes], size: int) -> bytes:
        data = stream.read(size)
        if len(data) != size:
            raise self._bad("it ends too early")
        return data

    def _bad(self, what: str) -> ArtifactError:
        return ArtifactError(f"the bundle is not usable: {what}", where=str(self.path), remedy=_REMEDY)
