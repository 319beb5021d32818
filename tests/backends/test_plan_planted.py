"""Every planted fault is found by node name, and the plan repairs it; six healthy networks have no finding."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxruntime", reason="needs the frameworks of the [chain] extra")
pytest.importorskip("modelopt.onnx", reason="needs ModelOpt")

from plan_models import PLANTED, healthy

from deploychain.backends.ort import emulate_fp16, run_model
from deploychain.numerics.drop import relative_error
from deploychain.plan import ModelPlan
from deploychain.stages.planning import PlanRequest, make_plan

pytestmark = pytest.mark.chain

# What a rounding emulation cannot show: accumulation and squares inside an operator stay FP32 there, AutoCast's
# converter raises a vanishing constant to 6e-8, and a grid is judged by its coordinates' error, not by noise.
NOT_BROKEN_BY_EMULATION = {"long_sum", "cumulative_drift", "norm_of_many", "wide_grid", "vanishing_eps"}


def plan_of(path: Path, data: dict[str, np.ndarray]) -> ModelPlan:
    return make_plan(PlanRequest(path, "fp16", path.with_suffix(".fp16.onnx"), data, prove_guards=False))


def all_low(path: Path, data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The model with every node in FP16, whatever its values are."""
    from deploychain.backends import autocast, onnx_graph

    model = onnx_graph.prepare(onnx_graph.load(path))
    converted, _ = autocast.convert(model, {n.name: "fp16" for n in model.graph.node})
    return run_model(emulate_fp16(converted), data)


@pytest.mark.parametrize("name", PLANTED)
def test_planted_fault_is_found_and_repaired(name: str, tmp_path: Path) -> None:
    case = PLANTED[name]()
    path = tmp_path / f"{name}.onnx"
    onnx.save(case.model, path)
    plan = plan_of(path, case.data)
    serious = [f for f in plan.findings if f.severity in ("error", "warning")]
    assert serious, "nothing was found"
    assert serious[0].node == case.culprit
    assert any(f.node == case.culprit and f.kind == case.kind for f in serious)
    precision = plan.of()
    assert precision[case.culprit] == "fp32"
    if name == "not_finite":
        return
    reference = run_model(path, case.data)
    planned = relative_error(run_model(emulate_fp16(onnx.load(path.with_suffix(".fp16.onnx"))), case.data), reference)
    assert planned < 0.01
    assert plan.drop == pytest.approx(100 * planned, rel=1e-3, abs=1e-6)
    if name not in NOT_BROKEN_BY_EMULATION:
        assert not relative_error(all_low(path, case.data), reference) < 5 * planned, "the fault does no harm"


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[Path, dict[str, np.ndarray]]]]:
    pytest.importorskip("torch", reason="the healthy networks are exported from torch")
    yield healthy(tmp_path_factory.mktemp("healthy"))


@pytest.mark.parametrize("name", ["resnet", "vit", "unet", "neck", "lstm", "encoder"])
def test_healthy_network_has_no_finding(name: str, networks: dict[str, tuple[Path, dict[str, np.ndarray]]]) -> None:
    path, data = networks[name]
    plan = plan_of(path, data)
    assert [f for f in plan.findings if f.severity in ("error", "warning")] == []
    wide = [n for n in plan.nodes if n.precision == "fp32" and n.rule != "operator"]
    assert wide == []
    made = onnx.load(path.with_suffix(".fp16.onnx"))
    assert made.opset_import[0].version == 17
    onnx.checker.check_model(made, full_check=True)
    assert [i.type.tensor_type.shape.dim[0].dim_param for i in made.graph.input] == ["batch"]
    kinds = {n.name: n.op_type for n in made.graph.node}
    assert {n.name for n in plan.nodes if n.op != "Cast"} <= kinds.keys()


def test_network_border_stays_fp32_and_weights_become_fp16(
    networks: dict[str, tuple[Path, dict[str, np.ndarray]]],
) -> None:
    path, data = networks["resnet"]
    plan_of(path, data)
    made = onnx.load(path.with_suffix(".fp16.onnx"))
    borders = [v.type.tensor_type.elem_type for v in (*made.graph.input, *made.graph.output)]
    assert borders == [onnx.TensorProto.FLOAT] * 2
    assert {t.data_type for t in made.graph.initializer if t.dims} == {onnx.TensorProto.FLOAT16}


def test_grid_stays_fp32_with_the_nodes_that_compute_it(tmp_path: Path) -> None:
    case = PLANTED["wide_grid"]()
    path = tmp_path / "grid.onnx"
    onnx.save(case.model, path)
    precision = plan_of(path, case.data).of()
    assert precision == {"/warp/Add": "fp32", "/warp/GridSample": "fp32"}


def test_non_finite_values_are_traced_to_their_first_node(tmp_path: Path) -> None:
    case = PLANTED["not_finite"]()
    path = tmp_path / "nan.onnx"
    onnx.save(case.model, path)
    found = [f for f in plan_of(path, case.data).findings if f.kind == "non-finite"]
    assert [(f.node, f.severity) for f in found] == [("/bad/Sqrt", "error")]
