"""ModelOpt's quantisers behind the same placement and files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="QAT needs torch")
pytest.importorskip("modelopt.torch.quantization", reason="nvidia-modelopt is not installed")

import onnx
import qat_models
import torch
from onnx import numpy_helper

from deploychain.backends import torch_qat
from deploychain.backends.modelopt_qat import ModelOptQuantisers
from deploychain.backends.onnx_export import export
from deploychain.backends.onnx_qdq import check_qdq

pytestmark = pytest.mark.chain
IMAGES = torch.randn(64, 1, 8, 8, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def made() -> torch_qat.Quantised:
    model = qat_models.trained(qat_models.ResNet, 1, 8, 8)
    quantised = torch_qat.prepare(model, IMAGES[:2], quantisers=ModelOptQuantisers())
    torch_qat.calibrate(quantised, IMAGES.split(16), "max")
    return quantised


def test_it_has_the_scales_of_the_native_quantisers(made: torch_qat.Quantised) -> None:
    native = torch_qat.prepare(qat_models.trained(qat_models.ResNet, 1, 8, 8), IMAGES[:2])
    torch_qat.calibrate(native, IMAGES.split(16), "max")
    assert made.placement == native.placement
    theirs, ours = ({r["name"]: r["scale"] for r in torch_qat.table(q)} for q in (made, native))
    assert theirs.keys() == ours.keys()
    for name, scale in ours.items():
        assert theirs[name] == pytest.approx(scale, rel=1e-5), name


def test_the_skip_is_quantised_and_the_rest_stays_off(made: torch_qat.Quantised) -> None:
    model = made.model
    assert model.layer1[0].skip_quantizer is model.layer1[0].conv1.input_quantizer
    for name, module in model.named_modules():
        if name.endswith("output_quantizer"):
            assert not module.is_enabled, name


def test_files_rebuild_it_and_hold_no_pickle(made: torch_qat.Quantised, tmp_path: Path) -> None:
    torch_qat.save(made, tmp_path / "q.safetensors", tmp_path / "q.json")
    assert json.loads((tmp_path / "q.json").read_text())["backend"] == "modelopt"
    again = torch_qat.load_quantised(qat_models.Task(), tmp_path / "q.safetensors", tmp_path / "q.json")
    with torch.no_grad():
        assert torch.equal(again(IMAGES), made.model(IMAGES))


def test_it_exports_by_the_contract_with_its_scales(made: torch_qat.Quantised, tmp_path: Path) -> None:
    done = export(made.model, IMAGES[:2], tmp_path / "m.onnx")
    graph = onnx.load(done.path)
    assert check_qdq(graph, done.nodes) == []
    weights = {t.name: numpy_helper.to_array(t) for t in graph.graph.initializer}
    rows = {r["name"]: r["scale"] for r in torch_qat.table(made)}
    by_node = {n.name: weights[n.input[1]] for n in graph.graph.node if n.op_type == "QuantizeLinear"}
    scale = by_node["/layer1/layer1.1/conv1/weight_quantizer/QuantizeLinear"]
    assert scale.tolist() == pytest.approx(rows["layer1.1.conv1.weight_quantizer"])
    assert by_node["/stem/stem.0/input_quantizer/QuantizeLinear"].shape == ()
