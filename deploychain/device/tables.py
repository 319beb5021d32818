"""Tables about devices for people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from deploychain import console
from deploychain.device.build import Planned
from deploychain.device.fingerprint import Fingerprint
from deploychain.device.importing import Imported
from deploychain.device.result import DeviceResult, EngineResult
from deploychain.report.text import agreement


def print_planned(backend: str, fingerprint: Fingerprint, planned: Sequence[Planned]) -> None:
    """What `device build` would do."""
    _device(backend, fingerprint)
    rows = [(p.name, p.action, p.typing, p.why) for p in planned]
    console.table(("engine", "action", "typing", "why"), rows, ratio="why")
    for item in planned:
        for line in item.notes:
            console.out(f"{item.name}: {line}")
        if item.command:
            console.out(f"{item.name}: {' '.join(item.command)}")


def print_result(result: DeviceResult, path: Path) -> None:
    """What was built and measured."""
    _device(result.backend, result.fingerprint)
    rows = [_row(engine) for engine in result.engines]
    columns = ("engine", "status", "build", "size MB", "p50 ms", "p99 ms", "SNR dB", "agree", "as asked", "higher")
    console.table(columns, rows, right=columns[2:], styles=_styles(result.engines))
    for engine in result.engines:
        if engine.status == "failed":
            console.out(f"{engine.name}: {engine.report.reason}; {engine.remedy}")
        elif engine.why:
            console.out(f"{engine.name}: built because: {engine.why}")
        if engine.evaluation is not None and not engine.evaluation.ran:
            console.out(f"{engine.name}: golden data not run: {engine.evaluation.reason}")
        elif engine.unmeasured:
            console.out(f"{engine.name}: not timed: {engine.notes[-1]}")
        for line in engine.report.problems if engine.status != "failed" else ():
            console.out(f"{engine.name}: {line}")
    how = next((engine.latency.how for engine in result.engines if engine.latency is not None), None)
    if how:
        console.out(f"latency: {how}")
    console.out(f"result: {path}")


def _device(backend: str, fingerprint: Fingerprint) -> None:
    l4t = f", L4T {fingerprint.l4t}" if fingerprint.l4t != "none" else ""
    where = f" in {fingerprint.container}" if fingerprint.container != "none" else ""
    console.out(f"{backend} on {fingerprint.device} (compute capability {fingerprint.compute_capability}{l4t}){where}")


def _row(engine: EngineResult) -> tuple[str, ...]:
    report, latency, evaluation = engine.report, engine.latency, engine.evaluation
    summary = report.summary
    return (
        engine.name,
        engine.status,
        f"{engine.seconds:.0f} s" if engine.seconds is not None else "",
        f"{report.size_bytes / 1e6:.1f}" if report.size_bytes else "",
        f"{latency.p50_ms:.3f}" if latency is not None and latency.p50_ms is not None else "",
        f"{latency.p99_ms:.3f}" if latency is not None and latency.p99_ms is not None else "",
        f"{evaluation.snr_db:.1f}" if evaluation is not None and evaluation.snr_db is not None else "",
        agreement(evaluation) if evaluation is not None else "",
        f"{summary.as_asked + summary.expected} of {summary.total}" if summary else "unknown" if report.built else "",
        str(summary.fallback + summary.possible) if summary else "",
    )


def _styles(engines: Sequence[EngineResult]) -> dict[int, str]:
    return {i: "bold red" for i, engine in enumerate(engines) if engine.status == "failed"}


def print_imported(imported: Imported) -> None:
    """The device's rows beside those of the ONNX models, on the same samples."""
    rows = []
    for report in imported.comparison.evals:
        metric = next(iter(report.metrics.items()), None)
        rows.append(
            (
                report.stage,
                f"{metric[1]:.4f}" if metric is not None and metric[1] is not None else "",
                agreement(report),
                f"{report.max_abs_error:.3g}" if report.max_abs_error is not None else "",
                "exact" if report.exact else f"{report.snr_db:.1f}" if report.snr_db is not None else "",
                report.how if report.ran else f"not run: {report.reason}",
            )
        )
    name = next((n for r in imported.comparison.evals for n in r.metrics), "metric")
    columns = ("stage", name, "agree", "max error", "SNR dB", "how")
    console.table(columns, rows, right=columns[1:5], ratio="how")
    console.out(f"written: {imported.folder / 'comparison.json'}")
    console.out(f"judge it with: deploychain gate {imported.folder}")
