"""A device's result becomes a comparison of its run, or is refused."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import pytest
import tiny_bundle

from deploychain.device.archive import ArchiveReader
from deploychain.device.backend import DeviceSettings
from deploychain.device.build import DeviceBuild
from deploychain.device.importing import import_result
from deploychain.device.result import read_result, write_result
from deploychain.errors import ArtifactError
from deploychain.machine import Gpu, look
from deploychain.records import load_comparison
from deploychain.workspace import Workspace

STUBS = Path(__file__).parents[2] / "stubs"


def publish(run: Path, source: Path, *, change: str = "") -> None:
    """A run folder whose export and plan stages made the bundle's models."""
    workspace = Workspace(run)
    for stage, kinds in (("export", ("onnx-fp32", "onnx-qat")), ("plan", ("onnx-fp16", "onnx-int8"))):
        work = workspace.work_dir(stage)
        for kind in kinds:
            content = (source / f"{kind}.onnx").read_bytes()
            (work / f"{kind}.onnx").write_bytes(content + b"x" if kind == change else content)
        workspace.publish(
            work,
            stage=stage,
            key="k",
            causes={},
            artifacts={kind: f"{kind}.onnx" for kind in kinds},
            summary={},
            notes=(),
            seconds=1.0,
        )


@pytest.fixture
def result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The result of an Orin that answers 0.25 too high everywhere, on the stand-in trtexec."""
    monkeypatch.setenv("PATH", f"{STUBS}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("TRTEXEC_STUB_VERSION", "10.3.0.26")
    monkeypatch.setenv("TRTEXEC_STUB_NOISE", "0.25")
    bundle = tiny_bundle.write_bundle(tmp_path)
    ArchiveReader(bundle).unpack(tmp_path / "answers")
    monkeypatch.setenv("TRTEXEC_STUB_ANSWERS", str(tmp_path / "answers"))
    machine = dataclasses.replace(
        look(), gpus=(Gpu("Jetson AGX Orin", "8.7"),), l4t="36.4.3", jetpack="6.2", power_mode="0 (MAXN)"
    )
    settings = DeviceSettings(backend="trtexec", cache=tmp_path / "cache", seconds=1, engines=("fp32", "fp16"))
    path = tmp_path / "device" / "device-result.json"
    path.parent.mkdir()
    write_result(DeviceBuild(bundle, settings, machine=machine).run(path), path)
    return path


def test_the_devices_column(result: Path, tmp_path: Path) -> None:
    publish(tmp_path / "run", tmp_path / "source")
    imported = import_result(result, tmp_path / "run")
    assert imported.folder == tmp_path / "run/devices/jetson-agx-orin-trtexec-10.3.0.26"
    comparison = load_comparison(imported.folder / "comparison.json")
    rows = {row.stage: row for row in comparison.evals}
    assert list(rows) == ["onnx-fp32", "engine-fp32", "engine-fp16"]
    assert rows["engine-fp16"].max_abs_error == pytest.approx(0.25, abs=1e-4)
    assert rows["engine-fp16"].metrics == {"top1": pytest.approx(0.9)}
    assert {row.samples for row in rows.values()} == {40}  # one table, one set of samples
    assert [engine.name for engine in comparison.engines] == ["fp32", "fp16"]
    assert comparison.engines[1].summary is not None and comparison.engines[1].compute_capability == "8.7"
    assert {x.stage: x.device for x in comparison.latency} == dict.fromkeys(
        ("engine-fp32", "engine-fp16"), "Jetson AGX Orin"
    )
    assert "power mode 0 (MAXN)" in comparison.latency[0].how
    provenance = comparison.provenance
    assert provenance.device == "Jetson AGX Orin" and provenance.samples == 40 and provenance.data_sha256 == "0" * 64
    assert provenance.versions["jetpack"] == "6.2" and "10.3.0.26" in str(provenance.tensorrt)
    assert provenance.flags["engine-fp16"] == "weak typed fp16"
    assert read_result(imported.folder / "device-result.json").bundle == "tiny"
    import_result(imported.folder / "device-result.json", tmp_path / "run")  # again, from where it is kept


def test_a_result_of_other_models_is_refused(result: Path, tmp_path: Path) -> None:
    publish(tmp_path / "run", tmp_path / "source", change="onnx-fp16")
    with pytest.raises(ArtifactError, match="another onnx-fp16 model") as caught:
        import_result(result, tmp_path / "run")
    assert "new bundle" in caught.value.remedy
    assert not (tmp_path / "run/devices").exists()


def test_a_folder_without_a_run_is_refused(result: Path, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="no run"):
        import_result(result, tmp_path)


def test_an_engine_that_failed_stays_visible(result: Path, tmp_path: Path) -> None:
    publish(tmp_path / "run", tmp_path / "source")
    content = json.loads(result.read_text())
    failed = content["engines"][1]
    failed.update(status="failed", evaluation=None, latency=None)
    failed["report"].update(built=False, reason="memory ran out", summary=None, layers=[])
    result.write_text(json.dumps(content))
    comparison = import_result(result, tmp_path / "run").comparison
    row = {r.stage: r for r in comparison.evals}["engine-fp16"]
    assert not row.ran and row.reason == "memory ran out"
    assert not comparison.engines[1].built and len(comparison.latency) == 1
