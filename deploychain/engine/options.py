"""What the options of a run say and what they mean in that version of TensorRT."""

from __future__ import annotations

import re
from collections.abc import Mapping

from deploychain.precision import Precision, parse_precision

_QUANTISED = (Precision.FP4, Precision.INT4, Precision.FP8, Precision.INT8)


def decode_version(digits: str) -> str | None:
    """The version in a banner: ``8601`` is 8.6.1, ``8410`` 8.4.10; from five digits on ``101601`` is 10.16.1."""
    if not digits.isascii() or not digits.isdigit() or not 4 <= len(digits) <= 9:
        return None
    number = int(digits)
    if len(digits) >= 5:
        return f"{number // 10000}.{number // 100 % 100}.{number % 100}"
    return f"{number // 1000}.{number // 100 % 10}.{number % 100}"


def version_key(version: str | None) -> tuple[int, ...]:
    """``(10, 16, 1)`` for ``10.16.1``; empty where unknown."""
    if not version:
        return ()
    return tuple(int(part) for part in re.findall(r"\d{1,6}", version)[:3])


def option(command: str, name: str) -> str | None:
    """The value of ``--name=value`` in an unquoted command line: up to the next `` --``; empty for a bare flag."""
    found = re.search(rf"(?:^|\s)--{re.escape(name)}(?:=(.*?))?(?=\s--|\s*$)", command)
    if found is None:
        return None
    return (found.group(1) or "").strip()


def allowed_precisions(text: str) -> tuple[frozenset[Precision], bool]:
    """``Precision:`` of the build options: what was allowed, and whether the network is strongly typed."""
    strong = "Strongly Typed" in text
    words = text.replace("(Strongly Typed)", "").replace("Strongly Typed", "")
    found = {parse_precision(part) for part in re.split(r"[+,\s]+", words) if part}
    return frozenset(p for p in found if p is not None), strong


def asked_of(allowed: frozenset[Precision], best: bool = False) -> Precision | None:
    """The one precision to judge an engine against: the lowest that was allowed.

    ``--best`` allows everything and asks for the fastest: it is judged against FP16, which every model can use.
    """
    if not allowed:
        return None
    if not best:
        for precision in _QUANTISED:
            if precision in allowed:
                return precision
    for precision in (Precision.FP16, Precision.BF16):
        if precision in allowed:
            return precision
    return min(allowed, key=lambda p: p.rank)


def asked_by_flags(command: str) -> frozenset[Precision]:
    """The precisions that flags of a command line allow; empty where none is given."""
    found = set()
    for flag, precision in (
        ("fp16", Precision.FP16),
        ("bf16", Precision.BF16),
        ("fp8", Precision.FP8),
        ("int8", Precision.INT8),
        ("int4", Precision.INT4),
    ):
        if option(command, flag) is not None:
            found.add(precision)
    if option(command, "best") is not None:
        found.update((Precision.FP16, Precision.INT8))
    return frozenset({*found, Precision.FP32}) if found else frozenset()


def layer_precisions(text: str) -> dict[str, Precision]:
    """``--layerPrecisions=conv1:fp32,*:fp16``: layer name (or pattern) -> precision. Names may hold colons."""
    pins: dict[str, Precision] = {}
    for part in text.split(",")[:10_000]:
        name, colon, word = part.rpartition(":")
        precision = parse_precision(word) if colon else None
        if precision is not None and name.strip():
            pins[name.strip().strip('"')] = precision
    return pins


def explain(
    options: Mapping[str, Mapping[str, str]], command: str, version: str | None, *, has_summary: bool, has_profile: bool
) -> list[str]:
    """What a reader of this run's numbers should know, in sentences."""
    flat = {key: value for section in options.values() for key, value in section.items()}
    major = version_key(version)[:1]
    loaded = bool(option(command, "loadEngine") or flat.get("Load engine"))
    notes: list[str] = []
    precision = flat.get("Precision")
    if loaded and (precision or asked_by_flags(command)):
        notes.append("The engine was loaded, not built: precision flags and `Precision:` have no effect on it.")
    elif precision:
        if "Strongly Typed" in precision:
            notes.append("Strongly typed: the ONNX graph decides the precision of each node, not the options.")
        elif "+" in precision:
            notes.append(f"`Precision: {precision}` is what was allowed, not what ran; the layers below say what ran.")
    verbosity = flat.get("Profiling verbosity", flat.get("NVTX verbosity"))
    if verbosity == "1":
        notes.append("Profiling verbosity 1 (none): the engine cannot list its layers; rebuild with detailed.")
    elif verbosity == "0" and not loaded:
        notes.append(
            "Profiling verbosity 0 (layer names only): the engine lists no types or tactics; "
            "build with --profilingVerbosity=detailed."
        )
    if flat.get("Calibration") in ("Dynamic", "Dynamic range"):
        notes.append(
            "INT8 without a calibration file: unless the model has Q/DQ nodes, trtexec makes the ranges up, and "
            "accuracy means nothing."
        )
    if option(command, "layerPrecisions") and option(command, "precisionConstraints") not in ("obey", "prefer"):
        notes.append("--layerPrecisions has no effect without --precisionConstraints=obey or prefer.")
    if major and major >= (11,):
        notes.append(
            "TensorRT 11 leaves data transfers out and uses CUDA graphs and spin wait by default: "
            "its latency is not comparable with a default run of 10.x or older."
        )
    elif flat.get("Data transfers") == "Disabled":
        notes.append("Data transfers were disabled: latency is GPU compute time alone.")
    if flat.get("CUDA Graph") == "Enabled" and not (major and major >= (11,)):
        notes.append("CUDA graph enabled: launch time is not part of the latency.")
    batch = flat.get("Max batch", flat.get("Batch", ""))
    if batch.isdigit() and int(batch) > 1 and has_summary:
        notes.append(f"Implicit batch {batch}: throughput counts images, not queries, per second.")
    streams = flat.get("Inference Streams", flat.get("Streams", ""))
    if streams.isdigit() and int(streams) > 1:
        notes.append(f"{streams} inference streams: latencies are not valid, throughput is.")
    if has_profile and not has_summary and version_key(version) >= (8, 4) and not (major and major >= (11,)):
        notes.append("The profiler was on, so no end-to-end timing is reported; add --separateProfileRun.")
    if has_profile and has_summary and (7,) <= version_key(version) < (8, 4):  # TensorRT-RTX counts from 1.0
        notes.append("The profiler was on during the timed run: the summary includes its synchronisation.")
    if has_profile and (flat.get("DLACore") or option(command, "useDLACore") is not None):
        notes.append("DLA: the time of a DLA subgraph is shown at the next row that waits for it, often a reformat.")
    if has_profile:
        notes.append(
            "Layer times are for shares: profiling synchronises after each layer, so their sum is not the latency."
        )
    return notes
