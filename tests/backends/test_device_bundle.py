"""From a run of the chain to a bundle, and that bundle built by the real TensorRT for RTX."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tensorrt_rtx", reason="TensorRT for RTX is not installed")
pytest.importorskip("onnxruntime", reason="the golden answers come from onnxruntime")

import build_models

from deploychain import chain
from deploychain.config import load_pipeline
from deploychain.device.archive import ArchiveReader
from deploychain.device.backend import DeviceSettings
from deploychain.device.build import DeviceBuild, verify_bundle
from deploychain.device.bundle import load_arrays, open_bundle
from deploychain.device.bundling import find_pipeline, make_bundle
from deploychain.errors import ConfigError, StageError

pytestmark = pytest.mark.rtx


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A chain that starts from a foreign ONNX file and a Q/DQ version of it, and builds both."""
    build_models.conv(tmp_path / "m.onnx")
    build_models.quantised(tmp_path / "q.onnx")
    data = np.random.default_rng(1).standard_normal((20, 8, 16, 16))  # float64: the model wants float32
    np.savez(tmp_path / "test.npz", x=data)
    (tmp_path / "pipeline.yaml").write_text(
        "name: foreign\nstart: {onnx: m.onnx, onnx_qat: q.onnx}\ndata: test.npz\n"
        "stages:\n  build: {backend: tensorrt_rtx, engines: [fp32, int8], opt_batch: 4}\n"
    )
    chain.run(load_pipeline(tmp_path / "pipeline.yaml"))
    return tmp_path


def pack(run: Path, name: str = "bundle.tar") -> Path:
    file, folder = find_pipeline(run / "pipeline.yaml", None)
    return make_bundle(file, folder, run / name, samples=12).path


def test_bundle_holds_models_profiles_and_answers(run: Path) -> None:
    bundle, _, reader = open_bundle(pack(run))
    # No plan stage: the Q/DQ model stands in for the planned INT8 one, and there is no FP16 model.
    assert {w.name: w.model for w in bundle.engines} == {
        "fp32": "models/onnx-fp32/model.onnx",
        "int8": "models/onnx-qat/model.onnx",
    }
    assert set(bundle.golden.outputs) == {"onnx-fp32", "onnx-int8"}
    assert bundle.profiles == {"x": {"min": (1, 8, 16, 16), "opt": (4, 8, 16, 16), "max": (8, 8, 16, 16)}}
    reader.unpack(run / "out")
    assert (run / "out/models/onnx-fp32/model.onnx").read_bytes() == (run / "m.onnx").read_bytes()
    inputs = load_arrays(run / "out", bundle.golden.inputs)["x"]
    assert inputs.dtype == np.float32 and inputs.shape == (12, 8, 16, 16)
    answer = load_arrays(run / "out", bundle.golden.outputs["onnx-fp32"])["y"]
    # The first answer worked out by hand: a padded 3x3 convolution and a ReLU, at one place.
    weight = build_models._conv_weight()
    expected = max(0.0, float((inputs[0, :, 4:7, 5:8] * weight[2]).sum()))
    assert answer[0, 2, 5, 6] == pytest.approx(expected, abs=1e-4)
    assert bundle.evals[0].exact and bundle.evals[0].metrics == {}


def test_equal_runs_give_equal_bytes(run: Path) -> None:
    assert pack(run, "a.tar").read_bytes() == pack(run, "b.tar").read_bytes()


def test_a_stale_run_is_refused(run: Path) -> None:
    build_models.relu(run / "m.onnx", build_models.BATCH)
    with pytest.raises(StageError, match="build is stale") as caught:
        pack(run)
    assert "deploychain run" in caught.value.remedy
    assert not (run / "bundle.tar").exists()


def test_the_pipeline_of_a_run_folder_is_found_or_asked_for(
    run: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert find_pipeline(run / "runs/foreign", None) == (run / "pipeline.yaml", run / "runs/foreign")
    with pytest.raises(ConfigError, match="no such run folder"):
        find_pipeline(run / "runs/forein", None)
    with pytest.raises(ConfigError, match="not known"):
        find_pipeline(tmp_path_factory.mktemp("elsewhere"), None)


def test_the_real_builder_on_a_bundle(run: Path) -> None:
    bundle = pack(run)
    assert verify_bundle(bundle).name == "foreign"
    settings = DeviceSettings(backend="tensorrt_rtx", cache=run / "cache")
    result = DeviceBuild(bundle, settings).run(run / "device-result.json")
    engine, int8 = result.engines
    matrix = [x for x in int8.report.layers if x.layer_type == "correlation"]
    assert len(matrix) == 3 and {str(x.compute) for x in matrix} == {"int8"}
    assert engine.status == "built" and engine.typing == "strong"
    assert result.fingerprint.library == "TensorRT for RTX"
    assert engine.report.summary is not None and engine.report.summary.fallback == 0
    assert [x.layer_type for x in engine.report.layers if "/conv/Conv" in x.onnx_nodes] == ["correlation"]
    evaluation = engine.evaluation
    assert evaluation is not None
    if not evaluation.ran:  # no GPU here: the row says so and the table stands
        assert evaluation.reason and engine.latency is None
        assert {e.unmeasured for e in result.engines} == {"unable"} and result.exit_code == 4
    assert DeviceBuild(bundle, settings).run(run / "again.json").engines[0].status == "cached"
    record = json.loads(next((run / "cache/foreign/fp32").glob("*/engine.json")).read_text())
    assert record["sha256"] == engine.sha256 and record["facts"]["tensorrt"] == result.fingerprint.tensorrt
    with pytest.raises(Exception, match="exists"):
        ArchiveReader(bundle).unpack(run / "cache")
