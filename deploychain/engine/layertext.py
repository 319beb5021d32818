"""The text forms of a layer: inspector lines, TensorRT-RTX builder lines, and the verbose build list.

    Name: N, LayerType: T, Inputs: [ { Name: a, ... }], Constants: [..], Outputs: [..], TacticName: K, ..., Metadata: M
    Layer(T): N, Tactic: 0x1, a (Half[1,8:8,4,4]), b (Float[1]) -> c (Half[1,8:8,4,4])

Names are printed without quotes and may hold commas, brackets and key words, so nothing is split at commas: the
parser walks from one literal marker to the next, in the order in which TensorRT prints them. Every step is a linear
scan. Bad lines give None, never an exception.
"""

from __future__ import annotations

import re
from typing import Any

from deploychain.engine.classify import make_layer
from deploychain.engine.datatypes import tensor_precision
from deploychain.precision import Precision
from deploychain.records import LayerRecord, TensorRecord

_SECTION = re.compile(r"[\[}] ?\], (Constants|Outputs|Inputs): \[")
_END = re.compile(r"[\[}] ?\](?=, [A-Za-z]\w*: |,?\s*$)")
_DIMS = re.compile(r", (?:Location: (\w+), )?Dimensions: \[([-0-9, ]*)\]")
# Keys follow each other as ", Key: value"; a value may hold commas, so only known keys end one.
_KEY = re.compile(r"(?:^|, )([A-Z]\w*|weights|dimensions): ")
_TYPE = re.compile(r'"Type": "([^"]*)"')


def _dims(text: str) -> tuple[int, ...] | None:
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:  # "--", or more digits than an int may have
        return None


def parse_tensors(text: str) -> tuple[TensorRecord, ...]:
    """The tensors of ``{ Name: a, Location: Device, Dimensions: [1,3], Format/Datatype: Half }, { ... }``."""
    tensors: list[TensorRecord] = []
    held = ""
    for chunk in text.split("{ Name: ")[1:]:
        chunk = held + chunk
        found = None
        at = chunk.rfind(", Dimensions: [")
        if at >= 0:
            location = chunk.rfind(", Location: ", 0, at)
            start = location if location >= 0 and chunk.find(",", location + 2, at) < 0 else at
            found = _DIMS.match(chunk, start)
        if found is None:
            if len(held) < 4096:
                held = chunk + "{ Name: "  # the name itself held the marker
                continue
            held = ""
            continue
        held = ""
        tail = chunk[found.end() :]
        form, dtype = _format(tail)
        tensors.append(TensorRecord(chunk[: found.start()], dtype, _dims(found.group(2)), form))
    return tuple(tensors)


def _format(tail: str) -> tuple[str, Precision | None]:
    values: dict[str, str] = {}
    for key in ("Format/Datatype", "Datatype", "DataType", "Format"):
        at = tail.find(f", {key}: ")
        if at >= 0:
            start = at + len(key) + 4
            stop = tail.find(", Format: ", start) if key in ("Datatype", "DataType") else -1
            if stop < 0:
                stop = tail.find("}", start)
            values[key] = tail[start : stop if stop >= 0 else None].strip()
    for key in ("Format/Datatype", "Datatype", "DataType", "Format"):
        if key in values:
            return values.get("Format/Datatype") or values.get("Format") or values[key], tensor_precision(values[key])
    return "", None


def parse_layer_line(line: str) -> LayerRecord | None:
    """Read one ``Name: ...`` line of an inspector or builder dump; None where it is not a whole one."""
    if not line.startswith("Name: "):
        return None
    type_at = line.find(", LayerType: ")
    inputs_at = line.find(", Inputs: [", type_at)
    if type_at < 0 or inputs_at < 0:
        return None
    # A name that holds ", LayerType: " itself: the true one is the last before the inputs.
    type_at = line.rfind(", LayerType: ", 0, inputs_at)
    name = line[6:type_at]
    layer_type = line[type_at + 13 : inputs_at].split(",", 1)[0].strip()
    sections: dict[str, str] = {}
    key, start = "Inputs", inputs_at + len(", Inputs: [")
    while True:
        found = _SECTION.search(line, start - 1)
        if found is None or found.group(1) in sections or found.group(1) == key:
            break
        sections[key] = line[start : found.start() + 1]
        key, start = found.group(1), found.end()
    if key == "Inputs":
        return None  # cut before the outputs
    end = _END.search(line, start - 1)
    if end is None:
        return None  # cut inside the outputs
    sections[key] = line[start : end.end() - 1]
    rest = line[end.end() :].lstrip(", ")
    facts = _facts(rest)
    return make_layer(
        name,
        layer_type,
        parse_tensors(sections.get("Inputs", "")),
        parse_tensors(sections.get("Outputs", "")),
        constants=parse_tensors(sections.get("Constants", "")),
        weights=_weights(facts),
        tactic=facts.pop("TacticName", None),
        parameter_type=facts.pop("ParameterType", ""),
        origin=facts.pop("Origin", None),
        metadata=facts.pop("Metadata", ""),
        stream=_int(facts.pop("StreamId", "")),
        extra=facts or None,
    )


def _int(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isdigit() and len(text) < 10 else None


def _facts(rest: str) -> dict[str, str]:
    metadata = ""
    at = 0 if rest.startswith("Metadata:") else rest.find(", Metadata:")
    if at >= 0:
        metadata = rest[rest.index("Metadata:", at) + 9 :].strip(" \t\r\n")
        rest = rest[:at]
    facts: dict[str, str] = {}
    keys = list(_KEY.finditer(rest))
    for index, found in enumerate(keys):
        stop = keys[index + 1].start() if index + 1 < len(keys) else len(rest)
        facts.setdefault(found.group(1), rest[found.end() : stop].strip(" ,"))
    facts["Metadata"] = metadata
    return facts


def _weights(facts: dict[str, Any]) -> Precision | None:
    """The type under ``Weights``, or ``ConvWeights`` and other fused forms; a Constant's ``weights`` is its content."""
    for key in facts:
        if key == "Weights" or (key.endswith("Weights") and not key.startswith("HasSparse")):
            found = _TYPE.search(str(facts[key]))
            if found:
                return tensor_precision(found.group(1))
    return None


# -- verbose build ------------------------------------------------------------------------------------------------

_BUILD = re.compile(r"Layer\(([^()]{1,80})\): ")
_TACTIC = re.compile(r", Tactic: (-?\d{1,20}|0x[0-9a-fA-F]{1,16}), ?")
_ARROW = re.compile(r"(?:(?<=\)\])|(?<=\]\))|^) ?-> ?")
_SHAPED = re.compile(
    r" ?[\[(](Half|Float|BFloat16|BF16|FP8|FP4|E8M0|Int8|Int4|Int32|Int64|Bool|UInt8|Double|None)"
    r"[\[(]([-0-9,:# xE()]*?)[\])][\])]"
)


def parse_build_line(line: str) -> LayerRecord | None:
    """Read one ``Layer(T): ...`` line of the verbose build list (both grammars: up to 8.4, and from 8.5 on)."""
    head = _BUILD.match(line)
    if head is None:
        return None
    tactic = _TACTIC.search(line, head.end())
    if tactic is None:
        return None
    rest = line[tactic.end() :].rstrip()
    arrow = _ARROW.search(rest)
    if arrow is None:
        return None
    return make_layer(
        line[head.end() : tactic.start()],
        head.group(1),
        _shaped(rest[: arrow.start()]),
        _shaped(rest[arrow.end() :]),
        extra={"Tactic": tactic.group(1)},
    )


def _shaped(text: str) -> tuple[TensorRecord, ...]:
    tensors: list[TensorRecord] = []
    start = 0
    for found in _SHAPED.finditer(text):
        name = text[start : found.start()].removeprefix(", ")
        dims = tuple(_first_int(part) for part in found.group(2).split(",") if part)
        word = found.group(1)
        tensors.append(TensorRecord(name, tensor_precision(word), None if None in dims else dims, word))  # type: ignore[arg-type]
        start = found.end()
    return tuple(tensors)


def _first_int(text: str) -> int | None:
    # "32:8" is a dimension of 32, vectorised by 8.
    head = text.split(":", 1)[0].strip()
    return int(head) if len(head) < 19 and head.lstrip("-").isdigit() else None


# -- TensorRT-RTX and inspector blocks ----------------------------------------------------------------------------


def parse_layers_text(text: str) -> tuple[LayerRecord, ...]:
    """Read the layers of a ``Layers:`` ... ``I/O Tensors:`` text, as the builder hands it to an `ILogger`.

    For text that is known to be one such record. Files go through `deploychain.engine.evidence.read_evidence`, which
    also handles prefixes, several blocks and cut files.
    """
    layers: list[LayerRecord] = []
    pending = ""
    for line in text.split("\n"):
        line = line.rstrip("\r")
        if line.startswith("Name: "):
            pending = line
        elif pending and line and not line.startswith((" Name: ", "I/O Tensors:", "Bindings:", "Engine Metadata:")):
            pending = f"{pending}\n{line}"  # a line break inside a name
        else:
            pending = ""
            continue
        layer = parse_layer_line(pending)
        if layer is not None:
            layers.append(layer)
            pending = ""
    return tuple(layers)


def network_tensors(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The names of the network's inputs and outputs in the ``I/O Tensors:`` part of such a text."""
    inputs: set[str] = set()
    outputs: set[str] = set()
    at = text.find("I/O Tensors:")
    for line in text[at:].split("\n")[1:] if at >= 0 else ():
        found = io_tensor(line)
        if found:
            (inputs if found[1] == "Input" else outputs).add(found[0])
    return frozenset(inputs), frozenset(outputs)


def io_tensor(line: str) -> tuple[str, str] | None:
    """Name and mode of one ``Name: x, IOMode: Input, DataType: Float, ...`` line."""
    line = line.lstrip(" \t")
    at = line.rfind(", IOMode: ")
    if not line.startswith("Name: ") or at < 0:
        return None
    mode = line[at + 10 :].split(",", 1)[0].strip()
    return (line[6:at], mode) if mode in ("Input", "Output") else None
