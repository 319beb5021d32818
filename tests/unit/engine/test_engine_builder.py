# ruff: noqa: E501 (lines of the real grammar are long)
"""TensorRT-RTX builder text (captured from real builds) and the judgement of its layers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deploychain.engine import judge_layers, network_tensors, parse_layers_text, summarise, torch_module
from deploychain.engine.evidence import read_evidence
from deploychain.precision import Precision
from deploychain.records import EvidenceSource, LayerKind, LayerRecord, LayerVerdict

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "engine"
FP16, FP32, INT8 = Precision.FP16, Precision.FP32, Precision.INT8


def layers_of(name: str) -> tuple[LayerRecord, ...]:
    return parse_layers_text((GOLDEN / f"{name}.txt").read_text(encoding="utf-8"))


def verdicts(layers: tuple[LayerRecord, ...]) -> dict[str, LayerVerdict]:
    return {layer.name: layer.verdict for layer in layers if layer.kind in (LayerKind.COMPUTE, LayerKind.OPAQUE)}


def test_reads_every_part_of_a_line() -> None:
    layers = layers_of("rtx-guard-lone")
    assert [layer.layer_type for layer in layers] == [
        "shape_call", "kgen", "correlation", "correlation", "correlation", "kgen",
    ]  # fmt: skip
    guard = layers[3]
    assert guard.name == "__mye207_myl0_3"
    assert guard.onnx_nodes == ("/g/guard/Conv", "/g/Cast_1", "/g/Cast") and guard.nodes_from == "metadata"
    assert [(t.dtype, t.dims) for t in guard.constants] == [
        (FP16, (8, 8, 3, 3)), (FP32, (1,)), (FP32, (1,)), (FP16, (1, 8, 1, 1)),
    ]  # fmt: skip
    assert guard.inputs[0].format == "(NHWC) Channel major format" and guard.inputs[0].dims == (-1, 8, 16, 16)
    assert guard.weights is FP16 and guard.stream == 0 and guard.tactic == "__myelin_CASK_STUB"
    assert layers[0].kind is LayerKind.HELPER and layers[1].kind is LayerKind.COPY
    text = (GOLDEN / "rtx-guard-lone.txt").read_text(encoding="utf-8")
    assert network_tensors(text) == (frozenset({"x"}), frozenset({"y"}))


def test_a_lone_guard_is_found_demoted() -> None:
    requested = {"/g/a/Conv": FP16, "/g/guard/Conv": FP32, "/g/b/Conv": FP16}
    judged = judge_layers(layers_of("rtx-guard-lone"), FP16, requested)
    assert verdicts(judged) == {
        "/g/a/Conv_myl0_2": LayerVerdict.AS_ASKED,
        "__mye207_myl0_3": LayerVerdict.DEMOTED,
        "/g/b/Conv_myl0_4": LayerVerdict.AS_ASKED,
    }
    guard = judged[3]
    assert (guard.asked, guard.compute, guard.evidence) == (FP32, FP16, EvidenceSource.WEIGHTS)


def test_a_guard_that_holds_is_expected() -> None:
    requested = {"/g/a/Conv": FP16, "/g/guard/Conv": FP32, "/g/Relu": FP32, "/g/b/Conv": FP16}
    judged = judge_layers(layers_of("rtx-guard-relu"), FP16, requested)
    assert [layer.verdict for layer in judged if "/g/guard/Conv" in layer.onnx_nodes] == [LayerVerdict.EXPECTED]
    assert summarise(judged).demoted == 0


def test_a_softmax_between_casts_keeps_what_was_asked() -> None:
    judged = judge_layers(layers_of("rtx-guard-softmax"), FP16, {"/a/Conv": FP16, "/b/Conv": FP16, "/Softmax": FP32})
    (guard,) = (layer for layer in judged if "/Softmax" in layer.onnx_nodes)
    assert guard.inputs[0].dtype is FP16 and guard.outputs[0].dtype is FP16
    assert (guard.verdict, guard.compute, guard.evidence) == (LayerVerdict.EXPECTED, FP32, EvidenceSource.NETWORK)


def test_without_the_graph_the_guard_cannot_be_seen() -> None:
    judged = judge_layers(layers_of("rtx-guard-lone"), FP16)
    assert summarise(judged).as_asked == 3


QUANTISED = ["/stem/stem.0/Conv", *(f"/layer1/layer1.{b}/{c}/Conv" for b in (0, 1) for c in ("c1", "c2"))]
CNN = {
    **dict.fromkeys(QUANTISED, FP32),
    **dict.fromkeys(
        [
            "/stem/stem.1/Relu",
            *(f"/layer1/layer1.{b}/{op}" for b in (0, 1) for op in ("relu/Relu", "relu_1/Relu", "Add")),
            "/pool/MaxPool", "/ReduceMean", "/head/Gemm", "/Softmax",
        ],
        FP32,
    ),
}  # fmt: skip


def test_int8_convolutions_are_as_asked_and_requantisation_is_no_fallback() -> None:
    judged = judge_layers(layers_of("rtx-cnn-int8"), INT8, CNN, quantised=QUANTISED)
    summary = summarise(judged)
    assert (summary.as_asked, summary.fallback, summary.possible, summary.unknown) == (5, 0, 0, 0)
    conv = next(layer for layer in judged if layer.name == "/stem/stem.0/Conv_myl0_2")
    # Int8 in, Float out: the output says nothing about the convolution.
    assert [t.dtype for t in conv.outputs] == [FP32]
    assert (conv.compute, conv.evidence, conv.verdict) == (INT8, EvidenceSource.WEIGHTS, LayerVerdict.AS_ASKED)
    kernel = next(layer for layer in judged if layer.name == "__myl_MulAddReluMulMinMaxRounCast_myl0_3")
    assert "/stem/stem.0/Conv" in kernel.onnx_nodes  # it applies the bias: it is not the convolution
    assert kernel.verdict is LayerVerdict.EXPECTED
    assert next(layer for layer in judged if "/head/Gemm" in layer.onnx_nodes).verdict is LayerVerdict.EXPECTED


def test_int8_without_the_graph() -> None:
    judged = judge_layers(layers_of("rtx-cnn-int8"), INT8)
    found = verdicts(judged)
    assert found["/stem/stem.0/Conv_myl0_2"] is LayerVerdict.AS_ASKED
    assert found["__myl_MulAddReluMulMinMaxRounCast_myl0_5"] is LayerVerdict.EXPECTED
    assert found["/pool/MaxPool_myl0_12"] is LayerVerdict.FALLBACK


def test_scales_of_shape_1_cost_every_int8_kernel() -> None:
    judged = judge_layers(layers_of("rtx-cnn-int8-scale1"), INT8, CNN, quantised=QUANTISED)
    fallbacks = [layer for layer in judged if layer.verdict is LayerVerdict.FALLBACK]
    assert [layer.onnx_nodes[0] for layer in fallbacks] == QUANTISED
    assert all((layer.asked, layer.compute) == (INT8, FP32) for layer in fallbacks)
    assert sum(layer.kind is LayerKind.COPY and layer.origin == "QDQ" for layer in judged) == 10


def test_fp16_transformer_has_no_fallback() -> None:
    text = (GOLDEN / "rtx-vit-fp16.txt").read_text(encoding="utf-8")
    judged = judge_layers(parse_layers_text(text), FP16, network_io=frozenset().union(*network_tensors(text)))
    summary = summarise(judged)
    assert (summary.layers, summary.as_asked, summary.fallback, summary.unknown) == (29, 26, 0, 0)
    attention = next(layer for layer in judged if layer.name == "/m/blocks/blocks.0/MatMul_myl0_5")
    assert attention.weights is None  # alpha and beta are no weights
    assert (attention.compute, attention.evidence) == (FP16, EvidenceSource.TENSORS)


@pytest.mark.parametrize(
    ("text", "model", "asked", "want"),
    [
        ("rtx-guard-lone", "guard-lone", "fp16", {"demoted": 1, "as_asked": 2, "fallback": 0}),
        ("rtx-cnn-int8", "cnn-int8", "int8", {"as_asked": 5, "fallback": 0, "demoted": 0, "unknown": 0}),
        ("rtx-cnn-int8-scale1", "cnn-int8-scale1", "int8", {"as_asked": 0, "fallback": 5}),
    ],
)
def test_the_model_file_gives_the_request(text: str, model: str, asked: str, want: dict[str, int]) -> None:
    evidence = read_evidence([GOLDEN / f"{text}.txt"], model=GOLDEN / f"{model}.onnx", asked=asked)
    assert evidence.inputs[0].kind == "builder-text"
    summary = evidence.summary
    assert summary is not None and {key: getattr(summary, key) for key in want} == want


def test_modules() -> None:
    assert torch_module("/layer1/layer1.0/conv1/Conv") == "layer1.0.conv1"
    assert torch_module("/blocks/blocks.0/mlp/mlp.2/Mul_1") == "blocks.0.mlp.2"
    assert torch_module("/m/layer1/layer1.10/c/c.0/c.0.1/Conv") == "m.layer1.10.c.0.1"
    assert torch_module("/layer1/layer10/Conv") == "layer1.layer10"  # no dot: another module
    assert torch_module("/Softmax") == "" and torch_module("Conv_0") is None and torch_module("node_conv2d") is None
    evidence = read_evidence([GOLDEN / "rtx-guard-lone.txt"], model=GOLDEN / "guard-lone.onnx")
    assert [layer.module for layer in evidence.layers if layer.layer_type == "correlation"] == ["g.a", "g.guard", "g.b"]


def test_another_model_is_noticed() -> None:
    evidence = read_evidence([GOLDEN / "rtx-guard-lone.txt"], model=GOLDEN / "cnn-int8.onnx")
    assert any("built from another" in problem.text for problem in evidence.problems)


def test_engine_evidence_of_the_build_stage(tmp_path: Path) -> None:
    network = [
        {"name": n, "type": t, "onnx_node": n, "inputs": [d], "outputs": [d], "input_tensors": ["i"], "output_tensors": ["o"]}
        for n, t, d in (("/g/a/Conv", "CONVOLUTION", "HALF"), ("/g/guard/Conv", "CONVOLUTION", "FLOAT"), ("/g/b/Conv", "CONVOLUTION", "HALF"))
    ]  # fmt: skip
    text = (GOLDEN / "rtx-guard-lone.txt").read_text(encoding="utf-8")
    engines = [
        {"name": "fp16", "asked": "fp16", "built": True, "version": "1.7.1", "text": text, "network": network},
        {"name": "int8", "asked": "int8", "built": False, "reason": "no kernel for /x"},
    ]
    path = tmp_path / "engine-evidence.json"
    path.write_text(json.dumps({"schema": "deploychain.engine-evidence/1", "engines": engines}))
    evidence = read_evidence(path)
    assert evidence.inputs[0].kind == "engine-evidence" and [run.status for run in evidence.runs] == [
        "passed",
        "failed",
    ]
    assert evidence.summary is not None and (evidence.summary.demoted, evidence.summary.as_asked) == (1, 2)
    assert evidence.asked is FP16 and evidence.passed is False
    assert any("no kernel for /x" in problem.text for problem in evidence.problems)
    path.write_text('{"schema": "deploychain.engine-evidence/1", "engines": [{}]}')
    assert "damaged" in (read_evidence(path).inputs[0].problem or "")


def test_a_quantised_pooling_has_factors_not_weights() -> None:
    layers = layers_of("rtx-cnn-int8-fp16")
    pool = next(layer for layer in layers if layer.name == "__mye1489_pooling_myl0_4")
    assert [t.dtype for t in pool.constants] == [FP32, FP32]
    assert (pool.weights, pool.compute, pool.evidence) == (None, INT8, EvidenceSource.TENSORS)
    requested = {"/MaxPool": FP16, "/MaxPool_1": FP16, "/stem/stem.2/Relu": FP16}
    convs = ["/stem/stem.0/Conv", "/block/conv1/Conv", "/block/conv2/Conv", "/head/Gemm"]
    for asked, want in ((INT8, LayerVerdict.AS_ASKED), (FP16, LayerVerdict.EXPECTED)):
        judged = judge_layers(layers, asked, requested, quantised=convs)
        assert next(layer for layer in judged if layer.name == pool.name).verdict is want
        assert summarise(judged).fallback == 0 and summarise(judged).demoted == 0


def test_a_runtime_function_with_tensors_computes() -> None:
    layers = layers_of("rtx-zoo-fp16")
    norm = next(layer for layer in layers if layer.layer_type == "runtime_function")
    assert norm.name == "__myl_Inor_myl0_8" and norm.kind is LayerKind.COMPUTE and norm.compute is FP16
    kinds = {layer.layer_type: layer.kind for layer in layers}
    assert kinds["avgpool"] is kinds["deconv"] is kinds["runtime_fusion"] is LayerKind.COMPUTE
    summary = summarise(judge_layers(layers, FP16))
    assert (summary.compute_layers, summary.as_asked, summary.fallback) == (13, 11, 0)
