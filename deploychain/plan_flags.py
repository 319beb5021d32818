"""A plan for builders that are not strongly typed: TensorRT 8 to 10 build the FP32 ONNX and take precisions as options.

There the network's types do not decide; ``--fp16`` permits half everywhere, and every FP32 node has to be named in
``--layerPrecisions`` and ``--layerOutputTypes`` together with ``--precisionConstraints=obey``.
"""

from __future__ import annotations

from collections.abc import Sequence

from deploychain.plan import ModelPlan, NodePlan

_MOVES = ("integer", "quantised")
# trtexec splits its lists at these; a name that holds one cannot be written there.
_UNWRITABLE = set(",:+ \"'*")


def fp32_nodes(plan: ModelPlan) -> tuple[NodePlan, ...]:
    """The nodes that a weakly typed build must be told to keep in FP32."""
    return tuple(n for n in plan.nodes if n.precision == "fp32" and n.rule not in _MOVES)


def trtexec_options(plan: ModelPlan, source: str) -> tuple[str, tuple[str, ...]]:
    """The trtexec command (one argument per line) and the nodes whose names it cannot express."""
    wide = fp32_nodes(plan)
    written = [n.name for n in wide if not _UNWRITABLE & set(n.name)]
    unwritten = tuple(n.name for n in wide if _UNWRITABLE & set(n.name))
    flags = ["trtexec", f"--onnx={source}", "--fp16"]
    if plan.precision == "int8":
        flags.append("--int8")
    if written:
        flags.append("--precisionConstraints=obey")
        flags.append("--layerPrecisions=" + ",".join(f"{name}:fp32" for name in written))
        flags.append("--layerOutputTypes=" + ",".join(f"{name}:fp32" for name in written))
    return " \\\n  ".join(flags), unwritten


def polygraphy_script(plan: ModelPlan) -> str:
    """A network postprocess script: ``polygraphy run ... --fp16 --precision-constraints obey --pps this_file.py``."""
    names = sorted(n.name for n in fp32_nodes(plan))
    lines = "\n".join(f"    {name!r}," for name in names)
    return f'''"""Keeps {len(names)} layers in FP32. Written by deploychain plan."""

import tensorrt as trt

FP32 = {{
{lines}
}}


def postprocess(network):
    found = set()
    for layer in network:
        if layer.name not in FP32:
            continue
        found.add(layer.name)
        layer.precision = trt.float32
        for index in range(layer.num_outputs):
            if layer.get_output(index).dtype in (trt.float32, trt.float16):
                layer.set_output_type(index, trt.float32)
    missing = FP32 - found
    if missing:
        print("layers of the plan that this network does not have:", *sorted(missing), sep="\\n  ")
'''


def text_for(plan: ModelPlan, source: str) -> tuple[str, str, Sequence[str]]:
    """(trtexec text, Polygraphy script, notes) for TensorRT 8 to 10."""
    command, unwritten = trtexec_options(plan, source)
    notes = []
    if unwritten:
        notes.append(
            f"trtexec cannot name {len(unwritten)} of the FP32 nodes (a comma, colon, plus, quote or blank in the "
            f"name, {unwritten[0]!r} for one): use the Polygraphy script"
        )
    return command, polygraphy_script(plan), notes
