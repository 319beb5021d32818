"""Layer information as JSON: ``--exportLayerInfo`` and the engine inspector, TensorRT 8.2 to 11.x.

``Layers`` is a list of objects (detailed), of strings (names only) or empty (none). 10.x writes ``Bindings`` and
``Format/Datatype``; 11.x writes ``I/O Tensors`` and splits ``Format`` and ``Datatype``. Unknown keys are kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from deploychain.engine.classify import make_layer
from deploychain.engine.datatypes import tensor_precision
from deploychain.engine.model import Listing
from deploychain.precision import Precision
from deploychain.records import LayerRecord, TensorRecord

_LAYER_KEYS = ("Layers", "layers", "LayerInfo", "layerInfo")
_TYPE_KEYS = ("Format/Datatype", "Datatype", "DataType", "Format")
_READ = frozenset(
    "Name LayerType Inputs Outputs Constants Weights TacticName ParameterType Origin Metadata StreamId".split()  # noqa: SIM905
)
_MAX_DENSITY = 12  # bytes of Python objects per byte of text, estimated; TensorRT's own files stay under 8


def too_dense(text: str) -> bool:
    """Whether the text would take many times its size as objects: a guard against hostile JSON, never met otherwise."""
    if len(text) < 4096:
        return False
    cost = 64 * text.count("{") + 64 * text.count("[") + 30 * text.count('"') + 32 * text.count(",")
    return cost > _MAX_DENSITY * len(text)


@lru_cache(maxsize=8192)
def _integers(values: tuple[Any, ...]) -> tuple[int, ...] | None:
    return values if all(isinstance(v, int) for v in values) else None


def _dims(raw: Any) -> tuple[int, ...] | None:
    if not isinstance(raw, list) or len(raw) > 64:
        return None
    try:
        return _integers(tuple(raw))
    except TypeError:  # a list or an object among them
        return None


def _tensor(raw: Any) -> TensorRecord:
    if not isinstance(raw, dict):
        return TensorRecord(str(raw)[:1000], None)
    for key in _TYPE_KEYS:
        value = raw.get(key)
        if isinstance(value, str):
            dtype = tensor_precision(value)
            break
    else:
        value, dtype = "", None
    name = raw.get("Name", "")
    form = value if key == "Format/Datatype" else raw.get("Format", value)
    return TensorRecord(
        name if isinstance(name, str) else str(name)[:1000],
        dtype,
        _dims(raw.get("Dimensions")),
        form if isinstance(form, str) else value,
    )


def _tensors(raw: Any) -> tuple[TensorRecord, ...]:
    return tuple(_tensor(t) for t in raw) if isinstance(raw, list) and raw else ()


def _weights(raw: Mapping[str, Any]) -> Precision | None:
    """``Weights``, or the prefixed key of a fused type (``ConvWeights``); a Constant's ``weights`` is its content."""
    found = raw.get("Weights")
    if found is None:
        for key in raw:
            if key.endswith("Weights") and not key.startswith("Has"):
                found = raw[key]
                break
    if isinstance(found, dict):
        kind = found.get("Type")
        return tensor_precision(kind) if isinstance(kind, str) else None
    return tensor_precision(found) if isinstance(found, str) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)[:1000]


def layer_from_json(raw: Mapping[str, Any]) -> LayerRecord:
    """One object of ``Layers``."""
    stream = raw.get("StreamId")
    return make_layer(
        _text(raw.get("Name")),
        _text(raw.get("LayerType")),
        _tensors(raw.get("Inputs")),
        _tensors(raw.get("Outputs")),
        constants=_tensors(raw.get("Constants")),
        weights=_weights(raw),
        tactic=_text(raw.get("TacticName")) or None,
        parameter_type=_text(raw.get("ParameterType")),
        origin=_text(raw.get("Origin")) or None,
        metadata=_text(raw.get("Metadata")),
        stream=stream if isinstance(stream, int) else None,
        extra={k: raw[k] for k in raw if k not in _READ} or None,
    )


def named_layer(name: str) -> LayerRecord:
    """A layer of which only the name is known."""
    return make_layer(name, "")


def find_layers(document: Any) -> list[Any] | None:
    """The list of layers in a document: under one of the known keys, or the document itself."""
    if isinstance(document, Mapping):
        for key in _LAYER_KEYS:
            value = document.get(key)
            if isinstance(value, list):
                return value
            if isinstance(value, Mapping):
                return find_layers(value)
        # One layer, as the inspector's get_layer_information gives it.
        return [document] if "LayerType" in document and "Name" in document else None
    if isinstance(document, list) and document and all(isinstance(v, Mapping) for v in document[:50]):
        return document if any("LayerType" in v or "Inputs" in v for v in document[:50]) else None
    return None


def listing_from_document(document: Any, size: int = 0) -> Listing | None:
    """The listing in a parsed JSON document; None where it holds no layer information.

    ``size`` is that of the text in bytes: it bounds the layers to what a listing of that size can hold (names alone
    need fifty bytes each), so that a hostile file cannot take many times its size in memory.
    """
    raw = find_layers(document)
    if raw is None:
        return None
    names_only = bool(raw) and all(isinstance(v, str) for v in raw)
    layers: list[LayerRecord] = []
    bound = 4000 + size // 48 if size else len(raw)
    for entry in raw[:bound]:
        if isinstance(entry, dict):
            layers.append(layer_from_json(entry))
        elif isinstance(entry, str):
            layers.append(named_layer(entry))
    inputs, outputs, bindings = _network(document)
    verbosity = document.get("ProfilingVerbosity") if isinstance(document, Mapping) else None
    return Listing(
        tuple(layers),
        "names" if names_only else "json",
        inputs=inputs,
        outputs=outputs,
        bindings=bindings,
        complete=bound >= len(raw),
        verbosity=verbosity
        if isinstance(verbosity, str)
        else "names only"
        if names_only
        else "none"
        if not raw
        else "",
    )


def _network(document: Any) -> tuple[frozenset[str], frozenset[str], tuple[str, ...]]:
    if not isinstance(document, Mapping):
        return frozenset(), frozenset(), ()
    inputs: set[str] = set()
    outputs: set[str] = set()
    tensors = document.get("I/O Tensors")
    if isinstance(tensors, list):
        for tensor in tensors:
            if isinstance(tensor, Mapping) and isinstance(tensor.get("Name"), str):
                (inputs if tensor.get("IOMode") == "Input" else outputs).add(tensor["Name"])
    bindings = document.get("Bindings")
    names = tuple(b for b in bindings if isinstance(b, str)) if isinstance(bindings, list) else ()
    return frozenset(inputs), frozenset(outputs), names


def parse_layer_json(text: str) -> tuple[Listing | None, str | None]:
    """Read layer JSON, whole or cut.

    Returns:
        The listing (None where there is none), and the problem in words. A cut file gives the layers before the cut
        and ``complete=False``: it is never taken for a smaller engine.
    """
    if too_dense(text):
        return None, "not an engine's layer information: far more objects than text"
    try:
        document = json.loads(text, strict=False)
    except RecursionError:
        return None, "nested too deeply to be layer information"
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            listing = listing_from_document(json.loads(text[: error.pos], strict=False), len(text))
            if listing is not None and _START.search(text, 0, error.pos):
                return listing, "more text follows the JSON document: only the document was read"
        return _salvage(text, error)
    except ValueError as error:  # a number of more digits than Python converts
        return _salvage(text, error)
    listing = listing_from_document(document, len(text))
    if listing is not None and not listing.complete:
        return listing, "more layers than a file of this size can describe: the rest was left out"
    return listing, None if listing is not None else "JSON without a list of layers"


_START = re.compile(r'"(?:Layers|layers|LayerInfo|layerInfo)"\s*:\s*\[')


def _salvage(text: str, error: ValueError) -> tuple[Listing | None, str | None]:
    """The whole layers of a file that is cut or damaged, or that holds one object after the other."""
    found = _START.search(text)
    start = text.lstrip("\ufeff \t\r\n")[:1]
    # Without a list, one object after the other: JSON lines, or one print of each layer.
    stream = found is None and start == "{"
    at = found.end() if found else text.index("{") if stream else text.find("[") + 1
    decoder = json.JSONDecoder(strict=False)
    layers: list[LayerRecord] = []
    names = True
    while at < len(text):
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        if at >= len(text) or text[at] not in '{"':
            break
        try:
            entry, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        if isinstance(entry, Mapping):
            names = False
            layers.append(layer_from_json(entry))
        else:
            layers.append(named_layer(entry))
    if stream and at >= len(text) and layers:
        return Listing(tuple(layers), "json"), None
    cut = not text.rstrip().endswith(("}", "]"))
    what = "cut" if cut else "damaged"
    problem = f"not valid JSON ({error}): the file is {what}; {len(layers)} whole layers before that point"
    if not layers:
        return None, problem
    return Listing(tuple(layers), "names" if names else "json", complete=False), problem
