"""``device-result.json``: what a device built, how it computes, how fast, and where that was."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from deploychain.device.archive import SURROGATE
from deploychain.device.fingerprint import Fingerprint
from deploychain.device.output import check_output
from deploychain.errors import ArtifactError, CapabilityError, StageError
from deploychain.records import EngineReport, EvalReport, Latency, to_json

RESULT_SCHEMA = "deploychain.device-result/1"
MAX_RESULT = 256 << 20


@dataclass(frozen=True, slots=True)
class EngineResult:
    """One engine on the device."""

    name: str
    status: Literal["built", "cached", "failed"]
    report: EngineReport
    why: str = ""  # why it was built: first build, or what changed since the cached one
    typing: str = ""
    flags: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    sha256: str | None = None
    seconds: float | None = None  # of the build
    peak_mib: int | None = None
    remedy: str = ""
    evaluation: EvalReport | None = None
    latency: Latency | None = None
    outputs: str | None = None  # file beside the result, with the raw outputs (npz)
    outputs_sha256: str | None = None
    notes: tuple[str, ...] = ()
    # Measuring was asked for and is not complete: it failed, or this machine is unable to run the engine.
    unmeasured: Literal["", "failed", "unable"] = ""


@dataclass(frozen=True, slots=True)
class DeviceResult:
    schema: Literal["deploychain.device-result/1"]
    bundle: str
    bundle_sha256: str
    created: str  # ISO 8601, UTC
    fingerprint: Fingerprint
    backend: str  # "trtexec 10.3.0.26", "tensorrt 10.16.2.10"
    jetpack: str | None
    power_mode: str | None
    clocks: str
    engines: tuple[EngineResult, ...]
    versions: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    models: Mapping[str, str] = field(default_factory=dict)  # file in the bundle -> sha256
    # From the bundle: what the ONNX models answer on the same samples.
    evals: tuple[EvalReport, ...] = ()
    directions: Mapping[str, Literal["higher", "lower"]] = field(default_factory=dict)
    data_sha256: str | None = None
    samples: int | None = None

    @property
    def exit_code(self) -> int:
        """0 where all that was asked for was done; else that of the error: an engine that was built is no proof."""
        if not self.engines or any(e.status == "failed" or e.unmeasured == "failed" for e in self.engines):
            return StageError.exit_code
        return CapabilityError.exit_code if any(e.unmeasured for e in self.engines) else 0

    @property
    def ok(self) -> bool:
        return self.exit_code == 0


def write_result(result: DeviceResult, path: Path) -> None:
    """Write the result; whole or not at all."""
    check_output(path)
    temporary = path.with_name(f".{path.name}.part")
    text = json.dumps(to_json(result), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    with temporary.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)


def read_result(path: Path) -> DeviceResult:
    """Read and validate a result.

    Raises:
        ArtifactError: it is missing, no JSON, too large, of another schema, or a key is wrong (it is named).
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        if path.stat().st_size > MAX_RESULT:
            raise ArtifactError("the file is too large for a device result", where=str(path))
        content = path.read_bytes()
        if SURROGATE.search(content):
            raise ValueError("it holds half a character")
        raw: Any = json.loads(content.decode("utf-8"))
    except OSError as error:
        raise ArtifactError(f"cannot read the device result: {error.strerror}", where=str(path)) from None
    except (ValueError, RecursionError) as error:
        raise ArtifactError(
            f"not valid JSON: {error}", where=str(path), remedy="copy it from the device again"
        ) from None
    schema = raw.get("schema") if isinstance(raw, dict) else None
    if schema != RESULT_SCHEMA:
        raise ArtifactError(
            f"schema is {schema!r}, this version reads {RESULT_SCHEMA!r}",
            where=str(path),
            remedy="use the same version of deploychain on the device and here",
        )
    try:
        return TypeAdapter(DeviceResult).validate_python(raw)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ArtifactError(f"{key}: {first['msg']}", where=str(path)) from None
