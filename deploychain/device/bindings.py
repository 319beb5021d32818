"""The Python backend: TensorRT's bindings (8.6 and later) or TensorRT for RTX, each step in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from deploychain.device.command import Wish
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
from deploychain.engine.built import EVIDENCE_SCHEMA, engine_reports
from deploychain.engine.evidence import read_evidence
from deploychain.engine.judge import judge_layers, summarise
from deploychain.errors import CapabilityError, StageError
from deploychain.machine import Machine, output_of
from deploychain.precision import Precision
from deploychain.process import package_environment, watch
from deploychain.records import EngineReport

EVIDENCE, INSPECTOR = "evidence.json", "inspector.json"
RUNNER = "deploychain.backends.tensorrt_runner"
_LIBRARY = {"tensorrt": "TensorRT", "tensorrt_rtx": "TensorRT for RTX"}
_AHEAD_OF_TIME = "8.9"  # target of TensorRT for RTX where no GPU says another


class Bindings:
    """One installed flavour.

    Args:
        capability: the target of an ahead-of-time build; None builds for the GPU that is there.
    """

    digits = ""

    def __init__(self, flavour: Literal["tensorrt", "tensorrt_rtx"], version: str, capability: str | None) -> None:
        self.flavour, self.target = flavour, capability
        self.library = _LIBRARY[flavour]
        self.version = Version.parse(version)
        self.name = f"{flavour} {self.version}"
        self.features = Features.of(self.version) if flavour == "tensorrt" else Features.of_rtx(self.version)

    @classmethod
    def find(cls, flavour: Literal["tensorrt", "tensorrt_rtx"], machine: Machine) -> Bindings:
        """
        Raises:
            CapabilityError: the package is missing or does not import, or there is no GPU for the classic flavour.
        """
        if importlib.util.find_spec(flavour) is None:
            raise CapabilityError(
                f"the Python package {flavour} is not installed", remedy="`deploychain doctor` says how to get it"
            )
        if flavour == "tensorrt" and not machine.gpus:
            raise CapabilityError("tensorrt builds on the GPU that runs the engine, and this machine has none")
        answer = output_of([sys.executable, "-m", "deploychain.backends.probe", flavour], 120, package_environment())
        found = _last_json(answer[1]) if answer else {}
        if not found.get("ok"):
            error = str(found.get("error", "the import ended the process"))
            remedy = "start the container with --runtime nvidia" if "libnv" in error else "see `deploychain doctor`"
            raise CapabilityError(f"{flavour} does not import: {error}", remedy=remedy)
        capability = None
        if flavour == "tensorrt_rtx":
            own = machine.gpus[0].compute_capability if machine.gpus else None
            capability = own if own in found["compute_capabilities"] else _AHEAD_OF_TIME
        return cls(flavour, str(found["version"]), capability)

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
        """Build one engine; the builder's words and the parsed network go to ``work/evidence.json``."""
        from deploychain.backends.tensorrt_build import BuildRequest, build_engine
        from deploychain.backends.tensorrt_flavour import advice

        request = BuildRequest(
            flavour=self.flavour,
            onnx=model.resolve(),
            engine=engine.resolve(),
            compute_capability=self.target,
            shapes={k: {m: list(s) for m, s in v.items()} for k, v in profiles.items()},
            strongly_typed=wish.typing == "strong",
            flags=tuple(flag.upper() for flag in wish.flags),
            layer_precisions=wish.layer_precisions,
            dla_core=wish.dla_core,
            workspace_mib=workspace_mib,
            timing_cache=timing_cache.resolve() if timing_cache else None,
        )
        made = build_engine(
            request,
            work.resolve(),
            timeout=timeout,
            on_progress=lambda phase, done, total, seconds, memory: on_progress(phase, seconds, memory),
        )
        row = {
            "name": wish.name,
            "asked": wish.name,
            "built": made.built,
            "reason": made.reason,
            "backend": made.flavour,
            "version": made.version,
            "compute_capability": made.compute_capability,
            "network": [dict(x) for x in made.network],
            "messages": [dict(m) for m in made.messages],
            "settings": dict(made.settings),
            "text": made.text,
        }
        text = json.dumps({"schema": EVIDENCE_SCHEMA, "engines": [row]}, ensure_ascii=False)
        (work / EVIDENCE).write_text(text, encoding="utf-8")
        remedy = advice(made) or "see the messages in the evidence"
        return Built(made.built, made.reason, remedy, made.seconds, made.peak_memory_mib or 0, ())

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
        """All samples through the engine.

        Raises:
            ArtifactError: the engine is of another version.
            CapabilityError: no GPU, or one that the library does not serve.
            StageError: it does not run, or the process died.
        """
        refuse_foreign_engine(engine, self.version, self.library)
        low, high = batch_limits(inputs, profiles)
        data, made = work / "golden.npz", work / "made.npz"
        np.savez(data, allow_pickle=False, **inputs)
        try:
            self._run(
                {"engine": str(engine), "data": str(data), "made": str(made), "low": low, "high": high},
                work,
                "golden data",
                timeout,
                on_progress,
            )
            with np.load(made, allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
        finally:
            data.unlink(missing_ok=True)
            made.unlink(missing_ok=True)

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
        """GPU time of whole inferences and of each layer, and the inspector's listing.

        Raises:
            as `infer`.
        """
        refuse_foreign_engine(engine, self.version, self.library)
        forget_times(work)
        request = {
            "engine": str(engine),
            "layers": str(work / INSPECTOR),
            "shapes": {name: list(shape) for name, shape in shapes.items()},
            "times": str(work / TIMES),
            "profile": str(work / PROFILE),
            "warm_up_ms": warm_up_ms,
            "seconds": seconds,
            "iterations": 50,
        }
        self._run(request, work, "latency", timeout, on_progress)
        times = read_times(work / TIMES)
        latency = latency_of(
            times,
            stage,
            device,
            clock="GPU time by CUDA events",
            shapes=shapes,
            warm_up_ms=warm_up_ms,
            backend=self.name,
        )
        return Measured(latency, True)

    def report(self, wish: Wish, asked: Precision, model: Path, work: Path, common: Mapping[str, Any]) -> EngineReport:
        """Judge the layers: against the parsed network (strongly typed) or against flags and held layers."""
        evidence = json.loads((work / EVIDENCE).read_text(encoding="utf-8"))
        (judged,) = engine_reports(evidence)
        if wish.typing == "strong" and judged.summary is not None:
            return replace(judged, asked=asked, **common)
        files = [p for p in (work / INSPECTOR, work / PROFILE) if p.is_file()]
        seen = read_evidence(files, model=model, asked=asked) if files else judged
        pins = {node: Precision(p) for node, p in wish.layer_precisions.items()}
        layers = judge_layers(seen.layers, asked, pinned=pins)
        return EngineReport(
            asked=asked,
            built=True,
            layers=layers,
            summary=summarise(layers) if layers else None,
            problems=() if layers else (NO_LAYERS,),
            complete=seen.complete,
            **common,
        )

    def _run(
        self, request: Mapping[str, Any], work: Path, phase: str, timeout: float, on_progress: OnProgress
    ) -> dict[str, Any]:
        asked, result, log = work / "run.request.json", work / "run.result.json", work / "run.log"
        result.unlink(missing_ok=True)
        content = {"flavour": self.flavour, "result": str(result), **request}
        asked.write_text(json.dumps(content, indent=1), encoding="utf-8")
        ended = watch(
            [sys.executable, "-m", RUNNER, str(asked)],
            log,
            timeout=timeout,
            folder=work,
            environment=package_environment(),
            on_tick=lambda s, m: on_progress(phase, s, m),
        )
        if ended.timed_out:
            raise StageError(f"{phase}: the engine did not end in time and was killed", remedy="raise --timeout")
        answer = _last_json(result.read_text(encoding="utf-8")) if result.is_file() else {}
        if not answer:
            lines = [x for x in log.read_text(errors="replace").splitlines() if x.strip()]
            how = f"was ended by {ended.signal_name}" if ended.signal_name else f"ended with status {ended.status}"
            raise StageError(f"{phase}: the process {how}; its last words: {lines[-1][:300] if lines else 'none'}")
        if not answer["ok"]:
            error = answer["error"]
            kind = CapabilityError if error["kind"] == CapabilityError.kind else StageError
            raise kind(error["message"], where=error["where"], remedy=error["remedy"])
        return answer


def _last_json(text: str) -> dict[str, Any]:
    for line in reversed(text.strip().splitlines()):
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            return found
    return {}
