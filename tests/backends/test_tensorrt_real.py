"""TensorRT itself, where a GPU and the library are: build, run against onnxruntime, time, cache, refuse.

Skipped with the reason elsewhere; DEPLOYCHAIN_REQUIRE=tensorrt turns the skip into a failure, for the machine that must
have it.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

from deploychain.device.versions import Version, engine_file_version
from deploychain.errors import ArtifactError, CapabilityError
from deploychain.machine import look

pytestmark = pytest.mark.tensorrt


def require() -> None:
    machine = look(run_tools=False)
    reason = ""
    if not machine.gpus:
        reason = "no NVIDIA GPU"
    elif importlib.util.find_spec("tensorrt") is None and machine.trtexec is None:
        reason = "neither the tensorrt package nor trtexec is installed"
    if not reason:
        return
    if "tensorrt" in os.environ.get("DEPLOYCHAIN_REQUIRE", "").split(","):
        pytest.fail(f"DEPLOYCHAIN_REQUIRE=tensorrt: {reason}")
    pytest.skip(f"the classic TensorRT cannot run here: {reason}")


@pytest.mark.parametrize("backend", ["tensorrt", "trtexec"])
def test_a_bundle_on_the_real_thing(tmp_path: Path, backend: str) -> None:
    require()
    pytest.importorskip("onnxruntime", reason="the golden answers come from onnxruntime")
    import build_models

    from deploychain import chain
    from deploychain.config import load_pipeline
    from deploychain.device.backend import DeviceSettings
    from deploychain.device.build import DeviceBuild
    from deploychain.device.bundling import make_bundle

    build_models.conv(tmp_path / "m.onnx")
    build_models.quantised(tmp_path / "q.onnx")
    np.savez(tmp_path / "test.npz", x=np.random.default_rng(1).standard_normal((40, 8, 16, 16)).astype(np.float32))
    (tmp_path / "pipeline.yaml").write_text(
        "name: real\nstart: {onnx: m.onnx, onnx_qat: q.onnx}\ndata: test.npz\nstages: {evaluate: }\n"
    )
    chain.run(load_pipeline(tmp_path / "pipeline.yaml"))
    bundle = make_bundle(tmp_path / "pipeline.yaml", tmp_path / "runs/real", tmp_path / "bundle.tar").path
    try:
        job = DeviceBuild(bundle, DeviceSettings(backend=backend, cache=tmp_path / "cache", seconds=1))  # type: ignore[arg-type]
    except CapabilityError as error:
        pytest.skip(f"{backend}: {error.message}")
    result = job.run(tmp_path / "device-result.json")
    engines = {engine.name: engine for engine in result.engines}
    assert {engine.status for engine in result.engines} == {"built"}, [e.report.reason for e in result.engines]
    fp32 = engines["fp32"].evaluation
    assert fp32 is not None and fp32.ran and fp32.relative_error is not None
    assert fp32.relative_error < 5e-3  # TF32 has 10 bits
    assert engines["fp32"].latency is not None and engines["fp32"].latency.p50_ms is not None
    assert engines["int8"].report.summary is not None and engines["int8"].report.summary.fallback == 0
    assert all(e.status == "cached" for e in job.run(tmp_path / "again.json").engines)
    engine = next((tmp_path / "cache/real/fp32").glob("*/engine.plan"))
    library, version = engine_file_version(engine)
    assert library == "TensorRT" and version.same_engine(job.backend.version)
    data = bytearray(engine.read_bytes())
    data[25] ^= 1  # another minor version
    engine.write_bytes(data)
    with pytest.raises(ArtifactError, match="engines load only"):
        job.backend.infer(engine, {}, {}, tmp_path, timeout=60, on_progress=lambda *_: None)


def test_the_header_names_the_version_that_built_the_engine(tmp_path: Path) -> None:
    require()
    trt = pytest.importorskip("tensorrt", reason="needs the Python bindings")
    from deploychain.backends.tensorrt_build import BuildRequest, build_engine

    pytest.importorskip("onnx", reason="the model is made with onnx")
    import build_models

    made = build_engine(
        BuildRequest("tensorrt", build_models.relu(tmp_path / "m.onnx", [1, 4]), tmp_path / "e"), tmp_path, timeout=300
    )
    assert made.built, made.reason
    assert engine_file_version(tmp_path / "e")[1].same_engine(Version.parse(trt.__version__))
