"""The request read from a parsed network, and engines judged from evidence. The texts follow TensorRT-RTX 1.7."""

from __future__ import annotations

from typing import Any

import pytest

from deploychain.engine.built import engine_reports, requested_precisions
from deploychain.errors import ArtifactError
from deploychain.precision import Precision
from deploychain.records import LayerVerdict


def layer(kind: str, node: str, inputs: list[str], outputs: list[str], dtype: str, **more: Any) -> dict[str, Any]:
    """A parsed layer; every tensor has the one type, unless ``outs`` says otherwise."""
    outs = more.pop("outs", dtype)
    return {
        "name": node or kind.lower(),
        "type": kind,
        "onnx_node": node,
        "inputs": [dtype] * len(inputs),
        "outputs": [outs] * len(outputs),
        "input_tensors": inputs,
        "output_tensors": outputs,
        **more,
    }


def quantised_conv(scale: list[int], weights_too: bool = True) -> list[dict[str, Any]]:
    return [
        layer("CONSTANT", "", [], ["w"], "FLOAT"),
        layer("QUANTIZE", "/c/aq/QuantizeLinear", ["x"], ["q"], "FLOAT", outs="INT8", scale_shape=scale),
        layer("DEQUANTIZE", "/c/aq/DequantizeLinear", ["q"], ["d"], "INT8", outs="FLOAT", scale_shape=scale),
        layer("QUANTIZE", "/c/wq/QuantizeLinear", ["w"], ["wq"], "FLOAT", outs="INT8", scale_shape=[1]),
        layer("DEQUANTIZE", "/c/wq/DequantizeLinear", ["wq"], ["wd"], "INT8", outs="FLOAT", scale_shape=[1]),
        layer("CONVOLUTION", "/c/Conv", ["d", "wd" if weights_too else "w"], ["c"], "FLOAT"),
        layer("ACTIVATION", "/Relu", ["c"], ["y"], "FLOAT"),
    ]


def text(*rows: tuple[str, str, str, str, str]) -> str:
    """(name, layer type, input type, output type, ONNX node) -> what the builder prints."""
    lines = [
        f"Name: {name}, LayerType: {kind}, Inputs: [ {{ Name: a{i}, Dimensions: [1,8,4,4], Strides: [128,16,4,1], "
        f"StrideOrder: [3,2,1,0], Datatype: {into}, Format: (Linear) Row major linear format }}], Constants: [ {{ "
        f"Name: k{i}, Dimensions: [8,8,3,3], Strides: [72,9,3,1], StrideOrder: [3,2,1,0], Datatype: {into}, Format: "
        f"(Linear) Row major linear format }}], Outputs: [ {{ Name: b{i}, Dimensions: [1,8], Strides: [128,16,4,1], "
        f"StrideOrder: [3,2,1,0], Datatype: {out}, Format: (Linear) Row major linear format }}], TacticName: , "
        f"StreamId: 0, Metadata: [ONNX Layer: {node}]"
        for i, (name, kind, into, out, node) in enumerate(rows)
    ]
    return "Layers:\n" + "\n".join(lines) + "\nI/O Tensors:\nName: x, IOMode: Input, DataType: Float, Dimensions: [1]\n"


def evidence(name: str, network: list[dict[str, Any]], layers: str, **more: Any) -> dict[str, Any]:
    row = {"name": name, "asked": name, "built": True, "network": network, "text": layers, **more}
    return {"schema": "deploychain.engine-evidence/1", "engines": [row]}


def test_the_network_says_what_is_asked() -> None:
    asked = requested_precisions(quantised_conv([]))
    assert asked.precision == {"/c/Conv": Precision.FP32, "/Relu": Precision.FP32}
    assert asked.quantised == {"/c/Conv"}
    assert asked.half_quantised == frozenset()
    assert asked.vector_scales == ()
    assert asked.op_types["/c/Conv"] == "Conv" and asked.op_types["/c/aq/QuantizeLinear"] == "QuantizeLinear"


def test_one_quantised_operand_is_not_int8() -> None:
    asked = requested_precisions(quantised_conv([], weights_too=False))
    assert asked.quantised == frozenset() and asked.half_quantised == {"/c/Conv"}
    (report,) = engine_reports(evidence("int8", quantised_conv([], weights_too=False), text()))
    assert any("/c/Conv: only one operand is quantised" in p for p in report.problems)


def test_a_node_of_several_layers_is_asked_for_its_widest() -> None:
    rows = [
        layer("ELEMENTWISE", "/norm/LayerNormalization", ["x"], ["a"], "HALF"),
        layer("REDUCE", "/norm/LayerNormalization", ["a"], ["b"], "FLOAT"),
        layer("SHUFFLE", "/reshape/Reshape", ["b"], ["c"], "FLOAT"),
        layer("ELEMENTWISE", "/shape/Add", ["i"], ["j"], "INT64"),
    ]
    assert requested_precisions(rows).precision == {"/norm/LayerNormalization": Precision.FP32}


def test_int8_asked_and_built() -> None:
    built = text(("/c/Conv_myl0_1", "correlation", "Int8", "Float", "/c/Conv"))
    (report,) = engine_reports(evidence("int8", quantised_conv([]), built), modules={"/c/Conv": "features.0"})
    assert [x.verdict for x in report.layers] == [LayerVerdict.AS_ASKED]
    assert report.layers[0].module == "features.0"
    assert report.summary is not None and (report.summary.total, report.summary.as_asked) == (1, 1)
    assert report.problems == ()


def test_int8_asked_and_float_built_with_the_cause() -> None:
    built = text(("/c/Conv_myl0_1", "correlation", "Float", "Float", "/c/Conv"))
    (report,) = engine_reports(evidence("int8", quantised_conv([1]), built))
    assert report.layers[0].verdict is LayerVerdict.FALLBACK
    # The weight quantiser's [1] is one output channel; only the activation's is the fault.
    assert any("/c/aq/QuantizeLinear has shape [1]" in p and "1 quantisers" in p for p in report.problems)
    (without,) = engine_reports(evidence("int8", quantised_conv([]), built))
    assert without.problems == ()


def test_a_guard_that_vanished_is_demoted() -> None:
    network = [layer("CONVOLUTION", "/guard/Conv", ["x"], ["y"], "FLOAT")]
    built = text(("__mye207_myl0_3", "correlation", "Half", "Half", "/guard/Conv"))
    (report,) = engine_reports(evidence("fp16", network, built))
    assert report.layers[0].verdict is LayerVerdict.DEMOTED
    assert report.summary is not None and report.summary.demoted == 1


def test_the_plans_reason_explains_what_the_graph_keeps() -> None:
    network = [layer("CONVOLUTION", "/guard/Conv", ["x"], ["y"], "FLOAT")]
    built = text(("/guard/Conv_myl0_3", "correlation", "Float", "Float", "/guard/Conv"))
    node = {"name": "/guard/Conv", "op": "Conv", "precision": "fp32", "reason": "values reach 91000"}
    plan = {"models": {"fp16": {"nodes": [node]}}}
    (report,) = engine_reports(evidence("fp16", network, built), plan)
    assert report.layers[0].verdict is LayerVerdict.EXPECTED
    assert report.layers[0].reason.endswith("values reach 91000")
    node["precision"] = "fp16"
    (report,) = engine_reports(evidence("fp16", network, built), plan)
    assert report.problems == ("/guard/Conv: the plan says fp16, the network that was built says fp32",)


def test_no_listing_is_no_pass() -> None:
    (report,) = engine_reports(evidence("fp16", quantised_conv([]), ""))
    assert report.built and report.summary is None and report.layers == ()
    assert "nothing is known" in report.problems[0]


def test_a_cut_line_is_counted() -> None:
    built = text(("/c/Conv_myl0_1", "correlation", "Int8", "Float", "/c/Conv"))
    cut = built.replace("\nI/O Tensors:", "\nName: /d/Conv, LayerType: correlation, Inputs: [ { Na\nI/O Tensors:")
    (report,) = engine_reports(evidence("int8", quantised_conv([]), cut))
    assert report.problems == ("1 of 2 lines of the layer listing could not be read",)
    assert not report.complete


def test_several_blocks_are_all_counted() -> None:
    first = text(("/c/Conv_myl0_1", "correlation", "Int8", "Float", "/c/Conv"))
    second = text(("/d/Conv_myl1_1", "correlation", "Float", "Float", "/d/Conv"))
    (report,) = engine_reports(evidence("int8", quantised_conv([]), first + second))
    assert len(report.layers) == 2 and report.problems == ()


def test_an_engine_that_was_not_built_keeps_its_reason() -> None:
    row = {"name": "fp16", "asked": "fp16", "built": False, "reason": "node /post/nms (NonMaxSuppression): no runners"}
    (report,) = engine_reports({"schema": "deploychain.engine-evidence/1", "engines": [row]})
    assert not report.built and report.summary is None and report.problems == (row["reason"],)


@pytest.mark.parametrize("damage", [{"schema": "other"}, {"schema": "deploychain.engine-evidence/1", "engines": [{}]}])
def test_foreign_or_damaged_evidence_is_refused(damage: dict[str, Any]) -> None:
    with pytest.raises(ArtifactError):
        engine_reports(damage)
