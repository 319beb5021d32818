"""What the plan commands refuse before they do any work, and that nothing unproved is left under the output's name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

pytest.importorskip("onnxruntime", reason="needs the frameworks of the [chain] extra")
pytest.importorskip("modelopt.onnx", reason="needs ModelOpt")

from plan_models import Graph

from deploychain.backends import onnx_graph
from deploychain.errors import ArtifactError, ConfigError, StageError
from deploychain.plan import read_plan, write_plan
from deploychain.stages.plan_file import FileRequest, check_model, plan_file, sensitivity_of

pytestmark = pytest.mark.chain


def silent(step: str, done: int, total: int) -> None:
    return None


@pytest.fixture
def request_(tmp_path: Path) -> FileRequest:
    g = Graph()
    y = g.linear(g.op("Relu", g.linear("x", 8, 8, name="/a/MatMul"), name="/a/Relu"), 8, 4, name="/b/MatMul")
    onnx.save(g.model({"x": ["n", 8]}, y, ["n", 4]), tmp_path / "m.onnx")
    data = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)
    np.savez(tmp_path / "d.npz", x=data)
    return FileRequest(tmp_path / "m.onnx", tmp_path / "d.npz", prove_guards=False)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"pins": {"/none/*": "fp32"}}, r"'/none/\*' matches no node"),
        ({"pins": {"/a/*": "int8"}}, "a pin to int8 means nothing for fp16"),
        ({"pins": {"/a/*": "bf16"}}, "a pin to bf16 means nothing for fp16"),
        ({"exclude": ("/a/*",)}, "--exclude means nothing for fp16"),
        ({"exclude": ("/none/*",), "precision": "int8"}, r"'/none/\*' matches no node"),
    ],
)
def test_options_that_would_do_nothing_are_refused(request_: FileRequest, change: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        plan_file(replace(request_, **change), silent)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("option", "name", "said"),
    [
        ("output", "m.onnx", "is the model already"),
        ("output", "d.npz", "is the data already"),
        ("output", ".", "is a folder"),
        ("output", "no/such/m.onnx", "a folder that does not exist"),
        ("plan_file", "m.onnx", "is the model already"),
        ("plan_file", "m.fp16.onnx", "is the output already"),
    ],
)
def test_outputs_never_replace_what_is_read(request_: FileRequest, option: str, name: str, said: str) -> None:
    folder = request_.model.parent
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    with pytest.raises(ConfigError, match=said):
        plan_file(replace(request_, **{option: folder / name}), silent)  # type: ignore[arg-type]
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before


def test_data_that_would_be_cast_or_hold_nan_are_refused_by_file_and_name(request_: FileRequest) -> None:
    rows = np.load(request_.data)["x"]
    np.savez(request_.data, x=(rows * 10).astype(np.int8))
    with pytest.raises(ArtifactError, match=r"array 'x' holds int8, the model's input 'x' takes float32") as caught:
        plan_file(request_, silent)
    assert caught.value.where == str(request_.data) and "x.astype(numpy.float32)" in caught.value.remedy
    with pytest.raises(ArtifactError, match="holds int8"):
        sensitivity_of(request_.model, request_.data, "fp16", "node", 10, None, silent)
    rows[1, 3], rows[4, 0] = np.nan, -np.inf
    np.savez(request_.data, x=rows)
    with pytest.raises(StageError, match="input 'x' hold NaN or infinity: samples 1 and 4") as told:
        plan_file(request_, silent)
    assert told.value.where == str(request_.data)


def test_targets_that_fit_no_output_are_refused(request_: FileRequest) -> None:
    rows = np.load(request_.data)["x"]
    np.savez(request_.data, x=rows, targets=np.arange(5))
    with pytest.raises(ArtifactError, match="'targets' has 5 rows, 'x' has 6"):
        plan_file(request_, silent)
    np.savez(request_.data, x=rows, targets=np.array([0, 1, 2, 3, 4, 5]))  # four classes only
    with pytest.raises(StageError, match="top1 of the FP32 model cannot be told"):
        plan_file(request_, silent)


def test_a_plan_edited_to_an_impossible_precision_is_refused(request_: FileRequest) -> None:
    made = plan_file(request_, silent)
    plan = read_plan(made.plan_file)

    def edit(precision: str) -> None:
        nodes = tuple(replace(n, precision=precision) for n in plan.models["fp16"].nodes)
        write_plan(replace(plan, models={"fp16": replace(plan.models["fp16"], nodes=nodes)}), made.plan_file)

    edit("bf16")
    with pytest.raises(ConfigError, match="the plan says bf16 for '/a/MatMul', which can be fp32 or fp16"):
        plan_file(replace(request_, saved=made.plan_file), silent)
    edit("FP16")
    with pytest.raises(ArtifactError, match="node '/a/MatMul' has the precision 'FP16'"):
        plan_file(replace(request_, saved=made.plan_file), silent)
    edit("fp32")
    again = plan_file(replace(request_, saved=made.plan_file), silent)
    assert again.plan.drop == 0.0
    assert not any(t.data_type == TensorProto.FLOAT16 for t in onnx.load(again.output).graph.initializer)


def test_a_converted_model_that_fails_its_proof_is_not_left(
    request_: FileRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = request_.model.parent

    def broken(path: Path, *rest: object, **options: object) -> None:
        assert onnx.load(path).graph.node, "the proof is of the written file"
        raise StageError("not valid", where=str(path))

    monkeypatch.setattr(onnx_graph, "check", broken)
    kept = folder / "m.fp16.onnx"
    kept.write_bytes(b"an earlier one")
    with pytest.raises(StageError, match="not valid"):
        plan_file(request_, silent)
    assert kept.read_bytes() == b"an earlier one"
    assert sorted(p.name for p in folder.iterdir()) == ["d.npz", "m.fp16.onnx", "m.onnx"]


def test_weights_among_the_inputs_need_no_data(request_: FileRequest) -> None:
    model = onnx.load(request_.model)
    for weight in model.graph.initializer:
        model.graph.input.append(helper.make_tensor_value_info(weight.name, weight.data_type, weight.dims))
    onnx.save(model, request_.model)
    made = plan_file(request_, silent)
    assert made.plan.count("fp16") == 3
    assert [v.name for v in onnx.load(made.output).graph.input] == ["x"]


def test_unknown_words_of_the_sensitivity_command(request_: FileRequest) -> None:
    call: Callable[..., object] = sensitivity_of
    with pytest.raises(ConfigError, match="--by 'layer'"):
        call(request_.model, request_.data, "fp16", "layer", 10, None, silent)
    with pytest.raises(ConfigError, match="precision is 'fp8'"):
        call(request_.model, request_.data, "fp8", "node", 10, None, silent)


def test_a_repair_of_unnamed_nodes_is_told_only_where_it_was_made(tmp_path: Path) -> None:
    """A bias whose scale is computed cannot be folded; the scale of shape [1] beside it can."""
    f32 = np.float32
    weights = {
        "s": np.array([0.05], f32),
        "z": np.zeros(1, np.int8),
        "w": np.ones((4, 3, 3, 3), np.int8),
        "ws": np.full(4, 0.01, f32),
        "wz": np.zeros(4, np.int8),
        "b": np.ones(4, np.int32),
        "bs": np.full(4, 0.1, f32),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["dq"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["dw"], axis=0),
        helper.make_node("Abs", ["bs"], ["computed"]),
        helper.make_node("DequantizeLinear", ["b", "computed"], ["db"], axis=0),
        helper.make_node("Conv", ["dq", "dw", "db"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4, 6, 6])],
        [numpy_helper.from_array(v, k) for k, v in weights.items()],
    )
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    found, repaired = check_model(path, tmp_path / "fixed.onnx")
    assert {f.node for f in found if f.severity == "error"} == {"q", "dq", "db"}
    assert {f.node for f in repaired} == {"q", "dq"}
    with pytest.raises(ConfigError, match="the output is the input"):
        check_model(path, path)
