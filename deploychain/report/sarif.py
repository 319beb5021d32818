"""SARIF 2.1.0 of a gate, for code scanning: findings at the source line of their module, or of the limit."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from deploychain.report.text import shorten, visible
from deploychain.verdicts import Check, GateResult, Status

SCHEMA_URI = "https://json.schemastore.org/sarif-2.1.0.json"
MAX_RESULTS = 5000  # what GitHub shows of one run
_MESSAGE = 1500

Key = tuple[str | int, ...]

_RULES = {
    "retention": "The metric keeps less of its FP32 parent than the limit asks for.",
    "drop": "The metric loses more against its FP32 parent than the limit allows.",
    "regression": "The metric is worse than in the accepted baseline.",
    "floor": "The metric is beyond its absolute limit.",
    "worst-class": "One class loses more than the limit allows.",
    "agreement": "Too many samples are decided otherwise than by the parent.",
    "fallback": "A layer runs in a higher precision than asked.",
    "demoted": "A layer runs in a lower precision than asked.",
    "lost-precision": "A layer runs in a higher precision than in the accepted baseline.",
    "lowered-precision": "A layer runs in a lower precision than in the accepted baseline.",
    "lost-fusion": "A fusion of the accepted baseline is gone.",
    "new-copies": "More casts and reformats than in the accepted baseline.",
    "copies": "More casts and reformats than allowed.",
    "unknown-layers": "Layers whose precision could not be judged.",
    "latency": "Latency is beyond its limit.",
    "size": "An engine file is larger than allowed.",
    "missing": "Something that should have been measured was not.",
    "non-finite": "A metric or an output is NaN or infinite.",
    "samples": "Measured on another number of samples.",
    "units": "Two numbers of one name are in different units.",
    "baseline": "The baseline is missing, damaged, or cannot be compared with.",
}


def render(result: GateResult, *, limits_file: str = "", lines: Mapping[Key, int] | None = None) -> str:
    """The SARIF document as JSON text.

    Args:
        result: the judged run. Notes are left out: code scanning has no use for them.
        limits_file: path of the limits, relative to the repository; findings without a source line are put there.
        lines: line of each limit, by its key inside the gate section.
    """
    found = [check for check in result.findings if check.status is not Status.NOTE][:MAX_RESULTS]
    kinds = sorted({check.kind for check in found})
    document = {
        "$schema": SCHEMA_URI,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "deploychain gate",
                        "version": _version(),
                        "rules": [_rule(kind) for kind in kinds],
                    }
                },
                "columnKind": "utf16CodeUnits",
                "results": [_result(check, kinds.index(check.kind), limits_file, lines or {}) for check in found],
            }
        ],
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _version() -> str:
    try:
        return version("deploychain")
    except PackageNotFoundError:
        return "0"


def _rule(kind: str) -> dict[str, Any]:
    text = _RULES.get(kind, "A limit of the gate.")
    return {"id": f"gate/{kind}", "name": kind, "shortDescription": {"text": text}}


def _result(check: Check, index: int, limits_file: str, lines: Mapping[Key, int]) -> dict[str, Any]:
    text = check.message if check.status is Status.FAIL else f"{check.status.value}: {check.message}"
    if check.look:
        text += f" Look deeper: {check.look}"
    identity = "\0".join((check.stage, check.kind, check.metric, check.node))
    made: dict[str, Any] = {
        "ruleId": f"gate/{check.kind}",
        "ruleIndex": index,
        "level": check.level,
        "message": {"text": shorten(visible(text), _MESSAGE)},
        "locations": [_location(check, limits_file, lines)],
        "partialFingerprints": {"deploychainGate/v1": hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()},
        "properties": {"stage": visible(check.stage), "metric": visible(check.metric)},
    }
    if check.status is Status.WAIVED:
        made["suppressions"] = [{"kind": "external", "justification": shorten(visible(check.message), _MESSAGE)}]
    return made


def _location(check: Check, limits_file: str, lines: Mapping[Key, int]) -> dict[str, Any]:
    file, line = place(check, limits_file, lines)
    made: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": {"uri": _uri(file)}, "region": {"startLine": line}}
    }
    names = [("node", check.node), ("module", check.module)]
    logical = [{"fullyQualifiedName": shorten(visible(name), 500), "kind": kind} for kind, name in names if name]
    if logical:
        made["logicalLocations"] = logical
    return made


def place(check: Check, limits_file: str, lines: Mapping[Key, int]) -> tuple[str, int]:
    """File and line of a finding: the module's source, else the limit that it broke, else the top of the limits."""
    source = re.fullmatch(r"(?P<file>[^\x00-\x1f]+?):(?P<line>[1-9]\d{0,8})", check.source)
    if source:
        return source["file"], int(source["line"])
    rule = check.rule
    line = next((lines[rule[:n]] for n in range(len(rule), 0, -1) if rule[:n] in lines), 1)
    return limits_file or "pipeline.yaml", line


def _uri(file: str) -> str:
    path = PurePath(file)
    return quote(path.as_posix(), safe="/") if not path.is_absolute() else "file://" + quote(path.as_posix(), safe="/")
