"""What a file was read as: runs, profiles, layer listings, warnings. Frozen, kept as printed; None means not known."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from deploychain.precision import Precision
from deploychain.records import LayerRecord

Status = Literal["passed", "failed", "incomplete", "unknown"]
FileKind = Literal[
    "log",
    "graph",  # layer information as JSON
    "profile",
    "times",
    "trex-metadata",
    "engine-evidence",  # of this project's build stage
    "inspector-text",
    "builder-text",
    "polygraphy-inspect",
    "polygraphy-results",
    "polygraphy-accuracy",
    "polygraphy-debug",
    "outputs",
    "other",
]


@dataclass(frozen=True, slots=True)
class Stat:
    """One line of the performance summary, milliseconds. ``percentiles`` maps 99.0 to the 99th."""

    min: float | None = None
    max: float | None = None
    mean: float | None = None
    median: float | None = None
    percentiles: Mapping[float, float] = field(default_factory=dict)

    @property
    def p99(self) -> float | None:
        return self.percentiles.get(99.0)


@dataclass(frozen=True, slots=True)
class Profile:
    """Time per layer. Columns, not rows: half a million layers cost no more than their names.

    ``total_ms`` per row is over all iterations; ``mean_ms`` per inference; NaN where the file has no number.
    """

    names: tuple[str, ...]
    total_ms: array[float]
    mean_ms: array[float]
    iterations: int | None
    printed_total_ms: float | None = None  # the Total row of a table
    complete: bool = True
    skips_zero_rows: bool = False  # tables of 8.4 and later leave out layers without time
    has_median: bool = False
    layout: str = ""  # "name last", "name first", "json"

    @property
    def sum_ms(self) -> float:
        return sum(v for v in self.total_ms if v == v)

    @property
    def rows(self) -> int:
        return len(self.names)


@dataclass(frozen=True, slots=True)
class Listing:
    """The layers of one engine as one block of a file lists them."""

    layers: tuple[LayerRecord, ...]
    source: Literal["json", "inspector", "builder", "build list", "names", "polygraphy"]
    inputs: frozenset[str] = frozenset()
    outputs: frozenset[str] = frozenset()
    bindings: tuple[str, ...] = ()
    complete: bool = True
    verbosity: str = ""
    declared: int | None = None  # how many layers the text says there are

    @property
    def names_only(self) -> bool:
        return self.source == "names"

    @property
    def network_io(self) -> frozenset[str] | None:
        known = self.inputs | self.outputs | frozenset(self.bindings)
        return known or None


@dataclass(frozen=True, slots=True)
class Warned:
    """A message of the log that matters, with the layer or node that it names."""

    kind: str
    text: str
    layer: str | None = None
    level: str = ""
    count: int = 1
    meaning: str = ""
    serious: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """One trtexec (or sample) run in a log, or the part of one that a file holds."""

    path: str
    status: Status
    tool: str = ""
    tensorrt: str | None = None
    build: int | None = None
    command: str = ""
    options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    device: str | None = None
    compute_capability: str | None = None
    asked: Precision | None = None
    allowed: frozenset[Precision] = frozenset()
    asked_from: str = ""
    strongly_typed: bool = False
    pinned: Mapping[str, Precision] = field(default_factory=dict)
    throughput_qps: float | None = None
    latency: Stat | None = None
    gpu: Stat | None = None
    stats: Mapping[str, Stat] = field(default_factory=dict)  # every line of the summary, by its label
    walltime_s: float | None = None
    profile: Profile | None = None
    listings: tuple[Listing, ...] = ()
    warnings: tuple[Warned, ...] = ()
    dla_layers: tuple[str, ...] = ()
    gpu_layers: tuple[str, ...] = ()
    stderr_seen: bool = False
    summary_withheld: bool = False  # "The e2e network timing is not reported since it is inaccurate"
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)  # of other tools: what `debug precision` tried
    requested: Mapping[str, Precision] | None = None  # ONNX node -> precision, where the network is at hand
    quantised: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Times:
    """Query times of ``--exportTimes``: number of queries, keys of the version, and means in milliseconds."""

    queries: int
    keys: tuple[str, ...]
    gpu: Stat
    latency: Stat
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileReading:
    """Everything that one file gave, and what was wrong with it."""

    path: str
    kind: FileKind
    problem: str | None = None
    runs: tuple[Run, ...] = ()
    listing: Listing | None = None
    profile: Profile | None = None
    times: Times | None = None
    facts: Mapping[str, object] = field(default_factory=dict)  # what other tools' files say (Polygraphy results)
    notes: tuple[str, ...] = ()
    omitted: tuple[Status, ...] = ()  # how the runs ended that are counted and not kept
