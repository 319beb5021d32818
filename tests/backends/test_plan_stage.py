"""The stage as the chain runs it, on files made here."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

pytest.importorskip("onnxruntime", reason="needs the frameworks of the [chain] extra")
pytest.importorskip("modelopt.onnx", reason="needs ModelOpt")

from plan_models import PLANTED, Graph

from deploychain.artifact import Artifact
from deploychain.backends import onnx_graph, onnx_ptq, onnx_range
from deploychain.console import NoProgress
from deploychain.errors import StageError
from deploychain.job import Job, StageResult
from deploychain.plan import read_plan
from deploychain.settings import PlanSettings
from deploychain.stages.plan import STAGE

pytestmark = pytest.mark.chain


def run(tmp_path: Path, files: dict[str, Path], **settings: Any) -> tuple[StageResult, Path, list[str]]:
    out, scratch = tmp_path / "out", tmp_path / "scratch"
    out.mkdir(exist_ok=True)
    scratch.mkdir(exist_ok=True)
    notes: list[str] = []
    job = Job(
        stage="plan",
        settings=PlanSettings(prove_guards=False, **settings),
        task=None,
        seed=0,
        inputs={kind: Artifact.of(kind, path) for kind, path in files.items()},
        out=out,
        scratch=scratch,
        progress=lambda label: contextlib.nullcontext(NoProgress()),
        note=notes.append,
    )
    return STAGE.run(job), out, notes


def small() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Two convolutions with a skip, pooling and a classifier."""
    g = Graph()

    def conv(x: str, inner: int, outer: int, name: str) -> str:
        w = g.random.standard_normal((outer, inner, 3, 3)) * (2 / (9 * inner)) ** 0.5
        return g.op("Conv", x, g.weight(w), g.weight(np.zeros(outer)), name=name, pads=[1, 1, 1, 1])

    stem = g.op("Relu", conv("x", 3, 8, "/stem/Conv"), name="/stem/Relu")
    body = g.op("Relu", conv(stem, 8, 8, "/body/conv1/Conv"), name="/body/Relu")
    added = g.op("Add", conv(body, 8, 8, "/body/conv2/Conv"), stem, name="/body/Add")
    pooled = g.op("Flatten", g.op("GlobalAveragePool", added, name="/pool/GlobalAveragePool"), name="/Flatten")
    y = g.op("Gemm", pooled, g.weight(g.random.standard_normal((5, 8)) * 0.5), name="/head/Gemm", transB=1)
    data = {"x": g.random.standard_normal((24, 3, 12, 12)).astype(np.float32)}
    return g.model({"x": ["batch", 3, 12, 12]}, y, ["batch", 5]), data


@pytest.fixture()
def files(tmp_path: Path) -> dict[str, Path]:
    model, data = small()
    onnx.save(model, tmp_path / "fp32.onnx")
    prepared = onnx_graph.prepare(model)
    quantised = onnx_ptq.quantise(prepared, onnx_range.measure(prepared, data).ranges)
    onnx.save(quantised.model, tmp_path / "qat.onnx")
    np.savez(tmp_path / "data.npz", **data, targets=np.zeros(24, np.int64))
    return {
        "onnx-fp32": tmp_path / "fp32.onnx",
        "onnx-qat": tmp_path / "qat.onnx",
        "data": tmp_path / "data.npz",
    }


def test_both_models_are_valid_at_their_opset_and_the_plan_names_every_node(
    files: dict[str, Path], tmp_path: Path
) -> None:
    result, out, _ = run(tmp_path, files)
    assert result.artifacts == {
        "onnx-fp16": "model.fp16.onnx",
        "onnx-int8": "model.int8.onnx",
        "precision-plan": "precision-plan.json",
    }
    plan = json.loads((out / "precision-plan.json").read_text())
    assert plan["schema"] == "deploychain.plan/1"
    for name in ("fp16", "int8"):
        made = onnx.load(out / f"model.{name}.onnx")
        onnx.checker.check_model(made, full_check=True)
        assert made.opset_import[0].version == 17
        assert made.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
        assert {v.type.tensor_type.elem_type for v in (*made.graph.input, *made.graph.output)} == {TensorProto.FLOAT}
        planned = {n["name"] for n in plan["models"][name]["nodes"]}
        assert {n.name for n in made.graph.node if n.op_type != "Cast"} == planned
    kinds = {n["name"]: n["precision"] for n in plan["models"]["int8"]["nodes"]}
    quantised = ("/stem/Conv", "/body/conv1/Conv", "/body/conv2/Conv", "/head/Gemm")
    assert {kinds[n] for n in quantised} == {"int8"}
    assert kinds["/body/Add"] == "fp16"
    assert kinds["/stem/Relu"] == "fp16"


def test_scales_are_those_of_the_quantised_model_in_fp32(files: dict[str, Path], tmp_path: Path) -> None:
    _, out, _ = run(tmp_path, files, precisions=("int8",))

    def scales(path: Path) -> dict[str, np.ndarray]:
        model = onnx.load(path)
        values = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
        return {n.name: values[n.input[1]] for n in model.graph.node if n.op_type == "QuantizeLinear"}

    before, after = scales(files["onnx-qat"]), scales(out / "model.int8.onnx")
    assert after.keys() == before.keys()
    for name, value in after.items():
        assert value.dtype == np.float32
        np.testing.assert_array_equal(value, before[name])


def test_planted_overflow_is_told_with_its_node(tmp_path: Path) -> None:
    case = PLANTED["exp_overflow"]()
    onnx.save(case.model, tmp_path / "m.onnx")
    np.savez(tmp_path / "d.npz", **case.data)
    result, out, notes = run(tmp_path, {"onnx-fp32": tmp_path / "m.onnx", "data": tmp_path / "d.npz"})
    assert any(note.startswith("fp16: error: /softmax/Exp:") and "over 65504" in note for note in notes)
    assert result.summary["fp16"]["errors"] >= 1
    node = next(n for n in read_plan(out / "precision-plan.json").models["fp16"].nodes if n.name == "/softmax/Exp")
    assert node.precision == "fp32"
    assert node.abs_max == pytest.approx(float(np.exp(_scores(case)).max()), rel=1e-3)


def _scores(case: Any) -> np.ndarray:
    weights = {t.name: numpy_helper.to_array(t) for t in case.model.graph.initializer}
    product = next(n for n in case.model.graph.node if n.op_type == "MatMul")
    return case.data["x"] @ weights[product.input[1]]


def test_pins_are_kept_and_said(files: dict[str, Path], tmp_path: Path) -> None:
    _, out, _ = run(tmp_path, files, pin={"/body/*": "fp32", "/head/Gemm": "fp16"})
    plan = read_plan(out / "precision-plan.json")
    fp16, int8 = (plan.models[n].of() for n in ("fp16", "int8"))
    assert {fp16[n] for n in ("/body/conv1/Conv", "/body/Add", "/body/conv2/Conv")} == {"fp32"}
    assert fp16["/stem/Conv"] == "fp16"
    assert int8["/body/conv1/Conv"] == "fp32"  # its quantisers are gone
    assert int8["/head/Gemm"] == "fp16"
    assert int8["/stem/Conv"] == "int8"
    reasons = {n.name: n.reason for n in plan.models["fp16"].nodes}
    assert reasons["/body/Add"] == "pinned by '/body/*'"
    left = onnx.load(out / "model.int8.onnx")
    made = {out_: n for n in left.graph.node for out_ in n.output}
    conv = next(n for n in left.graph.node if n.name == "/body/conv1/Conv")
    assert all(made[i].op_type != "DequantizeLinear" for i in conv.input if i in made)


def test_without_a_quantised_model_the_note_says_what_would_make_one(files: dict[str, Path], tmp_path: Path) -> None:
    del files["onnx-qat"]
    result, _, notes = run(tmp_path, files)
    assert "onnx-int8" not in result.artifacts
    assert any("plan.ptq" in note for note in notes)


def test_quantised_by_calibration_where_asked(files: dict[str, Path], tmp_path: Path) -> None:
    del files["onnx-qat"]
    _, out, notes = run(tmp_path, files, ptq=True)
    plan = read_plan(out / "precision-plan.json").models["int8"]
    assert sum(n.op in ("Conv", "Gemm") and n.precision == "int8" for n in plan.nodes) == 4
    assert plan.drop is not None
    assert 0 < plan.drop < 5
    assert any("quantised after training: 4 nodes" in note for note in notes)


def test_same_inputs_give_the_same_bytes(files: dict[str, Path], tmp_path: Path) -> None:
    names = ("model.fp16.onnx", "model.int8.onnx", "precision-plan.json")
    _, out, _ = run(tmp_path, files)
    first = [(out / n).read_bytes() for n in names]
    _, out, _ = run(tmp_path, files)
    assert [(out / n).read_bytes() for n in names] == first


def test_a_pin_that_matches_no_node_is_told(files: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(StageError, match=r"plan\.pin: 'no/such/\*' matches no node"):
        run(tmp_path, files, pin={"no/such/*": "fp32"})


def test_data_that_do_not_fit_are_refused(files: dict[str, Path], tmp_path: Path) -> None:
    np.savez(tmp_path / "wrong.npz", x=np.zeros((4, 1, 12, 12), np.float32))
    with pytest.raises(StageError, match="onnxruntime failed"):
        run(tmp_path, {**files, "data": tmp_path / "wrong.npz"})
    np.savez(tmp_path / "names.npz", a=np.zeros(1), b=np.zeros(1))
    with pytest.raises(StageError, match="input 'x' is not in the data, which has a, b"):
        run(tmp_path, {**files, "data": tmp_path / "names.npz"})


def _breach(files: dict[str, Path], how: str) -> None:
    """Spoil the quantised model in one way."""
    model = onnx.load(files["onnx-qat"])
    if how == "shape-1":
        name = next(n.input[1] for n in model.graph.node if n.name == "/stem/Relu_out/QuantizeLinear")
        for tensor in model.graph.initializer:
            if tensor.name in (name, name.replace("scale", "zero_point")):
                tensor.dims.append(1)
    else:
        node = next(n for n in model.graph.node if n.name == "/body/Add")
        node.input[1] = "/stem/Relu_out"
    onnx.save(model, files["onnx-qat"])


def test_scale_of_shape_1_is_found_and_repaired(files: dict[str, Path], tmp_path: Path) -> None:
    _breach(files, "shape-1")
    _, out, _ = run(tmp_path, files, precisions=("int8",))
    found = [f for f in read_plan(out / "precision-plan.json").models["int8"].findings if f.kind == "qdq"]
    assert {f.node for f in found} >= {"/stem/Relu_out/QuantizeLinear"}
    assert all("repaired" in f.remedy for f in found if f.severity != "note")
    made = onnx.load(out / "model.int8.onnx")
    values = {t.name: t for t in made.graph.initializer}
    pair = [n for n in made.graph.node if n.name.startswith("/stem/Relu_out/") and n.op_type != "Cast"]
    assert len(pair) == 2
    assert all(list(values[n.input[1]].dims) == [] for n in pair)


def test_missing_skip_quantiser_is_found(files: dict[str, Path], tmp_path: Path) -> None:
    _breach(files, "skip")
    _, out, notes = run(tmp_path, files, precisions=("int8",))
    found = read_plan(out / "precision-plan.json").models["int8"].findings
    assert any(f.kind == "qdq" and f.node == "/body/Add" and f.severity in ("error", "warning") for f in found)
    assert any("/body/Add" in note for note in notes)
