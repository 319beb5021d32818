"""Polygraphy's output: ``inspect model --show layers``, saved run and accuracy results, ``debug precision`` logs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from deploychain.engine.classify import make_layer
from deploychain.engine.datatypes import tensor_precision
from deploychain.engine.layerjson import too_dense
from deploychain.engine.model import Listing
from deploychain.engine.times import stat
from deploychain.records import LayerRecord, TensorRecord, to_json

TITLE = "==== TensorRT Engine ===="
_COUNT = re.compile(r"---- (\d{1,9}) Layer\(s\)(?: Per Profile)? ----")
_LAYER = re.compile(r"Layer (\d{1,9}) +\| (.*) \[Op: ([^\[\]]*)\]$", re.S)
_DTYPE = re.compile(r"dtype=([\w.]+)")
_SHAPE = re.compile(r"shape=\(([^()]*)\)")
_IO = re.compile(r"---- \d+ Engine (Input|Output)\(s\) ----")


def _tensor(text: str) -> TensorRecord | None:
    """One ``x [dtype=float32, shape=(1, 3), Format: Row major linear FP32]``."""
    at = text.rfind(" [dtype=")
    if at < 0:
        at = text.rfind(" [shape=")
    if at < 0:
        return TensorRecord(text, None) if text else None
    facts = text[at + 2 :].rstrip("]")
    form_at = facts.find("Format: ")
    form = facts[form_at + 8 :].split(" | ", 1)[0] if form_at >= 0 else ""
    dtype = _DTYPE.search(facts)
    shape = _SHAPE.search(facts)
    dims: tuple[int, ...] | None = None
    if shape:
        parts = [p.strip() for p in shape.group(1).split(",") if p.strip()]
        if len(parts) <= 64 and all(p.lstrip("-").isdigit() and len(p) < 19 for p in parts):
            dims = tuple(int(p) for p in parts)
    # The format names types (FP8, FP4) that Polygraphy's own table does not have.
    precision = tensor_precision(form) or (tensor_precision(dtype.group(1)) if dtype else None)
    return TensorRecord(text[:at], precision, dims, form)


class InspectReader:
    """Reads the lines after ``==== TensorRT Engine ====``; `feed` takes unindented or indented lines alike."""

    def __init__(self, max_layers: int) -> None:
        self.layers: list[LayerRecord] = []
        self.declared: int | None = None
        self.inputs: set[str] = set()
        self.outputs: set[str] = set()
        self._max = max_layers
        self._io = ""
        self._head: tuple[str, str] | None = None
        self._tensors: tuple[list[TensorRecord], list[TensorRecord]] = ([], [])
        self._side = 0
        self._facts: dict[str, str] = {}

    def feed(self, line: str) -> None:
        text = line.strip()
        layer = _LAYER.match(text)
        if layer:
            self._close()
            self._head = (layer.group(2), layer.group(3))
            return
        count = _COUNT.match(text)
        if count:
            self._io = ""
            self.declared = int(count.group(1))
            return
        io = _IO.match(text)
        if io:
            self._io = io.group(1)
            return
        if text.startswith("- Profile: "):
            self._close()
            return
        if text.startswith("----"):
            self._io = ""
            if text != "---- Attributes ----":
                self._close()
            return
        if self._io and text.startswith("{"):
            names = {t.name for t in map(_tensor, _elements(text)) if t}
            (self.inputs if self._io == "Input" else self.outputs).update(names)
        elif self._head is not None:
            self._body(text)

    def _body(self, text: str) -> None:
        if not text:
            self._close()
        elif text.startswith(("Origin = ", "Tactic = ")):
            key, _, value = text.partition(" = ")
            self._facts[key] = value
        else:
            for part in text.split("{} -> ", 1) if text.startswith("{} -> ") else [text]:
                if part.startswith("-> ") or text.startswith("{} -> "):
                    self._side = 1
                    part = part.removeprefix("-> ")
                for element in _elements(part):
                    tensor = _tensor(element)
                    if tensor is not None and len(self._tensors[self._side]) < 4096:
                        self._tensors[self._side].append(tensor)

    def _close(self) -> None:
        if self._head is not None and len(self.layers) < self._max:
            origin = self._facts.get("Origin")
            self.layers.append(
                make_layer(
                    self._head[0],
                    self._head[1],
                    tuple(self._tensors[0]),
                    tuple(self._tensors[1]),
                    origin=origin if origin not in (None, "Unknown") else None,
                )
            )
        self._head, self._tensors, self._side, self._facts = None, ([], []), 0, {}

    def finish(self) -> Listing | None:
        self._close()
        if not self.layers and self.declared is None:
            return None
        return Listing(
            tuple(self.layers),
            "polygraphy",
            inputs=frozenset(self.inputs),
            outputs=frozenset(self.outputs),
            complete=bool(self.layers) and (self.declared is None or len(self.layers) % max(self.declared, 1) == 0),
            declared=self.declared,
        )


def _elements(text: str) -> list[str]:
    """The tensors of one printed line: each stands on a line of its own in Polygraphy's layout."""
    inner = text.strip().removeprefix("{").removesuffix(",").removesuffix("}").strip()
    return [inner] if inner else []


# -- saved results ------------------------------------------------------------------------------------------------


def parse_polygraphy_json(text: str) -> tuple[str, dict[str, object], str | None]:
    """Read ``run --save-outputs/--save-results`` JSON or saved accuracy results.

    Arrays stay encoded: they are not evidence about layers. Returns the kind (``results`` or ``accuracy``; empty where
    it is neither), the facts, and a problem.
    """
    if too_dense(text):
        return "", {}, "not a Polygraphy result: far more objects than text"
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        return "", {}, f"not valid JSON ({error}): the file is cut or damaged"
    if not isinstance(document, Mapping):
        return "", {}, "not a Polygraphy result"
    name = document.get("polygraphy_class")
    entries = document.get("lst")
    if not isinstance(entries, list):
        return "", {}, f"a Polygraphy file of class {name!r}, which holds no run or accuracy result"
    if name == "RunResults":
        return "results", {"runners": [r for r in map(_runner, entries) if r]}, None
    if name == "AccuracyResult":
        return "accuracy", _accuracy([document]), None
    if name == "AccuracyResults":
        return "accuracy", _accuracy([e for e in entries if isinstance(e, Mapping)]), None
    return "", {}, f"a Polygraphy file of class {name!r}, which holds no run or accuracy result"


def _runner(entry: Any) -> dict[str, object] | None:
    if not (isinstance(entry, list) and len(entry) == 2 and isinstance(entry[1], list)):
        return None
    iterations = [it for it in entry[1] if isinstance(it, Mapping)]
    times = [it["runtime"] * 1000 for it in iterations if isinstance(it.get("runtime"), (int, float))]
    outputs: dict[str, None] = {}
    for iteration in iterations:
        found = iteration.get("outputs")
        if isinstance(found, Mapping):
            outputs.update(dict.fromkeys(str(k) for k in (found.get("dct") or found) if k != "polygraphy_class"))
    return {
        "name": str(entry[0]),
        "iterations": len(iterations),
        "outputs": list(outputs),
        "runtime_ms": to_json(stat(times)),
    }


_ERRORS = (
    "max_absdiff",
    "max_reldiff",
    "mean_absdiff",
    "mean_reldiff",
    "median_absdiff",
    "median_reldiff",
    "l2_norm",
    "cosine_similarity",
    "psnr",
    "snr",
    "lpips",
)


def _accuracy(results: list[Mapping[str, Any]]) -> dict[str, object]:
    pairs: list[dict[str, object]] = []
    for result in results:
        entries = result.get("lst")
        for entry in entries if isinstance(entries, list) else []:
            if not (isinstance(entry, list) and len(entry) == 2 and isinstance(entry[1], list)):
                continue
            names = [str(n) for n in entry[0]] if isinstance(entry[0], list) else [str(entry[0])]
            pairs.append({"runners": names, "outputs": _outputs(entry[1])})
    passed = [output["passed"] for pair in pairs for output in pair["outputs"]]  # type: ignore[attr-defined]
    return {"pairs": pairs, "passed": all(passed) if passed and None not in passed else None}


def _outputs(iterations: list[Any]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for index, iteration in enumerate(iterations):
        found = iteration.get("dct", iteration) if isinstance(iteration, Mapping) else {}
        for name, facts in found.items() if isinstance(found, Mapping) else ():
            if isinstance(facts, Mapping):
                errors = {key: facts[key] for key in _ERRORS if isinstance(facts.get(key), (int, float))}
                passed = facts.get("passed")
                passed = passed if isinstance(passed, bool) else None
            elif isinstance(facts, bool):  # old releases store a plain verdict
                errors, passed = {}, facts
            else:
                continue
            rows.append({"iteration": index, "output": str(name), "passed": passed, **errors})
    return rows


# -- debug precision ----------------------------------------------------------------------------------------------

_HIGHER = re.compile(r"Using (\S+) as higher precision")
_SELECT = re.compile(r"Selecting (first|last) (\d{1,9}) layer\(s\) to run in higher precision")
_RESULT = re.compile(r"(PASSED|FAILED) \| Iteration (\d{1,9})(?: \| Duration ([\d.eE+-]+)s)?")
_ANSWER = re.compile(r"try running the (first|last) (\d{1,9}) layer\(s\) in higher precision")
_NONE = "Could not find a configuration that satisfied accuracy requirements"
_DONE = re.compile(r"Finished (\d{1,9}) iteration\(s\) \| Passed: (\d{1,9})/(\d{1,9})")
DEBUG_HINT = re.compile(r"higher precision|\| Iteration \d|iteration\(s\) \| Passed|satisfied accuracy requirements")


class DebugPrecisionReader:
    """Follows ``polygraphy debug precision``: which layers were tried, what passed, what it advises."""

    def __init__(self) -> None:
        self.facts: dict[str, object] = {}
        self._tried: list[dict[str, object]] = []
        self._selected: tuple[str, int] | None = None

    @property
    def found(self) -> bool:
        """Whether any line of such a log was read."""
        return bool(self.facts or self._tried)

    def feed(self, text: str) -> bool:
        if not DEBUG_HINT.search(text):
            return False
        found = _HIGHER.search(text)
        if found:
            self.facts["higher_precision"] = found.group(1)
            return True
        found = _ANSWER.search(text)
        if found:
            self.facts["answer"] = {"which": found.group(1), "layers": int(found.group(2))}
            return True
        found = _SELECT.search(text)
        if found:
            self._selected = (found.group(1), int(found.group(2)))
            return True
        found = _RESULT.search(text)
        if found and len(self._tried) < 10_000:
            which, count = self._selected or ("", None)
            self._tried.append(
                {
                    "iteration": int(found.group(2)),
                    "which": which,
                    "layers": count,
                    "passed": found.group(1) == "PASSED",
                }
            )
            return True
        if _NONE in text:
            self.facts["answer"] = None
            self.facts["failed"] = True
            return True
        found = _DONE.search(text)
        if found:
            self.facts["finished"] = {"iterations": int(found.group(1)), "passed": int(found.group(2))}
            return True
        return False

    def finish(self) -> dict[str, object]:
        if self._tried:
            self.facts["tried"] = self._tried
        return self.facts
