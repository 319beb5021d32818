"""The converted model: FP16 (or BF16) where the plan says so, through the converter of ModelOpt's AutoCast.

AutoCast's own entry points classify nodes by themselves, keep every intermediate of the calibration run in memory and
raise a Q/DQ model to opset 19. Here the plan has decided already, so only the converter is used, which keeps the
opset; at opset 17 it leaves QuantizeLinear and DequantizeLinear in FP32 between casts, the form that is legal there.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from onnx import ModelProto

from deploychain.backends.onnx_graph import count_ops, infer, remove_cast_pairs, sort_topologically
from deploychain.errors import CapabilityError, StageError


def convert(
    model: ModelProto, precisions: Mapping[str, str], *, low: str = "fp16", keep_io_types: bool = True
) -> tuple[ModelProto, int]:
    """Convert a prepared FP32 or Q/DQ model.

    Args:
        model: from `onnx_graph.prepare`; not changed.
        precisions: node name -> planned precision. ``fp32`` nodes stay; integer nodes follow by themselves.
        low: fp16 or bf16.
        keep_io_types: inputs and outputs of the network stay FP32.

    Returns:
        The converted model and the number of casts that were removed because they cancelled out.

    Raises:
        CapabilityError: nvidia-modelopt is missing.
        StageError: the converter fails; the node that its message names is given.
    """
    with _quiet():
        try:
            import modelopt.onnx.autocast.utils as utils
            from modelopt.onnx.autocast.precisionconverter import PrecisionConverter
        except ImportError as error:
            raise CapabilityError(
                f"ModelOpt AutoCast cannot be imported: {error}", remedy="pip install 'deploychain[chain]'"
            ) from None
        work = ModelProto()
        work.CopyFrom(model)
        if not work.graph.name:
            work.graph.name = "model"
        names = [n.name for n in work.graph.node]
        wide = _wide_nodes(work, precisions)
        narrow = [n for n in names if n not in set(wide)]
        try:
            values, weights, used = utils.setup_mappings(work)
            converter = PrecisionConverter(
                work,
                values,
                weights,
                used,
                keep_io_types=keep_io_types,
                low_precision_type=low,
                min_opset=max(o.version for o in work.opset_import if o.domain in ("", "ai.onnx")),
                sanitize_model=False,
            )
            made: ModelProto = converter.convert(wide, narrow)
        except Exception as error:  # ModelOpt raises bare Exceptions, KeyError, AssertionError, onnx's errors
            said = " ".join(f"{type(error).__name__}: {error}".split())[:400]
            raise StageError(
                f"ModelOpt AutoCast could not convert the model: {said}",
                where=_named_node(str(error), names),
                remedy="pin the node it names (or those around it) to fp32 and run the plan again",
            ) from None
    sort_topologically(made.graph)
    before = count_ops(made, "Cast")
    remove_cast_pairs(made)
    made.producer_name, made.producer_version = model.producer_name, model.producer_version
    return infer(made), before - count_ops(made, "Cast")


def _wide_nodes(model: ModelProto, precisions: Mapping[str, str]) -> list[str]:
    """The nodes that the converter shall leave in FP32. Shape and Size go with their input: a cast would be waste."""
    producers = {out: node.name for node in model.graph.node for out in node.output}
    wide: list[str] = []
    for node in model.graph.node:
        planned = precisions.get(node.name, "fp32")
        if node.op_type in ("Shape", "Size"):
            planned = precisions.get(producers.get(node.input[0], ""), "fp32")
        if planned == "fp32":
            wide.append(node.name)
    return wide


def _named_node(message: str, names: list[str]) -> str:
    found = [n for n in names if n and n in message]
    return max(found, key=len, default="")


@contextmanager
def _quiet() -> Iterator[None]:
    """ModelOpt logs each node through handlers of its own and warns about packages that are not needed here."""
    before = logging.root.manager.disable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.ERROR)
        try:
            yield
        finally:
            logging.disable(before)
