"""The table of where accuracy went, down to the node, on a run folder made here."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxruntime", reason="needs the frameworks of the [chain] extra")
pytest.importorskip("modelopt.onnx", reason="needs ModelOpt")

from plan_models import PLANTED

from deploychain.plan import Plan, write_plan
from deploychain.precision import Precision
from deploychain.records import (
    COMPARISON_SCHEMA,
    Comparison,
    EngineReport,
    EvalReport,
    LayerKind,
    LayerRecord,
    LayerVerdict,
    Provenance,
    to_json,
)
from deploychain.stages.attribution import attribute
from deploychain.stages.plan_data import Calibration
from deploychain.stages.planning import PlanRequest, make_plan

pytestmark = pytest.mark.chain


@pytest.fixture()
def run(tmp_path: Path) -> tuple[Path, dict[str, np.ndarray]]:
    """A run whose FP16 model lost accuracy because every node was pinned to FP16."""
    case = PLANTED["variance_by_difference"]()
    (tmp_path / "export").mkdir()
    (tmp_path / "plan").mkdir()
    source = tmp_path / "export" / "model.fp32.onnx"
    onnx.save(case.model, source)
    request = PlanRequest(source, "fp16", tmp_path / "plan" / "model.fp16.onnx", case.data, pins={"*": "fp16"})
    write_plan(Plan({"fp16": make_plan(request)}), tmp_path / "plan" / "precision-plan.json")
    layer = LayerRecord(
        "kernel",
        "kgen",
        LayerKind.COMPUTE,
        compute=Precision.FP16,
        verdict=LayerVerdict.AS_ASKED,
        onnx_nodes=("/variance/Sub",),
    )
    comparison = Comparison(
        COMPARISON_SCHEMA,
        Provenance(),
        (
            EvalReport("train-fp32", True, metrics={"top1": 0.9}, relative_error=0.0),
            EvalReport("onnx-fp16", True, metrics={"top1": 0.6}, relative_error=2.0),
        ),
        (EngineReport("fp16", Precision.FP16, True, layers=(layer,)),),
    )
    (tmp_path / "comparison.json").write_text(json.dumps(to_json(comparison)))
    return tmp_path, case.data


def test_the_worst_step_and_its_nodes(run: tuple[Path, dict[str, np.ndarray]]) -> None:
    folder, data = run
    found = attribute(folder, Calibration(data))
    assert found.steps.worst == "onnx-fp16"
    costs = {n.node: n for n in found.nodes}
    assert costs["/shift/Add"].alone is not None
    assert costs["/variance/Sub"].alone is not None
    assert costs["/shift/Add"].alone < 1 < costs["/variance/Sub"].alone
    node = costs["/variance/Sub"]
    assert (node.planned, node.built, node.verdict) == ("fp16", "fp16", "as-asked")
    assert "pinned" in node.reason
    assert (costs["/first/Mul"].built, costs["/first/Mul"].verdict) == ("", "unknown")
    assert found.evaluations == 1 + 2 * len(found.nodes)


def test_without_data_the_steps_stand_alone(run: tuple[Path, dict[str, np.ndarray]]) -> None:
    folder, _ = run
    found = attribute(folder, None)
    assert found.steps.worst == "onnx-fp16"
    assert found.nodes == ()
    assert "no data" in found.note
