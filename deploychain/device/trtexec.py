"""The trtexec backend: build, run the golden data, measure, and read what it printed with the package's own readers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from deploychain.device.command import Wish, build_command, run_command, time_command
from deploychain.device.failure import explain
from deploychain.device.measured import (
    NO_LAYERS,
    PROFILE,
    TIMES,
    Arrays,
    Built,
    Measured,
    OnProgress,
    Shapes,
    batch_limits,
    forget_times,
    latency_of,
    read_times,
)
from deploychain.device.versions import Features, Version, refuse_foreign_engine
from deploychain.engine.evidence import read_evidence
from deploychain.errors import ArtifactError, CapabilityError, StageError
from deploychain.machine import Machine
from deploychain.precision import Precision
from deploychain.process import watch
from deploychain.records import EngineReport

LOG, LAYERS = "build.log", "layers.json"
# What a log says at the start of each phase, newest first.
_PHASES = (
    ("Starting inference", "inference"),
    ("Skipped inference phase", "end"),
    ("Engine deserialized", "load"),
    ("Created engine with size", "save"),
    ("Engine built in", "save"),
    ("Engine generation completed", "save"),
    ("Finished parsing network model", "build"),
    ("Start parsing network model", "parse"),
)


_NOT_FINITE = re.compile(r"([\[,])(\s*)(-?)(?:(nan)|inf)(?=\s*[\],])")


class Trtexec:
    """One trtexec of one release.

    Args:
        path: the program.
        version: what its banner says.
        batch_runs: inferences on golden data per engine at most; each one starts the program.
    """

    library = "TensorRT"

    def __init__(self, path: Path, version: str, batch_runs: int = 16) -> None:
        self.path, self.version = path, Version.parse(version)
        self.features = Features.of(self.version)
        self.batch_runs = batch_runs
        self.name = f"trtexec {self.version}"
        self.target: str | None = None
        self.digits = "outputs as trtexec prints them, six significant digits"

    @classmethod
    def find(cls, machine: Machine) -> Trtexec:
        """
        Raises:
            CapabilityError: there is none, it does not run, or it is too old.
        """
        tool = machine.trtexec
        if tool is None:
            raise CapabilityError(
                "trtexec was not found on PATH or in /usr/src/tensorrt/bin",
                remedy="sudo apt-get install libnvinfer-bin, or install the tensorrt Python bindings",
            )
        if tool.version is None:
            remedy = "start the container with --runtime nvidia" if "libnv" in tool.problem else "reinstall TensorRT"
            raise CapabilityError(f"trtexec does not run: {tool.problem}", where=tool.path, remedy=remedy)
        return cls(Path(tool.path).absolute(), tool.version)  # it runs in folders of its own

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
    ) -> Built:
        """Build one engine into ``engine``; log and layer listing go to ``work``."""
        command = build_command(
            self.path,
            wish,
            self.features,
            model=model,
            engine=engine,
            layers=work / LAYERS,
            profiles=profiles,
            timing_cache=timing_cache,
            workspace_mib=workspace_mib,
        )
        log = work / LOG
        ended = watch(command, log, timeout=timeout, folder=work, on_tick=lambda s, m: on_progress(_phase(log), s, m))
        if ended.status == 0 and not ended.timed_out and engine.is_file() and engine.stat().st_size:
            return Built(True, "", "", ended.seconds, ended.peak_mib, tuple(command))
        engine.unlink(missing_ok=True)
        failure = explain(ended, log, timeout)
        return Built(False, failure.reason, failure.remedy, ended.seconds, ended.peak_mib, tuple(command))

    def infer(
        self,
        engine: Path,
        inputs: Arrays,
        profiles: Mapping[str, Shapes],
        work: Path,
        *,
        timeout: float,
        on_progress: OnProgress,
    ) -> Arrays:
        """Outputs of the first samples, as many as `batch_runs` batches hold.

        Raises:
            ArtifactError: the engine is of another version.
            StageError: it does not run, or its output cannot be read.
        """
        refuse_foreign_engine(engine, self.version)
        samples = len(next(iter(inputs.values())))
        low, high = batch_limits(inputs, profiles)
        pieces: dict[str, list[npt.NDArray[Any]]] = {}
        for index, start in enumerate(range(0, samples, high)):
            if index == self.batch_runs:
                break
            rows = np.arange(start, min(start + high, samples))
            padded = np.concatenate([rows, np.full(max(0, low - len(rows)), rows[-1])])
            feed = {name: np.ascontiguousarray(array[padded]) for name, array in inputs.items()}
            made = self._infer_once(engine, feed, work, timeout, on_progress)
            for name, array in made.items():
                pieces.setdefault(name, []).append(array[: len(rows)])
        return {name: np.concatenate(arrays) for name, arrays in pieces.items()}

    def _infer_once(self, engine: Path, feed: Arrays, work: Path, timeout: float, on_progress: OnProgress) -> Arrays:
        files: dict[str, Path] = {}
        for index, (name, array) in enumerate(feed.items()):
            files[name] = work / f"input-{index}.bin"
            array.tofile(files[name])
        out = work / "outputs.json"
        out.unlink(missing_ok=True)
        shapes = {name: array.shape for name, array in feed.items()}
        command = run_command(self.path, engine=engine, inputs=files, shapes=shapes, outputs=out)
        log = work / "run.log"
        ended = watch(command, log, timeout=timeout, folder=work, on_tick=lambda s, m: on_progress("golden data", s, m))
        if ended.status != 0 or ended.timed_out:
            failure = explain(ended, log, timeout)
            raise StageError(f"the engine does not run: {failure.reason}", where=str(engine), remedy=failure.remedy)
        return read_outputs(out)

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
    ) -> Measured:
        """GPU compute time on one shape; the raw times and the layer profile go to ``work``.

        Raises:
            StageError: it does not run, or wrote no times.
        """
        forget_times(work)
        command = time_command(
            self.path,
            self.features,
            engine=engine,
            shapes=shapes,
            times=work / TIMES,
            profile=work / PROFILE,
            warm_up_ms=warm_up_ms,
            seconds=seconds,
            iterations=50,
        )
        log = work / "time.log"
        ended = watch(command, log, timeout=timeout, folder=work, on_tick=lambda s, m: on_progress("latency", s, m))
        if ended.status != 0 or ended.timed_out:
            failure = explain(ended, log, timeout)
            raise StageError(f"latency not measured: {failure.reason}", where=str(engine), remedy=failure.remedy)
        times = read_times(work / TIMES)
        latency = latency_of(
            times,
            stage,
            device,
            clock="GPU compute time",
            shapes=shapes,
            warm_up_ms=warm_up_ms,
            backend=self.name,
        )
        return Measured(latency, (work / PROFILE).is_file())

    def report(self, wish: Wish, asked: Precision, model: Path, work: Path, common: Mapping[str, Any]) -> EngineReport:
        """Read and judge the layers of a built engine."""
        files = [p for p in (work / LOG, work / LAYERS, work / PROFILE) if p.is_file()]
        seen = read_evidence(files, model=model, asked=asked)
        # Standard error goes into the same log here, so that a log without warnings is one.
        problems = tuple(p.text for p in seen.problems if not p.text.startswith("warnings not captured"))
        if seen.summary is None and not problems:
            problems = (NO_LAYERS,)
        return EngineReport(
            asked=asked,
            built=True,
            layers=seen.layers,
            summary=seen.summary,
            problems=problems,
            complete=seen.complete,
            **common,
        )


def read_outputs(path: Path) -> Arrays:
    """``--exportOutput``: a list of name, dimensions (``8x10``) and values, not finite ones as C++ prints them.

    Raises:
        ArtifactError: it is missing or cut, or has another form.
    """
    try:
        rows = json.loads(_NOT_FINITE.sub(_json_word, path.read_text(encoding="utf-8")))
        arrays: Arrays = {}
        for row in rows:
            dims = tuple(int(n) for n in str(row["dimensions"]).split("x") if n not in ("", "scalar"))
            arrays[str(row["name"])] = np.asarray(row["values"], dtype=np.float32).reshape(dims)
        return arrays
    except OSError as error:
        raise ArtifactError(f"trtexec wrote no outputs: {error.strerror}", where=str(path)) from None
    except (ValueError, KeyError, TypeError) as error:
        raise ArtifactError(f"the outputs of trtexec cannot be read: {error}", where=str(path)) from None


def _json_word(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2]}{'NaN' if found[4] else found[3] + 'Infinity'}"


def _phase(log: Path) -> str:
    try:
        with log.open("rb") as stream:
            stream.seek(0, 2)
            stream.seek(max(0, stream.tell() - 16384))
            tail = stream.read().decode(errors="replace")
    except OSError:
        return "start"
    at = {phase: tail.rfind(words) for words, phase in _PHASES}
    newest = max(at, key=lambda phase: at[phase])
    if at[newest] >= 0:
        return newest
    return "build" if re.search(r"\[[VIW]\]", tail) else "start"
