"""Evidence: any number of files about one engine, read, joined and judged.

`read_evidence` is the public entry. It never raises for what a file holds: each file's problem stands in the result.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deploychain.engine.join import Joined
from deploychain.engine.model import FileReading, Listing, Profile, Run
from deploychain.engine.onnxfile import read_onnx
from deploychain.engine.sniff import read_file
from deploychain.errors import ConfigError
from deploychain.precision import Precision, parse_precision
from deploychain.records import LayerRecord, LayerSummary

PathLike = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that a reader must know before trusting the rest."""

    path: str
    text: str
    hides: bool = False  # a part of what was given could not be judged: --fail-on has no answer then


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the files say about one engine. Render it with `headline`, `to_json` or `to_dataframe`."""

    inputs: tuple[FileReading, ...]
    runs: tuple[Run, ...]
    layers: tuple[LayerRecord, ...]
    summary: LayerSummary | None  # None: no layer is listed, which is not the same as no fallback
    asked: Precision | None
    asked_from: str  # "given", an option of the build, or "assumed: the engine uses it"
    listing: Listing | None = None
    listing_path: str = ""
    profile: Profile | None = None
    profile_path: str = ""
    joined: Joined | None = None
    run: Run | None = None  # the run that the layers and the profile are taken from
    profiles: Mapping[int, int] = field(default_factory=dict)  # optimisation profile -> number of layers
    shown_profile: int = 0
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    asked_by_node: bool = False  # the strongly typed graph says what each node was asked

    @property
    def readable(self) -> bool:
        """Whether any file gave anything."""
        return any(_gave(reading) for reading in self.inputs)

    @property
    def passed(self) -> bool | None:
        """Whether every run passed; None without a run that says it. A cut or killed run is not a pass."""
        statuses = [run.status for run in self.runs if run.tool != "TREx metadata" and (run.command or run.tool)]
        statuses += [status for reading in self.inputs for status in reading.omitted]
        if not statuses:
            return None
        if all(status == "passed" for status in statuses):
            return True
        return None if all(status in ("passed", "unknown") for status in statuses) else False

    @property
    def complete(self) -> bool:
        """Whether the listing of layers is whole: a cut one is never taken for a smaller engine."""
        return self.listing is not None and self.listing.complete

    def headline(self) -> str:
        """The one line to read first."""
        from deploychain.engine.render import headline

        return headline(self)

    def to_json(self) -> dict[str, Any]:
        """The document that ``deploychain layers --json`` prints (schema ``deploychain.layers/1``)."""
        from deploychain.engine.render import to_json

        return to_json(self)

    def to_dataframe(self) -> Any:
        """One row per layer as a `pandas.DataFrame`.

        Raises:
            CapabilityError: pandas is not installed.
        """
        from deploychain.engine.render import to_dataframe

        return to_dataframe(self)


def _gave(reading: FileReading) -> bool:
    return bool(reading.runs or reading.profile or reading.times or reading.facts) or reading.listing is not None


def read_evidence(
    paths: PathLike | Iterable[PathLike],
    *,
    model: PathLike | None = None,
    asked: Precision | str | None = None,
    run: int | None = None,
    profile: int | None = None,
    requested: Mapping[str, Precision] | None = None,
) -> Evidence:
    """Read files about one engine: logs, layer JSON, profiles, times, in any order; kinds are found by content.

    Args:
        paths: one or more files.
        model: the ONNX file that the engine was built from; gives ONNX nodes, torch modules and, for a strongly typed
            network, what each node was asked to compute in.
        asked: the precision the engine was asked for, where the files do not say it.
        run: which run of the log to take layers and profile from, counted from 1; the last that has some by default.
        profile: optimisation profile to show; that of the layer profile, else 0.
        requested: ONNX node -> precision, instead of the model's own types.

    Raises:
        ConfigError: no path, or an unknown precision or run.
        ArtifactError: the model is missing or no ONNX file.
    """
    return _read(paths, model, asked, run, profile, requested)[0]


def read_engines(
    paths: PathLike | Iterable[PathLike],
    *,
    model: PathLike | None = None,
    asked: Precision | str | None = None,
    run: int | None = None,
    profile: int | None = None,
) -> tuple[Evidence, ...]:
    """What `read_evidence` gives, and after it everything else that lists layers and that it does not show: other runs
    of the files (without ``run``) and other optimisation profiles (without ``profile``).

    Raises:
        ConfigError, ArtifactError: as `read_evidence`.
    """
    return _read(paths, model, asked, run, profile, None, every=True)


def _read(
    paths: PathLike | Iterable[PathLike],
    model: PathLike | None,
    asked: Precision | str | None,
    run: int | None,
    profile: int | None,
    requested: Mapping[str, Precision] | None,
    every: bool = False,
) -> tuple[Evidence, ...]:
    names = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not names:
        raise ConfigError("no file was given", remedy="name at least one log, layer JSON or profile")
    from deploychain.engine.assemble import Assembler

    precision = _precision(asked)
    with _no_collector():
        graph = read_onnx(Path(model)) if model is not None else None
        readings = tuple(read_file(Path(name)) for name in names)

        def engine(run: int | None, profile: int | None) -> Evidence:
            return Assembler(readings, precision, run, profile).assemble(graph, requested)

        made = [(run, engine(run, profile))]
        if every and run is None:
            made += [(number, engine(number, profile)) for number in _other_runs(made[0][1])]
        if every and profile is None:
            made += [
                (number, engine(number, other))
                for number, evidence in tuple(made)
                for other in evidence.profiles
                if other != evidence.shown_profile
            ]
        return tuple(evidence for _, evidence in made)


def _other_runs(evidence: Evidence) -> list[int]:
    """The numbers of the runs whose layers are not those shown. A layer file beside the log stands for all of them."""
    if all(listing is not evidence.listing for run in evidence.runs for listing in run.listings):
        return []
    listed = ((number, run.listings) for number, run in enumerate(evidence.runs, 1) if run.listings)
    return [number for number, listings in listed if all(listing is not evidence.listing for listing in listings)]


@contextmanager
def _no_collector() -> Iterator[None]:
    """Reading makes hundreds of thousands of objects that all stay: the cyclic collector would only walk them again."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _precision(asked: Precision | str | None) -> Precision | None:
    if asked is None or isinstance(asked, Precision):
        return asked
    found = parse_precision(asked)
    if found is None or found.is_index:
        raise ConfigError(
            f"{asked!r} is no precision to compute in", where="--asked", remedy="use fp32, fp16, bf16, fp8 or int8"
        )
    return found
