"""What TensorRT-RTX builds from each breach: the statements of the findings, proved on real engines."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("tensorrt_rtx", reason="TensorRT for RTX is not installed")
pytest.importorskip("onnx", reason="the models are made with onnx")

import numpy as np
import onnx
import qdq_models as q

from deploychain.backends.onnx_qdq import check_qdq, fix_qdq

pytestmark = pytest.mark.rtx


CASES = {
    "sound": (q.chain(), "conv1", "int8"),
    "scale-of-shape-1": (q.chain(scale=[0.05]), "conv1", "fp32"),
    "activation-per-channel": (q.chain(scale=[0.05] * 16, axis=1), "conv1", "fp32"),
    "activation-only": (q.one_sided(activation=True), "conv1", "fp32"),
    "weight-only": (q.one_sided(activation=False), "conv1", "fp32"),
    "gemm-weight-only": (q.linear(activation=False), "gemm", "fp32"),
    "weight-axis-1": (q.wrong_axis(), "conv1", "fp32"),
    "conv-transpose": (q.transposed(), "deconv", "fp32"),
    "relu-between": (q.between("Relu"), "conv1", "fp32"),
    "average-pool-between": (q.between("AveragePool", kernel_shape=[2, 2], strides=[2, 2]), "conv1", "fp32"),
    "max-pool-between": (q.between("MaxPool", kernel_shape=[2, 2], strides=[2, 2]), "conv1", "int8"),
    "transpose-between": (q.between("Transpose", perm=[0, 1, 3, 2]), "conv1", "int8"),
    "concat-of-one-scale": (q.concat((0.05, 0.05), after=False), "conv3", "int8"),
    "one-output-channel": (q.weight_of_one_channel(), "conv1", "int8"),
    "int8-constant": (q.stored_int8(), "conv1", "int8"),
    "gemm": (q.linear(), "gemm", "int8"),
    "uint8": (q.chain(dtype=np.uint8), "conv1", "int8"),
    "weights-as-inputs": (q.weights_as_inputs(), "conv1", "int8"),
    "half-scales-at-19": (q.half_scales(19), "conv1", "int8"),
}


@pytest.mark.parametrize("model, node, reads", CASES.values(), ids=list(CASES))
def test_the_layer_reads_what_the_checker_says(model: onnx.ModelProto, node: str, reads: str, tmp_path: Path) -> None:
    built = q.build(model, tmp_path)
    assert built.built and built.reads[node] == reads
    silent = [f for f in check_qdq(model) if f.severity == "error" or f.kind == "conv-transpose"]
    assert bool(silent) == (reads == "fp32")


@pytest.mark.parametrize(
    "model, words",
    [
        (q.chain(zero=3), "Non-zero zero point is not supported"),
        (q.quantised_bias(), "input has type Int32"),
        (q.clipped_constant(), "only allowed before DQ"),
        (q.chain(scale=0.0), "must all be positive"),
    ],
    ids=["zero-point", "bias", "clip", "scale"],
)
def test_what_the_builder_refuses_is_an_error_here_too(model: onnx.ModelProto, words: str, tmp_path: Path) -> None:
    built = q.build(model, tmp_path)
    assert not built.built and words in built.reason
    assert any(f.severity == "error" for f in check_qdq(model))


@pytest.mark.parametrize(
    "model", [q.chain(scale=[0.05]), q.quantised_bias(), q.clipped_constant()], ids=["scale", "bias", "clip"]
)
def test_the_repaired_model_is_built_in_int8(model: onnx.ModelProto, tmp_path: Path) -> None:
    fixed, _ = fix_qdq(model)
    built = q.build(fixed, tmp_path)
    assert built.built and built.reads["conv1"] == "int8"


@pytest.mark.parametrize("backend", ["native", "modelopt"])
def test_every_layer_of_an_own_qat_export_is_built_in_int8(backend: str, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="QAT needs torch")
    if backend == "modelopt":
        pytest.importorskip("modelopt.torch.quantization", reason="nvidia-modelopt is not installed")
    import qat_models
    import torch

    from deploychain.backends import torch_qat
    from deploychain.backends.onnx_export import export

    images = torch.randn(8, 1, 8, 8)
    made = torch_qat.prepare(
        qat_models.trained(qat_models.ResNet, 1, 8, 8), images[:2], quantisers=torch_qat.quantisers_of(backend)
    )
    torch_qat.calibrate(made, [images])
    done = export(made.model, images[:2], tmp_path / "m.onnx")
    graph = onnx.load(done.path)
    built = q.build(graph, tmp_path, "built")
    matrix = [n.name for n in graph.graph.node if n.op_type in ("Conv", "Gemm")]
    assert len(matrix) == 7 and {built.reads[name] for name in matrix} == {"int8"}
    # The skip of the first block travels as INT8 beside the output of the second convolution.
    (line,) = [x for x in built.layers if x.startswith("kgen") and "/layer1/layer1.0/Add" in x]
    reads, writes = line.split(" -> ")
    assert "'int8'" in reads and writes.startswith("['int8']")


@pytest.mark.parametrize("skip, outputs", [(True, ["int8"]), (False, ["int8", "fp32"])])
def test_an_unquantised_skip_keeps_a_second_copy(skip: bool, outputs: list[str], tmp_path: Path) -> None:
    built = q.build(q.residual(skip), tmp_path)
    (line,) = [x for x in built.layers if "relu0" in x]
    assert line.split(" -> ")[1].startswith(str(outputs))
