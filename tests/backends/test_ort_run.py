"""Running models over arrays: batches, names, types, quantised models unfused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="needs the [chain] extra")
pytest.importorskip("onnxruntime", reason="needs the [chain] extra")
import onnx
import onnxruntime as ort
from onnx import parser

from deploychain.backends.ort import open_session, placement, run_model, session_options
from deploychain.errors import ArtifactError, StageError

pytestmark = pytest.mark.chain


def model(text: str) -> onnx.ModelProto:
    return parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> ' + text)


TWO = model("g (float[N,2] x) => (float[N,2] y, int64[N,1] k) { y = Neg(x)  k = ArgMax <axis = 1> (x) }")


def test_batches_are_joined_in_order() -> None:
    x = np.arange(14, dtype=np.float32).reshape(7, 2)
    got = run_model(TWO, {"x": x}, batch_size=3)
    assert got["y"].tolist() == (-x).tolist()
    assert got["k"].dtype == np.int64 and got["k"].tolist() == [[1]] * 7


def test_fixed_batch_pads_and_drops_the_padding() -> None:
    fixed = model("g (float[4,2] x) => (float[4,2] y) { y = Neg(x) }")
    x = np.arange(12, dtype=np.float32).reshape(6, 2)
    assert run_model(fixed, {"x": x}, batch_size=100)["y"].tolist() == (-x).tolist()


def test_input_without_a_sample_axis_is_passed_whole() -> None:
    scaled = model("g (float[N,2] x, float[2] s) => (float[N,2] y) { y = Mul(x, s) }")
    x = np.ones((5, 2), np.float32)
    got = run_model(scaled, {"x": x, "s": np.array([2, 3], np.float32)}, batch_size=2)["y"]
    assert got.tolist() == [[2.0, 3.0]] * 5


def test_output_without_a_sample_axis_is_refused() -> None:
    total = model("g (float[N,2] x) => (float y) { y = ReduceSum <keepdims = 0> (x) }")
    with pytest.raises(StageError, match="'y' cannot be joined"):
        run_model(total, {"x": np.ones((5, 2), np.float32)}, batch_size=2)


def test_doubles_are_converted_and_wrong_types_named() -> None:
    assert run_model(TWO, {"x": np.ones((1, 2), np.float64)})["y"].dtype == np.float32
    with pytest.raises(StageError, match="'x' is tensor\\(float\\), the data are int64"):
        run_model(TWO, {"x": np.ones((1, 2), np.int64)})


def test_missing_input_is_named_with_what_there_is() -> None:
    with pytest.raises(StageError, match="'x' are not in the data, which has 'image'"):
        run_model(TWO, {"image": np.ones((1, 2), np.float32)})


def test_wrong_rank_is_named() -> None:
    with pytest.raises(StageError, match="'x' has shape"):
        run_model(TWO, {"x": np.ones(2, np.float32)})


def test_damaged_file_is_an_artefact_error(tmp_path: Path) -> None:
    path = tmp_path / "cut.onnx"
    path.write_bytes(TWO.SerializeToString()[:-20])
    with pytest.raises(ArtifactError, match=r"cut\.onnx.*cannot open"):
        run_model(path, {"x": np.ones((1, 2), np.float32)})


def test_run_failure_carries_the_node() -> None:
    bad = model("g (float[N,M] x) => (float[N,K] y) <int64[2] shape = {-1, 3}> { y = Reshape(x, shape) }")
    bad.graph.node[0].name = "/neck/Reshape"
    with pytest.raises(StageError, match="/neck/Reshape"):
        run_model(bad, {"x": np.ones((1, 2), np.float32)})


def test_quantised_operators_are_not_fused(tmp_path: Path) -> None:
    quantised = model(
        """g (float[N,64] x) => (float[N,1] y) <float s = {1.0}, uint8 z = {0}, int8 zw = {0}> {
          w = Constant <value = int8[64,1] {WEIGHTS}> ()
          q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)
          e = DequantizeLinear(w, s, zw)  y = MatMul(d, e)
        }""".replace("WEIGHTS", ", ".join(["127"] * 64))
    )
    # Integer kernels on a CPU without VNNI add pairs in int16: 255 * 127 * 2 saturates there.
    assert run_model(quantised, {"x": np.full((1, 64), 255, np.float32)})["y"].tolist() == [[64 * 255 * 127.0]]

    def operators(options: ort.SessionOptions) -> set[str]:
        options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
        ort.InferenceSession(quantised.SerializeToString(), options)
        return {n.op_type for n in onnx.load(tmp_path / "optimised.onnx").graph.node}

    assert "MatMulIntegerToFloat" in operators(ort.SessionOptions())
    assert operators(session_options()) == {"QuantizeLinear", "DequantizeLinear", "MatMul"}


def test_placement_counts_the_nodes_that_ran(tmp_path: Path) -> None:
    assert placement(TWO, {"x": np.ones((2, 2), np.float32)}, tmp_path, cuda=False) == {"CPUExecutionProvider": 2}
    assert not list(tmp_path.iterdir())
    assert open_session(TWO).get_providers() == ["CPUExecutionProvider"]
