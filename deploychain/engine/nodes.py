"""From a layer to the ONNX nodes that it came from."""

from __future__ import annotations

import re
from collections.abc import Collection

_MARK = "[ONNX Layer: "
# U+001E joins nodes of natively fused layers, U+001F those of Myelin; copies turn them into U+FFFD or lose them.
_SEPARATED = re.compile("\\][\x1e\x1f\ufffd]")
_TAIL = "\x1e\x1f\ufffd \t\r\n"


def nodes_in_metadata(metadata: str) -> tuple[str, ...]:
    """Node names in a ``Metadata`` text, in order, without repeats. Names may contain ``]``."""
    if _MARK not in metadata:
        return _torch_tensorrt_nodes(metadata)
    names: dict[str, None] = {}
    for chunk in metadata.split(_MARK)[1:]:
        cut = _SEPARATED.search(chunk)
        text = chunk[: cut.start()] if cut else chunk.rstrip(_TAIL).removesuffix("]")
        if text:
            names[text] = None
    return tuple(names)


def _torch_tensorrt_nodes(metadata: str) -> tuple[str, ...]:
    # Torch-TensorRT: "[CONVOLUTION]-[aten_ops.convolution.default]-[/conv1/convolution] + ..."
    if "]-[" not in metadata:
        return ()
    return tuple(
        dict.fromkeys(part.rsplit("]-[", 1)[1].rstrip(" ]") for part in metadata.split(" + ") if "]-[" in part)
    )


_OWN = re.compile(
    r"\(Unnamed Layer\* \d+\)|^(?:copied_squeeze_after|reshape_(?:before|after)|unsqueeze_node_after|squeeze_after)_"
    r"|^ONNXTRT_|^__my|^Reformatt"
)
_NOT_A_NODE = re.compile(r"\.(?:weight|bias|running_mean|running_var|scale|zero_point)$|^onnx::|_(?:weight|bias)$")
_COPY = re.compile(r"^(?:Reformatting CopyNode for |Reformatted )")


def nodes_in_name(name: str) -> tuple[str, ...]:
    """A guess at the node names in a layer's name, for engines that carry no metadata.

    ``a + b`` (vertical fusion), ``a || b`` (horizontal), ``PWN(PWN(a), b)``, ``{ForeignNode[a...b]}`` (only the two
    ends are named), ``{a,b}`` (a TensorRT 7 DLA subgraph). Weights, constants and TensorRT's own layers are dropped.
    """
    if _COPY.match(name) or name.startswith("__my") or len(name) > 20_000:
        return ()
    text = re.sub(r" \[profile \d+\]", "", name)
    if "]-[" in text and text.startswith("["):
        return _torch_tensorrt_nodes(text)
    if text.startswith("{ForeignNode[") and text.endswith("]}"):
        parts = text[len("{ForeignNode[") : -2].split("...", 1)
        pieces = [piece for part in parts for piece in part.split(" + ")]
    elif text.startswith("{") and text.endswith("}"):
        pieces = text[1:-1].split(",")
    else:
        pieces = [piece for part in text.split(" || ") for piece in _split_pointwise(part)]
    cleaned = (piece.strip() for piece in pieces)
    return tuple(dict.fromkeys(p for p in cleaned if p and not _OWN.search(p) and not _NOT_A_NODE.search(p)))


def _split_pointwise(text: str) -> list[str]:
    pieces: list[str] = []
    for piece in text.split(" + "):
        if "PWN(" in piece or piece.count(")") > piece.count("("):
            for inner in piece.replace("PWN(", "").split(", "):
                # A parenthesis closes PWN only where it has no partner inside the node's own name.
                extra = inner.count(")") - inner.count("(")
                while extra > 0 and inner.endswith(")"):
                    inner, extra = inner[:-1], extra - 1
                pieces.append(inner)
        else:
            pieces.append(piece)
    return pieces


_GENERATED_SUFFIX = re.compile(r"(?:_\d+)?_myl\d+_\d+$")


def nodes_of_layer(name: str, layer_type: str, metadata: str) -> tuple[tuple[str, ...], str]:
    """Node names and what they were read from: ``metadata``, ``name`` (a guess) or an empty string."""
    if metadata:
        nodes = nodes_in_metadata(metadata)
        if nodes:
            return nodes, "metadata"
    if layer_type in ("kgen", "gemm", "shape_call", "signal", "wait", "Constant", "NoOp"):
        return (), ""
    nodes = nodes_in_name(_GENERATED_SUFFIX.sub("", name))
    return nodes, "name" if nodes else ""


def nodes_from_model(name: str, model_nodes: Collection[str]) -> tuple[str, ...]:
    """The model's nodes that a layer's name holds, longest match first: names may contain ``" + "`` and commas.

    ``model_nodes`` should be a set or a dict: membership is tested for every run of pieces in the name.
    """
    if name in model_nodes:
        return (name,)
    text = name.replace("PWN(", "").replace("{ForeignNode[", "")
    for separator in (" + ", " || ", ", ", "..."):
        text = text.replace(separator, f"\0{separator}\0")
    pieces = text.split("\0")[:400]
    found: list[str] = []
    index = 0
    while index < len(pieces):
        for end in range(min(len(pieces), index + 9), index, -1):
            candidate = "".join(pieces[index:end]).strip()
            match = next((c for c in _without_closing(candidate) if c in model_nodes), None)
            if match is not None:
                found.append(match)
                index = end
                break
        else:
            index += 1
    return tuple(dict.fromkeys(found))


def _without_closing(text: str) -> list[str]:
    forms = [text]
    while text and text[-1] in ")]}" and len(forms) < 12:
        text = text[:-1]
        forms.append(text)
    return forms
