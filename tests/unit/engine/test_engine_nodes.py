# ruff: noqa: E501 (lines of the real grammar are long)
"""ONNX nodes of a layer, and the ONNX file read without the onnx package."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploychain.engine.nodes import nodes_from_model, nodes_in_metadata, nodes_in_name
from deploychain.engine.onnxfile import read_onnx
from deploychain.engine.origin import module_from_scopes, module_of
from deploychain.errors import ArtifactError
from deploychain.precision import Precision

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "engine"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", ()),
        ("[ONNX Layer: a]", ("a",)),
        ("[ONNX Layer: a]\x1e[ONNX Layer: b]", ("a", "b")),
        ("[ONNX Layer: a]\x1f[ONNX Layer: b]\x1f[ONNX Layer: a]", ("a", "b")),
        ("[ONNX Layer: a]\ufffd[ONNX Layer: b]", ("a", "b")),
        ("[ONNX Layer: a][ONNX Layer: b]", ("a", "b")),  # the separator was lost in a copy
        ("[ONNX Layer: a] [ONNX Layer: b]\n", ("a", "b")),
        ("[ONNX Layer: x[0]/y]\x1e[ONNX Layer: ]]", ("x[0]/y", "]")),
        ("[ONNX Layer: a, b + c]", ("a, b + c",)),
        ("[ONNX Layer: a]\x1e[TRT: other]", ("a",)),
        (
            "[CONVOLUTION]-[aten_ops.convolution.default]-[/conv1/convolution] + [RELU]-[aten_ops.relu.default]-[/relu]",
            ("/conv1/convolution", "/relu"),
        ),
    ],
)  # fmt: skip
def test_metadata(text: str, want: tuple[str, ...]) -> None:
    assert nodes_in_metadata(text) == want


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("conv1", ("conv1",)),
        ("conv1 + relu1", ("conv1", "relu1")),
        ("a + b || c + d", ("a", "b", "c", "d")),
        ("PWN(PWN(a), b)", ("a", "b")),
        (
            "[CONV]-[aten_ops.convolution.default]-[/f/0/conv] + [RELU]-[aten_ops.relu]-[/f/1/relu]",
            ("/f/0/conv", "/f/1/relu"),
        ),
        ("PWN(sigmoid(x), mul)", ("sigmoid(x)", "mul")),
        ("conv1.weight + QuantizeLinear_7 + Conv_9", ("QuantizeLinear_7", "Conv_9")),
        ("{ForeignNode[first...last]}", ("first", "last")),
        ("{ForeignNode[gemm.bias + ONNXTRT_Broadcast_4...ONNXTRT_castHelper_9]}", ()),
        ("{a,b,c}", ("a", "b", "c")),
        ("node [profile 1]", ("node",)),
        ("(Unnamed Layer* 5) [Shuffle]", ()),
        ("Reformatting CopyNode for Input Tensor 0 to conv1", ()),
        ("__myl_Cast_myl0_1", ()),
    ],
)
def test_names_without_metadata(name: str, want: tuple[str, ...]) -> None:
    assert nodes_in_name(name) == want


def test_real_node_names_win_over_separators() -> None:
    model = {"a + b", "c", "d, e", "f..."}
    assert nodes_from_model("a + b + c", model) == ("a + b", "c")
    assert nodes_from_model("PWN(PWN(c), d, e)", model) == ("c", "d, e")
    assert nodes_from_model("{ForeignNode[c...a + b]}", model) == ("c", "a + b")
    assert nodes_from_model("x + y", model) == ()


def test_scopes_of_the_dynamo_exporter() -> None:
    assert module_from_scopes("['', 'layer1', 'layer1.0', 'conv2d']") == "layer1.0"
    assert module_of(["node_conv2d"], {"node_conv2d": "layer1.0"}) == "layer1.0"
    for bad in ("", "[", "['a']", "__import__('os').system('true')", "[1, 2]", "(" * 5000):
        assert module_from_scopes(bad) is None


def test_module_of_a_layer_skips_quantisers() -> None:
    assert module_of(["/a/aq/QuantizeLinear", "/b/c/Relu"]) == "b.c"
    assert module_of(["/a/aq/QuantizeLinear"]) == "a.aq"
    assert module_of([]) is None


def test_onnx_file() -> None:
    graph = read_onnx(GOLDEN / "guard-lone.onnx")
    assert graph.opset == 17
    assert graph.op_types["/g/guard/Conv"] == "Conv" and graph.op_types["/g/Cast"] == "Cast"
    assert dict(graph.requested) == {
        "/g/a/Conv": Precision.FP16, "/g/guard/Conv": Precision.FP32, "/g/b/Conv": Precision.FP16,
    }  # fmt: skip
    assert graph.quantised == frozenset()
    int8 = read_onnx(GOLDEN / "cnn-int8.onnx")
    assert len(int8.quantised) == 5 and "/head/Gemm" not in int8.quantised
    assert int8.requested["/stem/stem.1/Relu"] is Precision.FP32 and "/pool/MaxPool" in int8.requested


def test_onnx_file_agrees_with_the_onnx_package() -> None:
    onnx = pytest.importorskip("onnx", reason="the onnx package is optional")
    for path in sorted(GOLDEN.glob("*.onnx")):
        model = onnx.load(path)
        mine = read_onnx(path)
        assert mine.op_types == {node.name: node.op_type for node in model.graph.node if node.name}
        assert mine.opset == next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))


@pytest.mark.parametrize("keep", [1, 10, 100, 1000, 4000])
def test_cut_onnx_file(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes((GOLDEN / "guard-lone.onnx").read_bytes()[:keep])
    with pytest.raises(ArtifactError):
        read_onnx(path)
