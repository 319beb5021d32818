"""What each release of TensorRT takes: versions, features, and the version that an engine file carries."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from functools import total_ordering
from pathlib import Path
from typing import Literal

from deploychain.errors import ArtifactError, CapabilityError

Typing = Literal["strong", "weak"]
OLDEST = "8.6"


@total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """Major, minor, patch and build. Engines load where all four are equal; parts that are not known are -1."""

    major: int
    minor: int
    patch: int = -1
    build: int = -1

    @classmethod
    def parse(cls, text: str) -> Version:
        """Read ``10.3.0.26``, ``8.6.1`` or ``10.16``.

        Raises:
            CapabilityError: the text holds no version.
        """
        parts = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?(?:\.(\d+))?", text.strip())
        if parts is None:
            raise CapabilityError(f"{text!r} is no TensorRT version")
        return cls(*(int(p) if p is not None else -1 for p in parts.groups()))

    def __str__(self) -> str:
        return ".".join(str(p) for p in (self.major, self.minor, self.patch, self.build) if p >= 0)

    def __lt__(self, other: Version) -> bool:
        return (self.major, self.minor, self.patch, self.build) < (other.major, other.minor, other.patch, other.build)

    def same_engine(self, other: Version) -> bool:
        """Whether an engine of one loads in the other, as far as both are known: no part may differ."""
        pairs = zip(
            (self.major, self.minor, self.patch, self.build),
            (other.major, other.minor, other.patch, other.build),
            strict=True,
        )
        return all(a == b or a < 0 or b < 0 for a, b in pairs)


@dataclass(frozen=True, slots=True)
class Features:
    """What trtexec and the builder of one release understand. An option that a release lacks is never sent to it."""

    version: Version
    weak_typing: bool  # --fp16, --int8, --layerPrecisions: gone in 11.0
    strong_typing: bool  # 9.0 to 10.x need --stronglyTyped; from 11.0 every network is
    strong_flag: bool
    skip_inference: bool  # 8.6; --buildOnly before
    separate_profile: bool  # from 11.0 always done
    dla: bool
    timing_defaults: Literal["host", "device"]  # 11.0 leaves transfers out, spins and uses CUDA graphs by default
    library: str = "TensorRT"

    @classmethod
    def of(cls, version: Version) -> Features:
        """The features of a release.

        Raises:
            CapabilityError: the release is older than 8.6.
        """
        key = (version.major, version.minor)
        if key < (8, 6):
            raise CapabilityError(
                f"TensorRT {version} is older than {OLDEST}, the oldest that is supported",
                remedy="update JetPack or TensorRT",
            )
        # 10.7 is the last 10.x release with DLA; 11.4.1 brings it back, for AGX Orin on JetPack 7.2.2 and later.
        dla = key <= (10, 7) or (key, version.patch) >= ((11, 4), 1)
        modern = version.major >= 11
        return cls(
            version=version,
            weak_typing=not modern,
            strong_typing=version.major >= 9,
            strong_flag=9 <= version.major < 11,
            skip_inference=True,
            separate_profile=not modern,
            dla=dla,
            timing_defaults="device" if modern else "host",
        )

    @classmethod
    def of_rtx(cls, version: Version) -> Features:
        """TensorRT for RTX: strongly typed networks only, no DLA."""
        return cls(version, False, True, False, True, False, False, "device", "TensorRT for RTX")

    def typing(self, wanted: Literal["auto", "strong", "weak"]) -> Typing:
        """How the network is typed: weakly where the release can, unless asked otherwise.

        Raises:
            CapabilityError: this release cannot do what was asked.
        """
        if wanted == "strong" and not self.strong_typing:
            raise CapabilityError(
                f"TensorRT {self.version} has no strongly typed networks (9.0 and later have)",
                where="--typing",
                remedy="use --typing weak",
            )
        if wanted == "weak" and not self.weak_typing:
            raise CapabilityError(
                f"{self.library} {self.version} has only strongly typed networks, and no precision flags",
                where="--typing",
                remedy="leave --typing out",
            )
        if wanted == "auto":
            return "weak" if self.weak_typing else "strong"
        return wanted

    def check_dla(self, typing: Typing) -> None:
        """
        Raises:
            CapabilityError: this release cannot build for the DLA with this typing.
        """
        if not self.dla:
            raise CapabilityError(
                f"{self.library} {self.version} does not build for the DLA (10.7 and older do, and 11.4.1 on AGX Orin)",
                where="--dla",
                remedy="leave --dla out: the engine runs on the GPU",
            )
        if self.version < Version(11, 0) and typing == "strong":
            raise CapabilityError(
                "the DLA takes only weakly typed networks before TensorRT 11", where="--dla", remedy="use --typing weak"
            )


_TAGS = {b"ftrt": "TensorRT", b"vtrt": "TensorRT for RTX"}


def engine_file_version(path: Path) -> tuple[str, Version]:
    """The library and version that wrote an engine file, from its header, without loading it.

    The header is a four-letter tag, the serialization version (0), and at byte 24 one byte each for major, minor,
    patch and build: as `trtexec --getPlanVersionOnly` reads it (8.6 and later), and as measured on TensorRT for RTX.

    Raises:
        ArtifactError: this is no engine of TensorRT 8.6 or later.
    """
    try:
        with path.open("rb") as stream:
            head = stream.read(28)
    except OSError as error:
        raise ArtifactError(f"cannot read the engine: {error.strerror}", where=str(path)) from None
    library = _TAGS.get(head[:4])
    if library is None or len(head) < 28 or struct.unpack("<I", head[4:8])[0] != 0:
        raise ArtifactError(
            "this is no TensorRT engine of release 8.6 or later",
            where=str(path),
            remedy="build it again on this device",
        )
    return library, Version(*head[24:28])


def refuse_foreign_engine(path: Path, version: Version, library: str = "TensorRT") -> None:
    """Say what is wrong with an engine before the library crashes on it.

    Raises:
        ArtifactError: the file is no engine, or of another library or version.
    """
    made_by, made = engine_file_version(path)
    if made_by != library:
        raise ArtifactError(
            f"the engine was built by {made_by} {made}; this is {library} {version}",
            where=str(path),
            remedy="build it again with `deploychain device build`",
        )
    if not made.same_engine(version):
        raise ArtifactError(
            f"the engine was built by TensorRT {made}; this device has {version}, and engines load only in the very "
            "version that built them",
            where=str(path),
            remedy="build it again with `deploychain device build`",
        )
