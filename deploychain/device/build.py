"""`deploychain device build`: every engine of a bundle built here, run on the golden data, timed, and judged."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path, PurePosixPath
from typing import Literal

import numpy as np

from deploychain.artifact import sha256_of
from deploychain.console import Progress, silent
from deploychain.device.backend import DeviceSettings, pick_backend
from deploychain.device.bundle import Bundle, load_arrays, open_bundle
from deploychain.device.cache import ENGINE, EngineCache, Entry, default_cache, write_record
from deploychain.device.command import Wish, map_wish
from deploychain.device.fingerprint import EngineKey, Fingerprint, clocks
from deploychain.device.golden import measure
from deploychain.device.measured import Arrays, Built, OnProgress
from deploychain.device.output import check_output
from deploychain.device.result import DeviceResult, EngineResult
from deploychain.device.trtexec import LOG, Trtexec
from deploychain.environment import package_version
from deploychain.errors import CapabilityError, ConfigError, DeploychainError, StageError
from deploychain.machine import Machine, look
from deploychain.precision import Precision
from deploychain.records import EngineReport, EvalReport, Latency


@dataclass(frozen=True, slots=True)
class Planned:
    """What would be done for one engine."""

    name: str
    action: Literal["build", "reuse"]
    why: str
    typing: str
    command: tuple[str, ...]  # empty where the Python bindings build
    notes: tuple[str, ...] = ()


class DeviceBuild:
    """One bundle on this device."""

    def __init__(
        self,
        bundle_file: Path,
        settings: DeviceSettings,
        *,
        machine: Machine | None = None,
        progress: Callable[[str], AbstractContextManager[Progress]] = silent,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.settings, self.progress, self.note = settings, progress, note
        self.bundle, self.content, self._reader = open_bundle(bundle_file)
        self.machine = machine or look()
        self.backend = pick_backend(settings.backend, self.machine)
        self.typing = self.backend.features.typing(settings.typing)
        fingerprint = Fingerprint.of(self.machine, self.backend.library, str(self.backend.version))
        target = self.backend.target
        self.fingerprint = replace(fingerprint, compute_capability=target) if target else fingerprint
        self.cache = EngineCache(settings.cache or default_cache(), self.bundle.name)
        known = [w.name for w in self.bundle.engines]
        for name in settings.engines:
            if name not in known:
                raise ConfigError(f"the bundle has no engine {name!r}", remedy=f"it has {', '.join(known)}")
        self.wishes = tuple(
            map_wish(w, self.backend.features, self.typing, settings.dla_core)
            for w in self.bundle.engines
            if not settings.engines or w.name in settings.engines
        )
        self._sha256 = {str(f["path"]): str(f["sha256"]) for f in self.bundle.files}

    def plan(self) -> tuple[Planned, ...]:
        """What would be built, reused, and why; nothing is written and no engine is loaded."""
        planned = []
        for wish in self.wishes:
            key = self._key(wish)
            cached = None if self.settings.force else self.cache.find(wish.name, key)
            why = "the cached engine fits" if cached else self.cache.why(wish.name, key)
            command: tuple[str, ...] = ()
            if isinstance(self.backend, Trtexec):
                from deploychain.device.command import build_command

                command = tuple(
                    build_command(
                        self.backend.path,
                        wish,
                        self.backend.features,
                        model=Path(wish.model),
                        engine=Path(ENGINE),
                        layers=Path("layers.json"),
                        profiles=self.bundle.profiles,
                        timing_cache=Path("timing.cache"),
                        workspace_mib=self.settings.workspace_mib,
                    )
                )
            action: Literal["build", "reuse"] = "reuse" if cached else "build"
            planned.append(Planned(wish.name, action, why, wish.typing, command, wish.notes))
        return tuple(planned)

    def run(self, out: Path) -> DeviceResult:
        """Build, run and judge; raw outputs go beside ``out``.

        An engine that fails is a finding of its own; the others go on.

        Raises:
            ArtifactError: the bundle is damaged.
            CapabilityError: the cache cannot be written, or an engine does not fit and the policy is to fail.
            ConfigError: ``out`` cannot be a file: told now, not after minutes of building.
        """
        check_output(out)
        with self.cache.locked():
            folder = self._unpacked()
            results = tuple(self._engine(wish, folder, out.resolve().parent) for wish in self.wishes)
        versions = {"deploychain": package_version("deploychain") or "source tree", "numpy": np.__version__}
        return DeviceResult(
            schema="deploychain.device-result/1",
            bundle=self.bundle.name,
            bundle_sha256=self.content,
            created=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            fingerprint=self.fingerprint,
            backend=self.backend.name,
            jetpack=self.machine.jetpack,
            power_mode=self.machine.power_mode,
            clocks=clocks(),
            engines=results,
            versions=versions,
            models={path: digest for path, digest in self._sha256.items() if path.startswith("models/")},
            evals=self.bundle.evals,
            directions=self.bundle.directions,
            data_sha256=self.bundle.golden.data_sha256,
            samples=self.bundle.golden.samples,
        )

    def _unpacked(self) -> Path:
        """The bundle's files, verified; unpacked once per content."""
        folder = self.cache.root / "bundles" / self.content[:16]
        if not folder.is_dir():
            self._reader.unpack(folder)
        else:
            for path, digest in self._sha256.items():
                if not (folder / path).is_file() or sha256_of(folder / path) != digest:
                    raise StageError(
                        f"{path} of the unpacked bundle was changed", where=str(folder), remedy="remove that folder"
                    )
        return folder

    def _key(self, wish: Wish) -> EngineKey:
        return EngineKey(
            fingerprint=self.fingerprint,
            model_sha256=self._model_sha256(wish.model),
            profiles=self.bundle.profiles,
            typing=wish.typing,
            flags=wish.flags,
            layer_precisions=wish.layer_precisions,
            dla_core=wish.dla_core,
            workspace_mib=self.settings.workspace_mib,
        )

    def _model_sha256(self, model: str) -> str:
        """Of the model with its external weights: they lie in its folder, and another training changes only them."""
        folder = PurePosixPath(model).parent
        parts = [digest for path, digest in sorted(self._sha256.items()) if PurePosixPath(path).parent == folder]
        return parts[0] if len(parts) == 1 else hashlib.sha256("".join(parts).encode()).hexdigest()

    def _engine(self, wish: Wish, folder: Path, beside: Path) -> EngineResult:
        for line in wish.notes:
            self.note(f"{wish.name}: {line}")
        key = self._key(wish)
        entry = None if self.settings.force else self.cache.find(wish.name, key)
        why, built = "", None
        if entry is None:
            why = "asked for with --force" if self.settings.force else self.cache.why(wish.name, key)
            if self.settings.on_mismatch == "fail" and why not in ("first build", "asked for with --force"):
                raise CapabilityError(
                    f"the cached {wish.name} engine does not fit: {why}",
                    where=str(self.cache.root),
                    remedy="build it here: leave out --on-mismatch fail",
                )
            self.note(f"{wish.name}: building ({why}); this takes minutes on a Jetson, engines go to {self.cache.root}")
            entry, built = self._build(wish, key, folder)
        else:
            self.note(f"{wish.name}: the cached engine fits")
        asked = Precision(wish.asked)
        if entry is None:
            assert built is not None
            self.note(f"{wish.name}: not built: {built.reason} ({built.remedy})")
            return EngineResult(
                wish.name,
                "failed",
                EngineReport(wish.name, asked, False, built.reason, self.backend.name, problems=(built.reason,)),
                why,
                wish.typing,
                wish.flags,
                built.command,
                seconds=round(built.seconds, 1),
                peak_mib=built.peak_mib,
                remedy=built.remedy,
                notes=wish.notes,
            )
        result = EngineResult(
            wish.name,
            "cached" if built is None else "built",
            self._report(wish, asked, folder, entry),
            why,
            wish.typing,
            wish.flags,
            tuple(entry.record.get("command", ())),
            sha256=str(entry.record["sha256"]),
            seconds=entry.record.get("seconds"),
            peak_mib=entry.record.get("peak_mib"),
            notes=wish.notes,
        )
        return self._measured(result, wish, folder, entry, beside) if self.settings.measure else result

    def _build(self, wish: Wish, key: EngineKey, folder: Path) -> tuple[Entry | None, Built]:
        with self.cache.adding(wish.name, key) as work, self.progress(f"build {wish.name}") as progress:
            built = self.backend.build(
                wish,
                folder / wish.model,
                work,
                work / ENGINE,
                self.bundle.profiles,
                timing_cache=self._timing_cache(),
                workspace_mib=self.settings.workspace_mib,
                timeout=self.settings.timeout_minutes * 60,
                on_progress=_reporter(progress),
            )
            if built.built:
                more = {
                    "command": list(built.command),
                    "seconds": round(built.seconds, 1),
                    "peak_mib": built.peak_mib,
                    "backend": self.backend.name,
                    "driver": self.fingerprint.driver,
                    "container": self.fingerprint.container,
                }
                write_record(work, key, more)
            else:
                built = self._with_log(built, work, wish.name)
        return (self.cache.find(wish.name, key) if built.built else None), built

    def _with_log(self, built: Built, work: Path, name: str) -> Built:
        """Keep the words of a failed build: its folder goes."""
        kept = self.cache.root / f"{name}.failed.log"
        log = next((p for p in (work / LOG, (work / ENGINE).with_suffix(".log")) if p.is_file()), None)
        if log is None:
            return built
        log.replace(kept)
        return replace(built, remedy=f"{built.remedy}; log: {kept}")

    def _timing_cache(self) -> Path:
        """One per library version and device: TensorRT refuses another's."""
        fingerprint = self.fingerprint
        name = f"{fingerprint.library}-{fingerprint.tensorrt}-{fingerprint.compute_capability}.timing"
        return self.cache.root / name.replace(" ", "-")

    def _report(self, wish: Wish, asked: Precision, folder: Path, entry: Entry) -> EngineReport:
        common = {
            "name": wish.name,
            "backend": self.backend.name,
            "compute_capability": self.fingerprint.compute_capability,
            "size_bytes": entry.engine.stat().st_size,
            "build_seconds": entry.record.get("seconds"),
        }
        return self.backend.report(wish, asked, folder / wish.model, entry.folder, common)

    def _measured(self, result: EngineResult, wish: Wish, folder: Path, entry: Entry, beside: Path) -> EngineResult:
        stage = f"engine-{wish.name}"
        timeout = self.settings.timeout_minutes * 60
        evaluation, latency, outputs, digest = None, None, None, None
        unmeasured: Literal["", "failed", "unable"] = ""
        with self.progress(f"measure {wish.name}") as progress:
            try:
                evaluation, made = self._evaluate(wish, folder, entry, stage, timeout, progress)
                outputs, digest = _save_outputs(made, beside, wish.name)
            except DeploychainError as error:
                evaluation = EvalReport(stage, ran=False, reason=error.message, reference=self.bundle.golden.reference)
                self.note(f"{wish.name}: golden data not run: {error}")
                if isinstance(error, CapabilityError):  # no GPU that takes the engine: no latency either
                    return replace(result, evaluation=evaluation, unmeasured="unable")
                unmeasured = "failed"
            notes = list(result.notes)
            try:
                timed = self.backend.measure(
                    entry.engine,
                    {name: shape["opt"] for name, shape in self.bundle.profiles.items()},
                    entry.folder,
                    stage=stage,
                    device=self.fingerprint.device,
                    warm_up_ms=self.settings.warm_up_ms,
                    seconds=self.settings.seconds,
                    timeout=timeout,
                    on_progress=_reporter(progress),
                )
                latency = self._with_circumstances(timed.latency)
            except DeploychainError as error:
                notes.append(error.message)
                self.note(f"{wish.name}: not timed: {error}")
                unmeasured = unmeasured or ("unable" if isinstance(error, CapabilityError) else "failed")
        report = self._report(wish, result.report.asked, folder, entry)  # now with the time of each layer
        return replace(
            result,
            report=report,
            evaluation=evaluation,
            latency=latency,
            outputs=outputs,
            outputs_sha256=digest,
            notes=tuple(notes),
            unmeasured=unmeasured,
        )

    def _with_circumstances(self, latency: Latency) -> Latency:
        power = f"power mode {self.machine.power_mode}, " if self.machine.power_mode else ""
        return replace(latency, how=f"{latency.how}; {power}clocks {clocks()}")

    def _evaluate(
        self, wish: Wish, folder: Path, entry: Entry, stage: str, timeout: float, progress: Progress
    ) -> tuple[EvalReport, Arrays]:
        golden = self.bundle.golden
        made = self.backend.infer(
            entry.engine,
            load_arrays(folder, golden.inputs),
            {**self.bundle.profiles, **{n: dict.fromkeys(("min", "opt", "max"), s) for n, s in golden.fixed.items()}},
            entry.folder,
            timeout=timeout,
            on_progress=_reporter(progress),
        )
        count = len(next(iter(made.values()))) if made else 0
        reference = {n: a[:count] for n, a in load_arrays(folder, golden.outputs[golden.reference]).items()}
        targets = None
        if golden.targets is not None:
            targets = load_arrays(folder, (golden.targets,))[golden.targets.name][:count]
        notes = [self.backend.digits] if self.backend.digits else []
        if count < golden.samples:
            notes.append(f"the first {count} of {golden.samples} samples of the bundle")
        report = measure(
            stage,
            made,
            reference,
            reference_stage=golden.reference,
            how=f"{self.backend.name}, {self.fingerprint.device}",
            targets=targets,
            classes=golden.classes[:count],
            sha256=str(entry.record["sha256"]),
            notes=tuple(notes),
        )
        return report, made


def _reporter(progress: Progress) -> OnProgress:
    def report(phase: str, seconds: float, memory: int) -> None:
        progress.update(int(seconds), None, phase=phase, memory=f"{memory} MiB")

    return report


def _save_outputs(arrays: Arrays, beside: Path, name: str) -> tuple[str, str]:
    """Raw outputs beside the result: at home the task's own metrics are taken on them."""
    path = beside / f"device-outputs-{name}.npz"
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(buffer.getvalue())
    part.replace(path)
    return path.name, sha256_of(path)


def verify_bundle(path: Path) -> Bundle:
    """Read every byte of a bundle.

    Raises:
        ArtifactError: what is wrong with it.
    """
    bundle, _, reader = open_bundle(path)
    reader.verify()
    return bundle
