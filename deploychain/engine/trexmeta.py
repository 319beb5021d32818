"""Metadata that TREx makes from a trtexec log: options, device and summary, with values cut at the first colon."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from deploychain.engine.layerjson import too_dense
from deploychain.engine.model import Run, Stat
from deploychain.engine.options import allowed_precisions, asked_of, layer_precisions

SECTIONS = ("performance_summary", "build_options", "device_information", "inference_options", "model_options")
_TITLES = {
    "model_options": "Model Options",
    "build_options": "Build Options",
    "inference_options": "Inference Options",
    "device_information": "Device Information",
}


def parse_trex_metadata(text: str, path: str) -> tuple[Run | None, str | None]:
    """Read TREx build or profile metadata into the part of a run that it describes."""
    if too_dense(text):
        return None, "not TREx metadata: far more objects than text"
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        return None, f"not valid JSON ({error}): the file is cut or damaged"
    if not isinstance(document, Mapping) or not any(key in document for key in SECTIONS):
        return None, "not TREx metadata"
    options = {
        title: {str(k): str(v) for k, v in document[key].items()}
        for key, title in _TITLES.items()
        if isinstance(document.get(key), Mapping)
    }
    build, device = options.get("Build Options", {}), options.get("Device Information", {})
    allowed, strong = allowed_precisions(build.get("Precision", ""))
    if build.get("Load engine"):
        allowed = frozenset()
    summary = document.get("performance_summary")
    summary = summary if isinstance(summary, Mapping) else {}
    stats = {str(k): stat for k, v in summary.items() if (stat := _stat(v)) is not None}
    throughput = summary.get("Throughput")
    return (
        Run(
            path=path,
            status="unknown",
            tool="TREx metadata",
            options=options,
            device=device.get("Selected Device") or None,
            compute_capability=device.get("Compute Capability") or None,
            asked=None if strong else asked_of(allowed),
            allowed=frozenset() if strong else allowed,
            asked_from="TREx build metadata" if allowed and not strong else "",
            strongly_typed=strong,
            pinned=layer_precisions(build.get("LayerPrecisions", "")),
            throughput_qps=float(throughput) if isinstance(throughput, (int, float)) else None,
            latency=stats.get("Latency"),
            gpu=stats.get("GPU Compute Time"),
            stats=stats,
            notes=("TREx cuts option values at the first colon.",),
        ),
        None,
    )


def _stat(values: Any) -> Stat | None:
    """``[min, max, mean, median, percentile...]``: one percentile is the 99th (8.4), three are 90, 95 and 99."""
    if not isinstance(values, list) or len(values) < 4 or not all(isinstance(v, (int, float)) for v in values):
        return None
    numbers = [float(v) for v in values]
    tops = numbers[4:]
    names = {1: (99.0,), 3: (90.0, 95.0, 99.0)}.get(len(tops), ())
    return Stat(numbers[0], numbers[1], numbers[2], numbers[3], dict(zip(names, tops, strict=False)))
