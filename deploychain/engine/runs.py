"""One run of a log, put together line by line: banner, options, summary, profile, listings, warnings, verdict."""

from __future__ import annotations

import re
from dataclasses import replace

from deploychain.engine.blocks import BlockReader
from deploychain.engine.messages import recognise
from deploychain.engine.model import Profile, Run, Status, Warned
from deploychain.engine.options import (
    allowed_precisions,
    asked_by_flags,
    asked_of,
    decode_version,
    explain,
    layer_precisions,
    option,
    version_key,
)
from deploychain.engine.polygraphy import DebugPrecisionReader
from deploychain.engine.profiles import HEADER, TableReader
from deploychain.engine.summary import SummaryReader
from deploychain.precision import Precision

_BANNER = re.compile(r"(\S+)(?: \[TensorRT v(\d{1,9})\])?(?: \[b(\d{1,9})\])?(?: # (.*))?", re.S)
_SECTION = re.compile(r"=== (.{1,80}?) ===\s*$")
_VERSION = re.compile(r"TensorRT version: (\d{1,3}(?:\.\d{1,6}){1,3}|\d{4,7})")
_DLA = re.compile(r"\[(Dla|Gpu)Layer\] (.*)$", re.S)
_RTX = re.compile(r"TensorRT-RTX|In JIT build, strongly typed")
_TASK = re.compile(r"(TASK_BEGIN|TASK_END|TASK_ABORT)")
_WITHHELD = "The e2e network timing is not reported since it is inaccurate"
_MAX_KEYS, _MAX_VALUE, _MAX_WARNINGS = 400, 2000, 200


class RunBuilder:
    """Collects what one run prints; `build` gives the record."""

    def __init__(self, path: str, max_layers: int) -> None:
        self._path = path
        self._max_layers = max_layers
        self._begun = False
        self._ended: list[str] = []
        self._tool = ""
        self._version: str | None = None
        self._build: int | None = None
        self._command = ""
        self._sections: dict[str, dict[str, str]] = {}
        self._section: dict[str, str] | None = None
        self._section_stamped = False
        self._keys = 0
        self._summary = SummaryReader()
        self._table: TableReader | None = None
        self._profile: Profile | None = None
        self._blocks = BlockReader(max_layers)
        self._debug = DebugPrecisionReader()
        self._warnings: dict[tuple[str, str], Warned] = {}
        self._omitted = 0
        self._dla: list[str] = []
        self._gpu: list[str] = []
        self._stderr = False
        self._withheld = False
        self._rtx = False
        self._aborted = 0
        self._network = False

    @property
    def empty(self) -> bool:
        """Whether nothing was found: text before the first banner is usually a prompt or prose."""
        return not (
            self._begun
            or self._ended
            or self._sections
            or self._warnings
            or self._dla
            or self._gpu
            or self._table
            or self._profile
            or self._summary.found
            or self._blocks.found
            or self._debug.found
        )

    def starts_another(self, text: str) -> bool:
        """Whether a message is the beginning of another run whose banner is missing (filtered, or a partial copy)."""
        if self._begun and not self._ended:
            return False
        if text.startswith("=== Model Options"):
            return bool(self._ended) or "Model Options" in self._sections
        return text.startswith("=== Performance summary") and self._summary.found

    # -- lines ------------------------------------------------------------------------------------------------

    def running(self, rest: str) -> None:
        self._begun = True
        self._identify(rest)

    def end(self, status: str, rest: str) -> None:
        self._ended.append(status)
        self._identify(rest)
        self._close_table()
        self._section = None

    def _identify(self, rest: str) -> None:
        found = _BANNER.match(rest)
        if found is None:
            return
        self._tool = self._tool or found.group(1)
        if found.group(2) and self._version is None:
            self._version = decode_version(found.group(2))
        if found.group(3) and self._build is None:
            self._build = int(found.group(3))
        self._command = self._command or (found.group(4) or "").strip()

    def message(self, level: str, text: str) -> None:
        """A line with a level: V, I, W, E or F."""
        if level in "WEF":
            if self._debug.feed(text):
                return
            self._stderr = True
            self._warn(level, text)
            return
        if level == "V":
            if _LAYER_LIST_HINT in text:
                self._warn(level, text)
            elif text.startswith("=== "):
                self._section = None
            else:
                self._blocks.message(text)
            return
        self._text(text, stamped=True)

    def plain(self, line: str) -> None:
        """A line without a level."""
        if line.startswith("&&&& "):
            if _TASK.search(line):
                self._aborted += "TASK_ABORT" in line
            return
        if self._blocks.plain(line):
            return
        self._text(line, stamped=False)

    def _text(self, text: str, stamped: bool) -> None:
        if self._table is not None:
            if self._table.feed(text):
                return
            self._close_table()
        if stamped and self._blocks.message(text):
            return
        if text.startswith("=== ") or (text.startswith(" ") and text.lstrip().startswith("=== ")):
            self._header(text.strip(), stamped)
            return
        if not (self._ended and self._summary.found) and self._summary.feed(text):
            self._section = None
            return
        if self._section is not None and (stamped or not self._section_stamped):
            if not text.strip():
                self._section = None
                return
            if self._option(text):
                return
        if not self._debug.feed(text):
            self._other(text)

    def _header(self, text: str, stamped: bool) -> None:
        profile = HEADER.match(text)
        if profile:
            self._table = TableReader(int(profile.group(1)))
            self._section = None
            return
        found = _SECTION.match(text)
        if found is None:
            return
        name = found.group(1)
        if name.endswith("Options") or name == "Device Information":
            self._section = self._sections.setdefault(name, {}) if len(self._sections) < 20 else None
            self._section_stamped = stamped
        else:
            self._section = None

    def _option(self, text: str) -> bool:
        key, colon, value = text.partition(":")
        if not colon or self._section is None or len(key) > 120 or "[" in key:
            return False
        if self._keys < _MAX_KEYS:
            self._keys += 1
            key, value = key.strip(), value.strip()
            known = self._section.get(key)
            if known is None:
                self._section[key] = value[:_MAX_VALUE]
            elif key.startswith("Input ") and value not in known.split(", "):  # one line per input: shapes
                self._section[key] = f"{known}, {value}"[:_MAX_VALUE]
        return True

    def _other(self, text: str) -> None:
        if "TensorRT version: " in text and self._version is None:
            found = _VERSION.search(text)
            if found:
                digits = found.group(1)
                self._version = digits if "." in digits else decode_version(digits)
        elif "Layer] " in text:
            found = _DLA.search(text)
            if found and len(self._dla) + len(self._gpu) < self._max_layers:
                (self._dla if found.group(1) == "Dla" else self._gpu).append(found.group(2))
        elif text.startswith(("==== TensorRT Network", "==== ONNX Model")):
            self._network = True
        elif _WITHHELD in text:
            self._withheld = True
        elif "RTX" in text and _RTX.search(text):
            self._rtx = True
        elif "falling back to GPU" in text:
            self._warn("I", text)

    def _warn(self, level: str, text: str) -> None:
        if "strongly typed is enabled by default" in text or "TensorRT-RTX" in text:
            self._rtx = True
        if text.startswith("Unknown option:") or not text.strip():
            level = "E" if text.strip() else level
        if not text.strip():
            return
        warned = recognise(level, text)
        if warned is None:
            return
        key = (warned.kind, warned.text[:200])
        known = self._warnings.get(key)
        if known is not None:
            if warned.count == 1:
                self._warnings[key] = replace(known, count=min(known.count + 1, 10**9))
        elif len(self._warnings) < _MAX_WARNINGS or (warned.serious and len(self._warnings) < 2 * _MAX_WARNINGS):
            self._warnings[key] = warned
        else:
            self._omitted += 1

    def _close_table(self) -> None:
        if self._table is not None and not self._table.empty:
            self._profile = self._table.finish()
        self._table = None

    # -- the record -------------------------------------------------------------------------------------------

    def build(self) -> Run:
        self._close_table()
        listings = self._blocks.finish()
        stats = self._summary.stats()
        flat = {key: value for section in self._sections.values() for key, value in section.items()}
        loaded = bool(option(self._command, "loadEngine") or flat.get("Load engine"))
        allowed, strong, source = self._request(flat, loaded)
        debug = self._debug.finish()
        tool = self._tool or ("polygraphy debug precision" if debug else "")
        return Run(
            path=self._path,
            status=self._status(),
            tool=tool,
            tensorrt=self._version,
            build=self._build,
            command=self._command,
            options=self._sections,
            device=flat.get("Selected Device") or None,
            compute_capability=flat.get("Compute Capability") or None,
            asked=asked_of(allowed, best=option(self._command, "best") is not None),
            allowed=allowed,
            asked_from=source,
            strongly_typed=strong or self._rtx or "rtx" in tool.lower() or version_key(self._version) >= (11,),
            pinned=self._pins(flat, loaded),
            throughput_qps=self._summary.throughput,
            latency=stats.get("Latency"),
            gpu=stats.get("GPU Compute Time"),
            stats=stats,
            walltime_s=self._summary.walltime,
            profile=self._profile,
            listings=listings,
            warnings=tuple(self._warnings.values()),
            dla_layers=tuple(self._dla),
            gpu_layers=tuple(self._gpu),
            stderr_seen=self._stderr,
            summary_withheld=self._withheld,
            notes=tuple(
                explain(
                    self._sections,
                    self._command,
                    self._version,
                    has_summary=bool(stats) or self._summary.throughput is not None,
                    has_profile=self._profile is not None,
                )
            ),
            problems=tuple(self._problems()),
            facts=debug,
        )

    def _request(self, flat: dict[str, str], loaded: bool) -> tuple[frozenset[Precision], bool, str]:
        if loaded:
            return frozenset(), False, ""  # an engine that was built elsewhere: the flags of this run say nothing
        text = flat.get("Precision")
        if text:
            allowed, strong = allowed_precisions(text)
            return (frozenset() if strong else allowed), strong, "build options" if allowed and not strong else ""
        flags = asked_by_flags(self._command) if version_key(self._version) < (11,) else frozenset()  # 11 has no flags
        if option(self._command, "stronglyTyped") is not None:
            return frozenset(), True, ""
        return flags, False, "command line of the run" if flags else ""

    def _pins(self, flat: dict[str, str], loaded: bool) -> dict[str, Precision]:
        if loaded:
            return {}
        return layer_precisions(option(self._command, "layerPrecisions") or flat.get("LayerPrecisions", ""))

    def _status(self) -> Status:
        if "FAILED" in self._ended:
            return "failed"
        if "PASSED" in self._ended:
            return "incomplete" if self._cut_table() else "passed"
        if "WAIVED" in self._ended:
            return "unknown"
        return "incomplete" if self._begun else "unknown"

    def _cut_table(self) -> bool:
        return self._profile is not None and not self._profile.complete

    def _problems(self) -> list[str]:
        problems = []
        if self._begun and not self._ended:
            unknown = any(w.kind == "option-error" for w in self._warnings.values())
            problems.append(
                "the run ends with an option error and no banner: nothing was run"
                if unknown
                else "the run has no end banner: it was cut or killed, and is not a pass"
            )
        if self._ended and not self._begun and "PASSED" in self._ended:
            problems.append("the start of the run is missing")
        if "WAIVED" in self._ended:
            problems.append("the run was waived: nothing was tested")
        if self._cut_table():
            problems.append("the profile table is cut: it has no Total row")
        if self._profile is not None and not any(value > 0 for value in self._profile.total_ms):
            problems.append("the profile table holds no time: nothing was timed")
        if self._aborted:
            problems.append(f"{self._aborted} build routes were aborted (TASK_ABORT); the run went on")
        if self._blocks.cut and not self._ended:
            problems.append("the text ends inside the list of layers, before Bindings or I/O Tensors: it may be cut")
        if self._network:
            problems.append("Polygraphy lists a network or model, not an engine: nothing says what was built")
        if self._blocks.full:
            problems.append("more layer lines than a file of this size can hold: the rest was left out")
        if self._omitted:
            problems.append(f"{self._omitted} further warnings were left out")
        return problems


_LAYER_LIST_HINT = "List of affected weights"
