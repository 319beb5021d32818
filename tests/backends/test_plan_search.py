"""The search over real model runs: 500 nodes, 3 planted culprits, at most 60 evaluations."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxruntime", reason="needs the frameworks of the [chain] extra")

from deploychain.backends import onnx_graph
from deploychain.backends.onnx_emulate import Emulator
from deploychain.numerics.drop import Yardstick
from deploychain.numerics.search import Journal, smallest_kept

pytestmark = pytest.mark.chain

SCRIPT = Path(__file__).parents[2] / "scripts" / "bench_plan.py"


def deep_model() -> tuple[onnx.ModelProto, set[str]]:
    spec = importlib.util.spec_from_file_location("bench_plan", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: tuple[onnx.ModelProto, set[str]] = module.deep((5, 70, 110))
    return made


def test_three_culprits_among_500_nodes_without_any_hint() -> None:
    model, culprits = deep_model()
    prepared = onnx_graph.prepare(model)
    infos = onnx_graph.node_infos(prepared)
    assert len(infos) >= 500
    assert len(culprits) == 3
    data = {"x": np.random.default_rng(2).standard_normal((16, 32)).astype(np.float32)}
    emulator = Emulator(prepared, infos, data)
    yardstick = Yardstick(emulator.outputs(frozenset()))
    every = frozenset(i.name for i in infos)
    order = sorted(every)  # by name: nothing of the culprits' nature is in the order
    journal = Journal(lambda kept: yardstick.drop(emulator.outputs(every - kept)))
    found = smallest_kept(order, journal, 0.5)
    assert set(found.kept) == culprits
    assert found.evaluations <= 60
    assert emulator.runs == found.evaluations + 1
    assert found.drop <= 0.5 < found.drop_without
