"""Exported files: valid at their opset, equal to torch at other sizes, their Q/DQ scales those of the quantisers."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="export needs torch")
pytest.importorskip("onnxruntime", reason="the file is proved with onnxruntime")
pytest.importorskip("safetensors", reason="weights are safetensors")

import numpy as np
import onnx
import onnxruntime
import qat_models
import torch
from onnx import numpy_helper
from safetensors.torch import save_file
from torch import Tensor, nn

from deploychain.artifact import Artifact
from deploychain.backends import onnx_graph, torch_qat
from deploychain.backends.onnx_export import export
from deploychain.console import NoProgress
from deploychain.job import Job
from deploychain.settings import ExportSettings
from deploychain.stages.export import STAGE

pytestmark = pytest.mark.chain
IMAGES = torch.randn(16, 1, 8, 8, generator=torch.Generator().manual_seed(0))


def dims(value: onnx.ValueInfoProto) -> list[str | int]:
    return [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]


def run(path: Path, feed: dict[str, Tensor]) -> list[np.ndarray]:
    """onnxruntime with its defaults, apart from the module under test."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, {k: v.numpy() for k, v in feed.items()})


def test_a_plain_model_at_a_batch_size_that_nobody_tried(tmp_path: Path) -> None:
    model = qat_models.trained(qat_models.ResNet, 1, 8, 8)
    done = export(model, IMAGES[:2], tmp_path / "m.onnx")
    graph = onnx.load(done.path)
    assert [(o.domain, o.version) for o in graph.opset_import] == [("", 17)]
    assert [(v.name, dims(v)) for v in graph.graph.input] == [("image", ["batch", 1, 8, 8])]
    assert [(v.name, dims(v)) for v in graph.graph.output] == [("output", ["batch", 10])]
    with torch.no_grad():
        expected = model(IMAGES[:7]).numpy()
    assert np.allclose(run(done.path, {"image": IMAGES[:7]})[0], expected, rtol=1e-4, atol=1e-5)
    assert [c.sizes["batch"] for c in done.proof.checks] == [2, 1, 5]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx"]


def test_every_node_is_mapped_to_a_module_that_exists(tmp_path: Path) -> None:
    model = qat_models.trained(qat_models.ResNet, 1, 8, 8)
    done = export(model, IMAGES[:2], tmp_path / "m.onnx")
    modules = dict(model.named_modules())
    assert set(done.nodes) == {n.name for n in onnx.load(done.path).graph.node}
    assert set(done.nodes.values()) <= set(modules)
    assert done.nodes["/layer1/layer1.1/conv2/Conv"] == "layer1.1.conv2"
    assert done.nodes["/layer1/layer1.1/relu_1/Relu"] == "layer1.1.relu"  # the second call of one module
    assert done.nodes["/layer1/layer1.0/Add"] == "layer1.0"


def test_modules_of_shared_quantisers_exist(tmp_path: Path) -> None:
    made = torch_qat.prepare(qat_models.trained(qat_models.UNet, 1, 8, 8), IMAGES[:2])
    torch_qat.calibrate(made, [IMAGES])
    done = export(made.model, IMAGES[:2], tmp_path / "m.onnx")
    assert set(done.nodes.values()) <= {n for n, _ in made.model.named_modules(remove_duplicate=False)}


def test_an_example_of_one_sample_is_traced_with_two(tmp_path: Path) -> None:
    model = qat_models.trained(qat_models.ResNet, 1, 8, 8)
    done = export(model, IMAGES[:1], tmp_path / "m.onnx")
    assert sorted(c.sizes["batch"] for c in done.proof.checks) == [1, 2, 5]


@pytest.mark.parametrize("kind", [qat_models.ResNet, qat_models.UNet])
def test_scales_in_the_file_are_those_of_the_quantisers(kind: type[nn.Module], tmp_path: Path) -> None:
    made = torch_qat.prepare(qat_models.trained(kind, 1, 8, 8), IMAGES[:2])
    torch_qat.calibrate(made, [IMAGES])
    done = export(made.model, IMAGES[:2], tmp_path / "m.onnx")
    graph = onnx.load(done.path).graph
    weights = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    in_file: dict[str, list[np.ndarray]] = {"activation": [], "weight": []}
    for node in graph.node:
        if node.op_type == "QuantizeLinear":
            side = "weight" if node.input[0] in weights else "activation"
            in_file[side].append(weights[node.input[1]])
            assert not weights[node.input[2]].any() and weights[node.input[2]].dtype == np.int8
    rows = torch_qat.table(made)
    for side, arrays in in_file.items():
        wanted = {tuple(np.float32(r["scale"])) for r in rows if r["kind"] == side}
        assert {tuple(a.reshape(-1)) for a in arrays} == wanted
        assert {a.ndim for a in arrays} == ({0} if side == "activation" else {1})
    # One INT8 tensor for all readers: as many activation pairs as (tensor, quantiser) combinations.
    operands = sum(s.kind == "concat" for s in made.placement.sites)
    assert len(in_file["activation"]) == len(made.activations) + max(operands - 1, 0) + (1 if operands else 0)


def test_excluded_modules_have_no_q_dq(tmp_path: Path) -> None:
    made = torch_qat.prepare(qat_models.trained(qat_models.ResNet, 1, 8, 8), IMAGES[:2], ["layer1.1.conv*"])
    torch_qat.calibrate(made, [IMAGES])
    done = export(made.model, IMAGES[:2], tmp_path / "m.onnx")
    graph = onnx.load(done.path).graph
    producers = {o: n for n in graph.node for o in n.output}
    for node in graph.node:
        if node.op_type == "Conv":
            quantised = [
                producers.get(name) is not None and producers[name].op_type == "DequantizeLinear"
                for name in node.input[:2]
            ]
            assert quantised == ([False] * 2 if done.nodes[node.name].startswith("layer1.1.conv") else [True] * 2)


class _Two(nn.Module):
    """Two inputs, two outputs: one keeps height and width, the other has the batch only."""

    def __init__(self, form: type) -> None:
        super().__init__()
        self.conv, self.form = nn.Conv2d(1, 4, 3, padding=1), form

    def forward(self, image: Tensor, gain: Tensor):  # type: ignore[no-untyped-def]
        y = self.conv(image) * gain[:, :, None, None]
        down = nn.functional.max_pool2d(y, 2)
        return {"features": down, "score": y.mean((1, 2, 3))} if self.form is dict else (down, y.mean((1, 2, 3)))


@pytest.mark.parametrize("form", [dict, tuple])
def test_several_inputs_and_outputs_with_dynamic_height_and_width(form: type, tmp_path: Path) -> None:
    values = {"image": IMAGES[:2], "gain": torch.rand(2, 1)}
    names = ("features", "score") if form is dict else ("output", "output_1")
    image = {0: "batch", 2: "height", 3: "width"}
    axes = {"image": image, "gain": {0: "batch"}, names[0]: {0: "batch"}, names[1]: {-1: "batch"}}
    model = _Two(form).eval()
    example = values if form is dict else tuple(values.values())
    done = export(model, example, tmp_path / "m.onnx", dynamic_axes=axes)
    graph = onnx.load(done.path).graph
    assert [v.name for v in graph.output] == list(names)
    assert dims(graph.input[0]) == ["batch", 1, "height", "width"]
    # Half of a dynamic size: no invented name of the exporter is left.
    assert dims(graph.output[0]) == ["batch", 4, f"{names[0]}_2", f"{names[0]}_3"]
    assert dims(graph.output[1]) == ["batch"]
    seen = {label: {c.sizes[label] for c in done.proof.checks} for label in ("batch", "height", "width")}
    assert all(len(sizes) >= 3 for sizes in seen.values())
    feed = {"image": torch.randn(3, 1, 14, 6), "gain": torch.rand(3, 1)}
    with torch.no_grad():
        outputs = model(**feed)
    expected = list(outputs.values()) if form is dict else list(outputs)
    for got, wanted in zip(run(done.path, feed), expected, strict=True):
        assert np.allclose(got, wanted.numpy(), rtol=1e-4, atol=1e-5)


class _TopK(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(6, 9)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        values, indices = self.head(x).topk(3)
        return values, indices


def test_invented_dimensions_become_what_they_are(tmp_path: Path) -> None:
    done = export(_TopK().eval(), torch.randn(4, 6), tmp_path / "m.onnx", output_names=("scores", "labels"))
    graph = onnx.load(done.path).graph
    assert {v.name: dims(v) for v in graph.output} == {"scores": ["batch", 3], "labels": ["batch", 3]}
    assert done.proof.checks[0].relative_error["labels"] == 0  # integers are compared element by element


def test_everything_fixed_when_no_axis_is_dynamic(tmp_path: Path) -> None:
    done = export(qat_models.UNet().eval(), IMAGES[:2], tmp_path / "m.onnx", dynamic_axes={})
    graph = onnx.load(done.path).graph
    assert dims(graph.input[0]) == [2, 1, 8, 8] and dims(graph.output[0]) == [2, 4, 8, 8]
    assert len(done.proof.checks) == 1


def test_weights_over_the_protobuf_limit_go_beside_the_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_graph, "_PROTO_LIMIT", 1000)  # bytes, in place of 2 GB
    model = qat_models.trained(qat_models.ResNet, 1, 8, 8)
    done = export(model, IMAGES[:2], tmp_path / "m.onnx")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx", "m.onnx.data"]
    assert any(t.external_data for t in onnx.load(done.path, load_external_data=False).graph.initializer)
    with torch.no_grad():
        assert np.allclose(run(done.path, {"image": IMAGES})[0], model(IMAGES).numpy(), rtol=1e-4, atol=1e-5)


def test_the_model_is_left_as_it_was(tmp_path: Path) -> None:
    model = qat_models.trained(qat_models.ResNet, 1, 8, 8)
    export(model, IMAGES[:2], tmp_path / "m.onnx")
    assert "forward" not in model.__dict__
    model(IMAGES[:3])


def test_the_stage_writes_both_models_and_a_report(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text("from qat_models import Task\n")
    model = qat_models.trained(qat_models.ResNet, 1, 8, 8)
    save_file(model.state_dict(), tmp_path / "w.safetensors")
    made = torch_qat.prepare(model, IMAGES[:2])
    torch_qat.calibrate(made, [IMAGES])
    torch_qat.save(made, tmp_path / "q.safetensors", tmp_path / "q.json")
    files = {"weights": "w.safetensors", "qat-weights": "q.safetensors", "quantizers": "q.json"}
    out = tmp_path / "out"
    out.mkdir()
    job = Job(
        stage="export",
        settings=ExportSettings(),
        task=_ref(tmp_path),
        seed=0,
        inputs={kind: Artifact.of(kind, tmp_path / name) for kind, name in files.items()},
        out=out,
        scratch=tmp_path,
        progress=lambda _label: contextlib.nullcontext(NoProgress()),
        note=lambda _text: None,
    )
    result = STAGE.run(job)
    first = {path.name: path.read_bytes() for path in out.iterdir()}
    STAGE.run(job)  # equal bytes, the report's too: nothing behind it becomes stale
    assert {path.name: path.read_bytes() for path in out.iterdir()} == first
    assert set(result.artifacts) == {"onnx-fp32", "onnx-qat", "export-report"}
    assert {p.name for p in out.iterdir()} == set(result.artifacts.values())
    report = json.loads((out / result.artifacts["export-report"]).read_text())
    assert report["models"]["qat"]["qdq"] == [] and report["models"]["fp32"]["opset"] == 17
    assert report["nodes"]["/head/Gemm"] == "head"
    qat = onnx.load(out / result.artifacts["onnx-qat"]).graph
    assert sum(n.op_type == "QuantizeLinear" for n in qat.node) == 7 + 7  # weights, and tensors that are read as INT8
    with torch.no_grad():
        expected = made.model.eval()(IMAGES).numpy()
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    session = onnxruntime.InferenceSession(str(out / result.artifacts["onnx-qat"]), options)
    assert np.allclose(session.run(None, {"image": IMAGES.numpy()})[0], expected, rtol=1e-3, atol=1e-3)


def _ref(folder: Path):  # type: ignore[no-untyped-def]
    from deploychain.task import TaskRef

    return TaskRef.parse("task.py:Task", folder, {})
