"""Engine evidence: what TensorRT prints about a built engine, read into records and judged.

For the run chain (light imports: standard library and `deploychain.records` only):

* `parse_layers_text(text)`: layers of the TensorRT-RTX builder's ``Layers:`` ... ``I/O Tensors:`` text.
* `network_tensors(text)`: names of the network's inputs and outputs in the same text.
* `judge_layers(layers, asked, requested=None, *, pinned=(), allowed=(), quantised=(), op_types=None,
  network_io=None)`: the verdict of each layer; see its docstring for what each argument means.
* `summarise(layers)`: the counts, as a `LayerSummary`.
* `torch_module(node)`, `module_of(nodes, scopes=None)`: ONNX node name -> torch module path.

For files: `deploychain.engine.evidence.read_evidence(paths, ...)`.
"""

from __future__ import annotations

from deploychain.engine.judge import judge_layers, summarise
from deploychain.engine.layertext import network_tensors, parse_layers_text
from deploychain.engine.origin import module_of, torch_module

__all__ = ["judge_layers", "module_of", "network_tensors", "parse_layers_text", "summarise", "torch_module"]
