"""What builds and runs engines here, which one is taken, and what the user may choose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, Protocol

from deploychain.device.command import Wish
from deploychain.device.measured import Arrays, Built, Measured, OnProgress, Shapes
from deploychain.device.trtexec import Trtexec
from deploychain.device.versions import Features, Version
from deploychain.errors import CapabilityError, ConfigError
from deploychain.machine import Machine
from deploychain.precision import Precision
from deploychain.records import EngineReport

BackendName = Literal["auto", "tensorrt", "trtexec", "tensorrt_rtx"]


class Backend(Protocol):
    """Something that builds and runs engines here."""

    name: str
    library: str
    version: Version
    features: Features
    target: str | None  # compute capability of an ahead-of-time build; None: the GPU that is here
    digits: str  # what limits the outputs' accuracy; empty: nothing

    def build(
        self,
        wish: Wish,
        model: Path,
        work: Path,
        engine: Path,
        profiles: Mapping[str, Shapes],
        *,
        timing_cache: Path | None,
        workspace_mib: int | None,
        timeout: float,
        on_progress: OnProgress,
    ) -> Built: ...

    def infer(
        self,
        engine: Path,
        inputs: Arrays,
        profiles: Mapping[str, Shapes],
        work: Path,
        *,
        timeout: float,
        on_progress: OnProgress,
    ) -> Arrays: ...

    def measure(
        self,
        engine: Path,
        shapes: Shapes,
        work: Path,
        *,
        stage: str,
        device: str,
        warm_up_ms: int,
        seconds: int,
        timeout: float,
        on_progress: OnProgress,
    ) -> Measured: ...

    def report(
        self, wish: Wish, asked: Precision, model: Path, work: Path, common: Mapping[str, Any]
    ) -> EngineReport: ...


@dataclass(frozen=True, slots=True)
class DeviceSettings:
    """What the user may choose on the device."""

    backend: BackendName = "auto"
    engines: tuple[str, ...] = ()  # empty: all of the bundle
    typing: Literal["auto", "strong", "weak"] = "auto"
    dla_core: int | None = None
    cache: Path | None = None
    on_mismatch: Literal["rebuild", "fail"] = "rebuild"
    force: bool = False
    workspace_mib: int | None = None
    timeout_minutes: float = 60.0
    warm_up_ms: int = 500
    seconds: int = 5  # of timing, per engine
    measure: bool = True  # golden data and latency


def read_settings(**given: Any) -> DeviceSettings:
    """Settings from the command line.

    Raises:
        ConfigError: a value is none of those allowed.
    """
    allowed = {
        "backend": ("auto", "tensorrt", "trtexec", "tensorrt_rtx"),
        "typing": ("auto", "strong", "weak"),
        "on_mismatch": ("rebuild", "fail"),
    }
    for name, values in allowed.items():
        if given[name] not in values:
            near = get_close_matches(given[name], values, n=1)
            raise ConfigError(
                f"{given[name]!r} is not allowed",
                where=f"--{name.replace('_', '-')}",
                remedy=f"use one of {', '.join(values)}" + (f"; did you mean {near[0]}?" if near else ""),
            )
    return DeviceSettings(**given)


def pick_backend(wanted: BackendName, machine: Machine) -> Backend:
    """The TensorRT Python bindings, else trtexec, else TensorRT for RTX.

    Raises:
        CapabilityError: what was asked for, or for ``auto`` everything, is missing; why stands in the message.
    """
    from deploychain.device.bindings import Bindings

    makers: dict[str, Callable[[], Backend]] = {
        "tensorrt": lambda: Bindings.find("tensorrt", machine),
        "trtexec": lambda: Trtexec.find(machine),
        "tensorrt_rtx": lambda: Bindings.find("tensorrt_rtx", machine),
    }
    if wanted != "auto":
        return makers[wanted]()
    refusals = []
    for name, make in makers.items():
        try:
            return make()
        except CapabilityError as error:
            refusals.append(f"{name}: {error.message}")
    raise CapabilityError(
        f"nothing here builds engines ({'; '.join(refusals)})", remedy="`deploychain doctor` shows what to install"
    )
