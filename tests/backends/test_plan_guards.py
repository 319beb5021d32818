"""FP32 guards against real builds: two that the builder folds away are found and repaired."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

pytest.importorskip("tensorrt_rtx", reason="TensorRT for RTX is not installed")
pytest.importorskip("modelopt.onnx", reason="needs ModelOpt")

from plan_models import Case, Graph

from deploychain.backends import guards
from deploychain.backends.ort import emulate_fp16, run_model
from deploychain.plan import ModelPlan, Plan, write_plan
from deploychain.stages.plan_file import FileRequest, plan_file
from deploychain.stages.planning import PlanRequest, make_plan

pytestmark = [pytest.mark.chain, pytest.mark.rtx]


def lone_conv() -> Case:
    """A convolution with weights over 65504 between two healthy ones."""
    g = Graph()

    def conv(x: str, inner: int, outer: int, scale: float, name: str) -> str:
        w = g.weight(g.random.standard_normal((outer, inner, 3, 3)) * scale)
        return g.op("Conv", x, w, name=name, pads=[1, 1, 1, 1])

    h = conv(conv(conv("x", 4, 16, 1e-7, "/a/Conv"), 16, 16, 2e5, "/b/Conv"), 16, 8, 0.1, "/c/Conv")
    data = g.random.standard_normal((4, 4, 16, 16)).astype(np.float32) * 100
    return Case(g.model({"x": ["n", 4, 16, 16]}, h, ["n", 8, 16, 16]), {"x": data}, "/b/Conv")


def lone_matmul() -> Case:
    """The same with matrix products."""
    g = Graph()
    h = g.linear(
        g.linear(g.linear("x", 64, 64, 1e-4, "/a/MatMul"), 64, 64, 3e4, "/b/MatMul"), 64, 64, 0.01, "/c/MatMul"
    )
    return Case(
        g.model({"x": ["n", 64]}, h, ["n", 64]),
        {"x": g.random.standard_normal((8, 64)).astype(np.float32)},
        "/b/MatMul",
    )


def plan(case: Case, tmp_path: Path, **settings: object) -> tuple[ModelPlan, Path]:
    path = tmp_path / "model.onnx"
    onnx.save(case.model, path)
    output = tmp_path / "model.fp16.onnx"
    # The neighbours stay FP16, so that the guard stands alone.
    pins = {"/a/*": "fp16", "/b/*": "fp32", "/c/*": "fp16"}
    return make_plan(PlanRequest(path, "fp16", output, case.data, pins=pins, **settings)), output  # type: ignore[arg-type]


@pytest.mark.parametrize("case", [lone_conv(), lone_matmul()], ids=["conv", "matmul"])
def test_folded_guard_is_found_and_repaired(case: Case, tmp_path: Path) -> None:
    plain, output = plan(case, tmp_path, prove_guards=False)
    assert plain.of()[case.culprit] == "fp32"
    before = guards.prove(output, {case.culprit}, {case.culprit: case.culprit.split("/")[-1]})
    assert case.culprit in before.demoted, "the builder holds it by itself: the fault is gone, this test with it"
    repaired, output = plan(case, tmp_path)
    node = next(n for n in repaired.nodes if n.name == case.culprit)
    assert (node.guard, node.anchored) == ("held", True)
    after = guards.prove(output, {case.culprit}, {case.culprit: case.culprit.split("/")[-1]})
    assert after.held == {case.culprit}
    note = next(f for f in repaired.findings if f.kind == "guard")
    assert (note.node, note.severity) == (case.culprit, "note")


def test_anchor_changes_no_value(tmp_path: Path) -> None:
    case = lone_matmul()
    _, output = plan(case, tmp_path, prove_guards=False)
    plain = run_model(emulate_fp16(onnx.load(output)), case.data)
    _, output = plan(case, tmp_path)
    model = onnx.load(output)
    assert [n.name for n in model.graph.node if n.op_type == "Clip"] == ["/b/MatMul/guard"]
    for name, value in run_model(emulate_fp16(model), case.data).items():
        np.testing.assert_array_equal(value, plain[name])


def test_reapplied_plan_keeps_its_anchors_without_building(tmp_path: Path) -> None:
    case = lone_matmul()
    made, output = plan(case, tmp_path)
    first = output.read_bytes()
    write_plan(Plan({"fp16": made}), tmp_path / "kept.yaml")
    np.savez(tmp_path / "data.npz", **case.data)
    again = plan_file(
        FileRequest(
            tmp_path / "model.onnx",
            tmp_path / "data.npz",
            output=tmp_path / "again.onnx",
            saved=tmp_path / "kept.yaml",
            prove_guards=False,
        ),
        lambda step, done, total: None,
    )
    assert again.plan.of() == made.of()
    assert again.output.read_bytes() == first


def test_without_tensorrt_the_plan_says_that_nothing_was_proved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deploychain.backends import tensorrt_flavour
    from deploychain.errors import CapabilityError

    def none(backend: str) -> str:
        raise CapabilityError("no TensorRT")

    monkeypatch.setattr(tensorrt_flavour, "choose", none)
    made, _ = plan(lone_matmul(), tmp_path)
    assert any("not proved: no TensorRT" in note for note in made.notes)
    assert {n.guard for n in made.nodes} == {""}
