"""What a file is, by its content: names lie (layer JSON is kept in .log, .txt and .graph.json files)."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

from deploychain.engine.chainfile import parse_engine_evidence
from deploychain.engine.layerjson import parse_layer_json
from deploychain.engine.log import read_log
from deploychain.engine.model import FileKind, FileReading, Listing
from deploychain.engine.packed import text_size
from deploychain.engine.polygraphy import parse_polygraphy_json
from deploychain.engine.profiles import parse_profile_json
from deploychain.engine.textfile import LineSource, detect_encoding, read_head, read_text
from deploychain.engine.times import parse_times
from deploychain.engine.trexmeta import SECTIONS, parse_trex_metadata
from deploychain.errors import ArtifactError

_LOG_START = re.compile(r"\[(?:\d\d/\d\d/\d{4}-|[FEWIVXS]\] |TRT\] |TensorRT\] )")
_JSON_START = re.compile(r'\{\s*["}]|\[\s*[\[\]{"]')
_PROFILE = re.compile(r'\[\s*\{\s*"count"\s*:|"timeMs"\s*:')
_TIMES = re.compile(r'"(?:computeMs|latencyMs|startComputeMs)"\s*:')
_LAYERS = re.compile(r'"(?:Layers|layers|LayerInfo|layerInfo)"\s*:\s*[\[{]|"LayerType"\s*:')
_TREX = re.compile("|".join(rf'"{name}"\s*:\s*\{{' for name in SECTIONS))
# Binary files that people pass by mistake, by their first bytes.
_BINARY = (
    (b"PK\x03\x04", "a zip archive (a PyTorch checkpoint?)"),
    (b"\x1f\x8b", "a gzip archive inside a gzip archive: unpack it first"),
    (b"BZh", "a bzip2 archive: unpack it first"),
    (b"\xfd7zXZ\x00", "an xz archive: unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive: unpack it first"),
    (b"ftrt", "a TensorRT engine: only TensorRT itself can list its layers (trtexec --exportLayerInfo)"),
    (b"ptrt", "a TensorRT plan: only TensorRT itself can list its layers (trtexec --exportLayerInfo)"),
    (b"\x89PNG", "an image"),
    (b"%PDF", "a PDF document"),
    (b"\x7fELF", "a program"),
)
# An ONNX file begins with the fields ir_version (1) and producer_name (2), or its graph (7).
_ONNX = re.compile(rb"\x08[\x03-\x20](?:\x12[\x00-\x7f][ -~]|\x3a)")
_HTML = re.compile(r"<(?:!doctype\s+html|html)\b", re.I)
_ESCAPED_JSON = re.compile(r"[\[{\s]{1,80}&quot;")
_MAX_JSON = 1 << 30
_OBJECT = re.compile(r'\{\s*"(?:Layers|ProfilingVerbosity)"\s*:')


def read_file(path: Path) -> FileReading:
    """Read one file of any kind. Never raises for its content: what is wrong stands in ``problem``."""
    try:
        if path.is_dir():
            return FileReading(str(path), "other", "a folder: name the files in it")
        size = text_size(path)
        return _read(path, read_head(path), size)
    except ArtifactError as error:
        return FileReading(str(path), "other", error.message)
    except OSError as error:
        return FileReading(str(path), "other", f"cannot be read: {error.strerror or error}")


def _read(path: Path, head: bytes, size: int) -> FileReading:
    if not head:
        return FileReading(str(path), "other", "the file is empty")
    for magic, what in _BINARY:
        if head.startswith(magic):
            return FileReading(str(path), "other", f"not text: {what}")
    if _ONNX.match(head):
        return FileReading(str(path), "other", "an ONNX model: pass it with --model")
    encoding = detect_encoding(head)
    start = head.decode(encoding, errors="replace").lstrip("\ufeff \t\r\n")
    if encoding == "utf-8" and head[:4096].count(0) > 8 and not _LOG_START.search(start):
        return FileReading(str(path), "other", "not text: a binary file (an engine or a model?)")
    if _JSON_START.match(start) and not start.startswith('{"log":') and not _ESCAPED_JSON.match(start):
        refused = _json(path, start[:65536])
        if refused.kind != "other" or start.lstrip("[ \r\n\t").startswith("{"):
            return refused
    source = LineSource(path, head)
    reading = read_log(source, size)
    if reading.facts.get("embedded_json"):
        reading = _embedded(source, reading)
    if reading.kind == "other" and _HTML.match(start):
        return replace(reading, problem="an HTML page: save the text of the log, or the JSON file itself")
    if reading.kind == "other" and _ESCAPED_JSON.match(start):
        return replace(reading, problem="JSON that was escaped for HTML (&quot;): save it unescaped")
    if source.escaped and reading.kind != "other":
        return replace(reading, notes=(*reading.notes, "The text was escaped for HTML (&gt;): it was read unescaped."))
    return reading


def _embedded(source: LineSource, reading: FileReading) -> FileReading:
    """Layer JSON that a script printed among other lines."""
    text = "\n".join(map(source.clean, read_text(source.path, _MAX_JSON).split("\n")))
    found = _OBJECT.search(text)
    if found is None:
        return reading
    body = text[found.start() :]
    try:
        _, end = json.JSONDecoder(strict=False).raw_decode(body)
        body = body[:end]
    except (ValueError, RecursionError):
        pass  # cut, or not JSON after all: the reader below says which
    listing, problem = parse_layer_json(body)
    if listing is None:
        return reading
    kind: FileKind = "graph" if reading.kind == "other" else reading.kind
    return replace(reading, kind=kind, listing=listing, problem=problem if problem else None)


def _json(path: Path, start: str) -> FileReading:
    name = str(path)
    if '"polygraphy_class"' in start or start.lstrip("{ \r\n\t").startswith('"lst"'):
        return _polygraphy(path)
    if _PROFILE.search(start[:4096]):
        profile, problem = parse_profile_json(read_text(path, _MAX_JSON))
        return FileReading(name, "profile", problem, profile=profile)
    if _TIMES.search(start[:4096]):
        times, problem = parse_times(read_text(path, _MAX_JSON))
        kind: FileKind = "times" if times else "other"
        return FileReading(name, kind, problem, times=times, notes=times.notes if times else ())
    if _TREX.search(start):
        run, problem = parse_trex_metadata(read_text(path, _MAX_JSON), name)
        return FileReading(name, "trex-metadata" if run else "other", problem, runs=(run,) if run else ())
    text = read_text(path, _MAX_JSON)
    if '"deploychain.engine-evidence/' in start[:300]:
        runs, problem = parse_engine_evidence(text, name)
        return FileReading(name, "engine-evidence" if runs else "other", problem, runs=runs)
    if _LAYERS.search(start) or _LAYERS.search(text):
        listing, problem = parse_layer_json(text)
        if listing is not None:
            return FileReading(name, "graph", problem or _listing_problem(listing), listing=listing)
        return FileReading(name, "graph" if "cut" in (problem or "") else "other", problem)
    if '"values"' in start and '"dimensions"' in start:
        return FileReading(name, "outputs", "output values (--exportOutput): they say nothing about layers or time")
    if '"polygraphy_class"' in text:
        return _polygraphy(path)
    return FileReading(
        name,
        "other",
        "JSON that is none of layer information, profile, query times or TREx metadata",
    )


def _listing_problem(listing: Listing) -> str | None:
    if not listing.layers:
        return (
            "the list of layers is empty (profiling verbosity none): precision is unknown; "
            "build with --profilingVerbosity=detailed"
        )
    if listing.names_only:
        return "layer names only (default verbosity): precision is unknown; build with --profilingVerbosity=detailed"
    return None


def _polygraphy(path: Path) -> FileReading:
    kind, facts, problem = parse_polygraphy_json(read_text(path, _MAX_JSON))
    if not kind:
        return FileReading(str(path), "other", problem)
    full: FileKind = "polygraphy-results" if kind == "results" else "polygraphy-accuracy"
    return FileReading(str(path), full, problem, facts=facts)
