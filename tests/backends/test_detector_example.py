"""The detector example: exact boxes, a real mAP, and a plan that keeps the grid in FP32 at every size."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import onnx
import pytest

pytest.importorskip("onnxruntime", reason="needs the frameworks of the [chain] extra")
pytest.importorskip("modelopt.onnx", reason="needs ModelOpt")
pytest.importorskip("pycocotools", reason="the detector's metric is pycocotools' mAP")

from deploychain.backends import guards, onnx_graph
from deploychain.backends.ort import emulate_fp16, run_model
from deploychain.numerics.drop import relative_error
from deploychain.stages.planning import PlanRequest, make_plan

torch = pytest.importorskip("torch", reason="needs the frameworks of the [chain] extra")
pytestmark = pytest.mark.chain

FILE = Path(__file__).parents[2] / "pipelines" / "detector" / "task.py"


@pytest.fixture(scope="module")
def task() -> ModuleType:
    spec = importlib.util.spec_from_file_location("detector_task_under_test", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_boxes_are_exact_and_the_same_every_time(task: ModuleType) -> None:
    one, again = (task.composite("train", 12, seed=5) for _ in range(2))
    assert torch.equal(one.tensors[0], again.tensors[0])
    for boxes, labels in zip(one.targets["boxes"], one.targets["labels"], strict=True):
        found = boxes[labels >= 0]
        assert len(found) >= 1
        x1, y1, x2, y2 = found.T
        assert ((x1 >= 0) & (y1 >= 0) & (x2 <= task.WIDTH) & (y2 <= task.HEIGHT) & (x1 < x2) & (y1 < y2)).all()
        assert (x1[1:] >= x2[:-1]).all()  # side by side, never over each other


def test_perfect_outputs_have_a_map_of_one_and_shifted_ones_do_not(task: ModuleType) -> None:
    data = task.composite("test", 10, seed=3)
    size = torch.Size((task.HEIGHT // task.STRIDE, task.WIDTH // task.STRIDE))
    label, edges = task.assign(data.targets["boxes"], data.targets["labels"], size)
    scores = torch.full((10, task.CLASSES, *size), -9.0)
    inside = label >= 0
    scores.scatter_(1, label.clamp(min=0)[:, None], torch.where(inside, 9.0, -9.0)[:, None])
    targets = {k: v.numpy() for k, v in data.targets.items()}
    detector = task.DetectorTask()
    perfect = detector.metrics({"scores": scores.numpy(), "edges": edges.numpy()}, targets)
    assert perfect["map"] == pytest.approx(1.0, abs=1e-6)
    moved = edges.clone()
    moved[:, 0] -= 3  # the left edge 12 pixels too far right
    shifted = detector.metrics({"scores": scores.numpy(), "edges": moved.numpy()}, targets)
    assert shifted["map"] < 0.5
    assert detector.metrics({"scores": scores.numpy() * 0 - 50, "edges": edges.numpy() * 0}, targets)["map"] == 0.0


@pytest.fixture(scope="module")
def exported(task: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    torch.manual_seed(0)
    network = task.Detector().eval()
    torch.nn.init.normal_(network.align.flow.weight, std=0.1)  # an untrained flow is zero
    path = tmp_path_factory.mktemp("detector") / "detector.onnx"
    axes = {"image": {0: "batch", 2: "height", 3: "width"}}
    axes |= {name: {0: "batch", 2: "cells_high", 3: "cells_wide"} for name in ("scores", "edges")}
    torch.onnx.export(
        network,
        (torch.zeros(2, 1, task.HEIGHT, task.WIDTH),),
        str(path),
        dynamo=False,
        opset_version=17,
        input_names=["image"],
        output_names=["scores", "edges"],
        dynamic_axes=axes,
    )
    return network, path


def test_export_follows_batch_height_and_width(exported: tuple[Any, Path]) -> None:
    network, path = exported
    for shape in ((1, 1, 48, 320), (3, 1, 32, 640), (2, 1, 96, 64)):
        x = torch.randn(shape)
        with torch.no_grad():
            expected = {k: v.numpy() for k, v in network(x).items()}
        assert relative_error(run_model(path, {"image": x.numpy()}), expected) < 1e-5


def test_plan_keeps_the_grid_in_fp32_and_says_why(task: ModuleType, exported: tuple[Any, Path], tmp_path: Path) -> None:
    _, path = exported
    data = {"image": task.composite("train", 8, seed=1).tensors[0].numpy()}
    output = tmp_path / "fp16.onnx"
    plan = make_plan(PlanRequest(path, "fp16", output, data, prove_guards=False))
    nodes = {n.name: n for n in plan.nodes}
    assert nodes["/align/GridSample"].precision == "fp32"
    assert "over 256 wide" in nodes["/align/GridSample"].reason
    added = next(n for n in plan.nodes if n.op == "Add" and n.module == "align")
    assert added.precision == "fp32"
    grid = next(f for f in plan.findings if f.kind == "grid")
    assert grid.node == "/align/GridSample"
    # The sampled map is smooth (enlarged four times), so that coarse coordinates would cost little: a note.
    assert grid.severity == "note"
    assert "dB from FP32" in grid.detail
    assert {n.precision for n in plan.nodes if n.op == "Conv" and n.module != "align.flow"} == {"fp16"}
    other = {"image": task.composite("test", 2, seed=9).tensors[0].numpy()[:, :, :, :256]}
    assert relative_error(run_model(emulate_fp16(onnx.load(output)), other), run_model(path, other)) < 0.01


@pytest.mark.rtx
def test_both_engines_build(task: ModuleType, exported: tuple[Any, Path], tmp_path: Path) -> None:
    pytest.importorskip("tensorrt_rtx", reason="TensorRT for RTX is not installed")
    _, path = exported
    data = {"image": task.composite("train", 8, seed=1).tensors[0].numpy()}
    for precision in ("fp16", "int8"):
        output = tmp_path / f"{precision}.onnx"
        plan = make_plan(PlanRequest(path, precision, output, data, prove_guards=False, ptq=True))
        grid = {n.name for n in plan.nodes if n.op == "GridSample"}
        proof = guards.prove(output, grid, dict.fromkeys(grid, "GridSample"), shapes={"image": (8, 1, 48, 320)})
        assert proof.built, proof.reason
        assert not proof.demoted
        if precision == "int8":
            assert sum(n.op == "Conv" and n.precision == "int8" for n in plan.nodes) >= 12
            assert onnx_graph.count_ops(onnx.load(output), "QuantizeLinear") > 20
