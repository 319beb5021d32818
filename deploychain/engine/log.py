"""trtexec logs and other text that TensorRT printed: read in one pass, line by line, in bounded memory."""

from __future__ import annotations

import re

from deploychain.engine.blocks import best_listing
from deploychain.engine.model import FileKind, FileReading, Run, Status
from deploychain.engine.runs import RunBuilder
from deploychain.engine.textfile import LineSource

# The rest of the line must have the form of a banner: scripts search for one (`grep '&&&& PASSED TensorRT.trtexec' log`
# in a traced shell), and prose quotes it. No run has passed by that.
_BANNER = re.compile(
    r"&&&& (RUNNING|PASSED|FAILED|WAIVED) ([^\s\"'`]+(?: \[TensorRT v\d+\])?(?: \[b\d+\])?(?:\s*$| #.*$))", re.S
)
_TIMED = re.compile(r"\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] (?:\[TRT\] )?\[([FEWIV])\](?: \[TRT\])?(?: |$)")
_STAMP_ALONE = re.compile(
    r"\[\d[\d/:-]{0,18}(?:\] ?(?:\[[FEWIV]?\]?)?)?"
)  # a line torn inside its stamp, or just behind
_UNTIMED = re.compile(r"(?:\[TRT\] )?\[([FEWIV])\](?: \[TRT\])?(?: |$)")
# TensorRT 7's Python logger, and the usual form of people's own `ILogger`.
_WORDED = re.compile(r"\[(?:TensorRT|TRT)\] \[?(VERBOSE|INFO|WARNING|ERROR|INTERNAL[ _]ERROR)(?::|\]:?) ")
_LEVELS = {"VERBOSE": "V", "INFO": "I", "WARNING": "W", "ERROR": "E", "INTERNAL ERROR": "F", "INTERNAL_ERROR": "F"}
_SKIP_WORDS = ("] [V] ", "] VERBOSE: ")
_LAYER_LINE = re.compile(r"Layer\(|Layers:|[Ll]ayer [Ii]nformation:")  # not the "(Unnamed Layer* 7)" of auto-tuning
_BEGINS = ("&&&&", "Layer(", "Name: ", "[TRT] ", "[TensorRT] ")
_KEPT_RUNS = 200
_MAX_HELD, _MAX_TEARS = 100_000, 4  # of one line: only a hostile file tears it in more pieces


def layer_bound(size: int) -> int:
    """How many layers a text of this many bytes can list: a line about a layer has well over a hundred. Only hostile
    files meet the bound; it keeps the records from outgrowing the text.
    """
    return 4000 + size // 96


class LogReader:
    """Feeds lines to the run, block and profile readers, and splits the file into runs."""

    def __init__(self, path: str, max_layers: int) -> None:
        self._path = path
        self._max_layers = max_layers
        self._runs: list[Run] = []
        self._omitted: dict[Status, int] = {}
        self._run = RunBuilder(path, max_layers)
        self.banners = 0
        self.stamped = 0
        self.torn = 0
        self._joined = 0
        self.held = ""  # the head of a torn line, whose tail is still to come
        self.json_hint = False  # layer JSON stands somewhere in the text

    def feed(self, line: str) -> None:
        """Take one clean line."""
        if self.held:
            line = self._mended(line)
        else:
            self._joined = 0
        at = line.find("&&&& ")
        if at >= 0:
            found = _BANNER.search(line, at)
            if found:
                self._banner(found.group(1), found.group(2))
                return
        found = _TIMED.match(line) or _UNTIMED.match(line)
        if found is None and "[" in line:
            # Behind a prompt or a prefix that is not common to the lines, or a line torn by another stream.
            found = _TIMED.search(line)
            if found is not None and found.start() > 0:
                before = line[: found.start()]
                prefixed = before.endswith((" ", "\t", ":", "|", "]")) and not _STAMP_ALONE.fullmatch(before)
                if before.strip() and not prefixed:
                    self._tear(before)
        if found is not None:
            self.stamped += 1
            text = line[found.end() :]
            second = _TIMED.search(text) if "/20" in text else None
            if second is not None:
                self._tear(line[: found.end() + second.start()])
                self._message(second.group(1), text[second.end() :])
            else:
                self._message(found.group(1), text)
            return
        if line.startswith(("[TensorRT] ", "[TRT] ")):
            old = _WORDED.match(line)
            if old is not None:
                self.stamped += 1
                self._message(_LEVELS[old.group(1)], line[old.end() :])
                return
        if '"Layers"' in line or '"LayerType"' in line:
            self.json_hint = True
        self._run.plain(line)

    def _tear(self, head: str) -> None:
        """Keep the head of a line into which another stream wrote: its tail stands on a line of its own."""
        self.torn += 1
        if len(head) < _MAX_HELD and self._joined < _MAX_TEARS:
            self.held = head
        else:
            self._whole(head)

    def _mended(self, line: str) -> str:
        """The line, with the held head before it if it is its tail: it then has no stamp, and is not the beginning of
        anything else. Messages of the stream that tore the line may stand between.
        """
        found = _TIMED.match(line) or _UNTIMED.match(line)
        if found is not None and found.group(1) in "WEF":
            return line
        own = found is not None or not line.strip() or line.startswith(_BEGINS)
        if not own or _STAMP_ALONE.fullmatch(self.held):
            line, self.held = self.held + line, ""
            self._joined += 1
        else:
            self.release()
        return line

    def release(self) -> None:
        """Take the head of a torn line as it stands: what follows is not its tail."""
        head, self.held = self.held, ""
        if head:
            self._whole(head)

    def _whole(self, head: str) -> None:
        found = _TIMED.match(head) or _UNTIMED.match(head)
        if found is not None:
            self._message(found.group(1), head[found.end() :])
        else:
            self._run.plain(head)

    def _message(self, level: str, text: str) -> None:
        if text.startswith("=== ") and self._run.starts_another(text):
            self._close()
        self._run.message(level, text)

    def _banner(self, status: str, rest: str) -> None:
        self.banners += 1
        if status == "RUNNING":
            self._close()
            self._run.running(rest)
        else:
            self._run.end(status, rest)

    def _close(self) -> None:
        if self._run.empty:
            return
        run = self._run.build()
        if len(self._runs) < _KEPT_RUNS:
            self._runs.append(run)
        else:
            # Keep the last of the many; of the others, the statuses count.
            previous = self._runs[-1]
            self._omitted[previous.status] = self._omitted.get(previous.status, 0) + 1
            self._runs[-1] = run
        self._run = RunBuilder(self._path, self._max_layers)

    @property
    def omitted(self) -> tuple[Status, ...]:
        """How the runs ended that are counted and not kept."""
        return tuple(self._omitted)

    def finish(self) -> tuple[tuple[Run, ...], list[str]]:
        """The runs, and notes about the file as a whole."""
        self.release()
        if self.stamped and not self._runs and self._run.empty:
            self._runs.append(self._run.build())  # log lines, though none of interest
        self._close()
        notes = []
        if self.torn:
            notes.append(f"{self.torn} lines were torn by another stream and were split")
        if self._omitted:
            words = ", ".join(f"{n} {status}" for status, n in sorted(self._omitted.items()))
            notes.append(f"{sum(self._omitted.values())} runs in the middle are counted, not listed: {words}")
        return tuple(self._runs), notes


def read_log(source: LineSource, size: int) -> FileReading:
    """Read a text file of any kind that TensorRT or trtexec prints.

    Raises:
        ArtifactError: the file cannot be read to its end.
    """
    path = str(source.path)
    reader = LogReader(path, max_layers=layer_bound(size))
    feed, clean = reader.feed, source.clean
    verbose, old_verbose = _SKIP_WORDS
    for lines in source.chunks():
        for line in lines:
            # By far the most lines of a verbose log are auto-tuning: nothing there says what was chosen.
            if (
                (verbose in line or old_verbose in line)
                and ("Layer" not in line or not _LAYER_LINE.search(line))
                and "&&&&" not in line
                and "affected weights" not in line
                and "] [" not in line[100:]
            ):
                if reader.held:
                    reader.release()
                continue
            feed(clean(line))
    runs, notes = reader.finish()
    return _reading(path, runs, notes, reader)


def _reading(path: str, runs: tuple[Run, ...], notes: list[str], reader: LogReader) -> FileReading:
    listings = [listing for run in runs for listing in run.listings]
    kind: FileKind = "log"
    if not reader.banners:
        sources = {listing.source for listing in listings}
        if "builder" in sources and not reader.stamped:
            kind = "builder-text"
        elif "polygraphy" in sources:
            kind = "polygraphy-inspect"
        elif listings and not reader.stamped:
            kind = "inspector-text"
        elif any(run.tool == "polygraphy debug precision" for run in runs):
            kind = "polygraphy-debug"
    if not runs or (not reader.banners and not reader.stamped and not listings and not _has_content(runs)):
        return FileReading(
            path,
            "other",
            "not an artefact of TensorRT: no banner, no log line, no layer, no profile was found in it",
            notes=tuple(notes),
            facts={"embedded_json": True} if reader.json_hint else {},
        )
    if kind in ("builder-text", "inspector-text", "polygraphy-inspect") and len(runs) == 1:
        if len(listings) > 1:
            notes.append(f"{len(listings)} listings of layers in the file; shown: the most telling, of equals the last")
        return FileReading(path, kind, _problem(runs), listing=best_listing(runs[0].listings), notes=tuple(notes))
    facts: dict[str, object] = {"embedded_json": True} if reader.json_hint and not listings else {}
    return FileReading(path, kind, _problem(runs), runs=runs, notes=tuple(notes), facts=facts, omitted=reader.omitted)


def _has_content(runs: tuple[Run, ...]) -> bool:
    return any(
        run.profile or run.throughput_qps is not None or run.latency or run.dla_layers or run.tool for run in runs
    )


def _problem(runs: tuple[Run, ...]) -> str | None:
    problems = [problem for run in runs for problem in run.problems]
    return problems[0] if problems else None
