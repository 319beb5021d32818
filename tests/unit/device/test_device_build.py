"""`device build` against a trtexec that takes the options of one release and prints its grammar."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_bundle

from deploychain.device.archive import ArchiveReader
from deploychain.device.backend import DeviceSettings, read_settings
from deploychain.device.build import DeviceBuild
from deploychain.device.bundle import open_bundle
from deploychain.device.command import map_wish
from deploychain.device.result import DeviceResult, EngineResult, read_result, write_result
from deploychain.device.versions import Features, Version
from deploychain.errors import ArtifactError, CapabilityError, ConfigError
from deploychain.machine import Gpu, look
from deploychain.records import LayerVerdict

STUBS = Path(__file__).parents[2] / "stubs"
VERSIONS = ("8.6.1", "10.3.0.26", "10.16.1.11", "11.1.0.99")


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a bundle, and the stand-in trtexec of TensorRT 10.3 on PATH."""
    monkeypatch.setenv("PATH", f"{STUBS}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("TRTEXEC_STUB_VERSION", "10.3.0.26")
    monkeypatch.delenv("TRTEXEC_STUB_FAIL", raising=False)
    bundle = tiny_bundle.write_bundle(tmp_path, held={"/c2/Conv": "fp32"})
    ArchiveReader(bundle).unpack(tmp_path / "answers")
    monkeypatch.setenv("TRTEXEC_STUB_ANSWERS", str(tmp_path / "answers"))
    return tmp_path


def job(device: Path, **settings: Any) -> DeviceBuild:
    chosen = DeviceSettings(**{"backend": "trtexec", "cache": device / "cache", "seconds": 1, **settings})
    return DeviceBuild(device / "bundle.tar", chosen)


def run(device: Path, **settings: Any) -> DeviceResult:
    return job(device, **settings).run(device / "device-result.json")


def by_name(result: DeviceResult) -> dict[str, EngineResult]:
    return {engine.name: engine for engine in result.engines}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_release_end_to_end(device: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setenv("TRTEXEC_STUB_VERSION", version)
    monkeypatch.setenv("TRTEXEC_STUB_NOISE", "0.25")
    result = run(device)
    assert [e.status for e in result.engines] == ["built"] * 3, [e.report.reason for e in result.engines]
    assert result.fingerprint.tensorrt == version and result.backend == f"trtexec {version}"
    engines = by_name(result)
    modern = version.startswith("11")
    assert {e.typing for e in result.engines} == {"strong" if modern else "weak"}
    # Asked and built, layer by layer: FP16 engine, its held convolution, and the quantised convolution.
    fp16 = {x.name: x.verdict for x in engines["fp16"].report.layers}
    assert fp16["/c1/Conv"] is LayerVerdict.AS_ASKED
    if not modern:
        assert fp16["/c2/Conv"] is LayerVerdict.EXPECTED  # pinned by --layerPrecisions
    int8 = {x.name: x for x in engines["int8"].report.layers}
    assert int8["/c1/Conv"].verdict is LayerVerdict.AS_ASKED and str(int8["/c1/Conv"].compute) == "int8"
    assert engines["fp32"].report.summary is not None and engines["fp32"].report.summary.fallback == 0
    # Every output is 0.25 above the reference, which is right on 36 of 40 samples.
    evaluation = engines["fp16"].evaluation
    assert evaluation is not None and evaluation.ran and evaluation.samples == 40
    assert evaluation.max_abs_error == pytest.approx(0.25, abs=1e-4)
    assert evaluation.metrics == {"top1": pytest.approx(0.9)} and evaluation.agreement == 1.0
    assert any("six significant digits" in note for note in evaluation.notes)
    latency = engines["fp16"].latency
    assert latency is not None
    assert latency.p50_ms == pytest.approx(2.045) and latency.mean_ms == pytest.approx(2.045)
    assert latency.p99_ms == pytest.approx(2.09) and "CUDA graph" in latency.how
    shares = [x.share for x in engines["fp16"].report.layers if x.share is not None]
    assert sum(shares) == pytest.approx(1.0)
    # What was written can be read back as it was.
    write_result(result, device / "device-result.json")
    again = read_result(device / "device-result.json")
    assert again.fingerprint == result.fingerprint
    assert [e.sha256 for e in again.engines] == [e.sha256 for e in result.engines]


def test_a_held_layer_built_low_is_demoted(device: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A release that ignores --layerPrecisions: the stand-in is asked without the pin, the judge is told of it.
    work = job(device, measure=False, engines=("fp16",))
    built = work.run(device / "r.json").engines[0]
    assert {x.name: x.verdict for x in built.report.layers}["/c2/Conv"] is LayerVerdict.EXPECTED
    folder = next((device / "cache/tiny/fp16").glob("*"))
    layers = json.loads((folder / "layers.json").read_text())
    for layer in layers["Layers"]:
        if layer["Name"] == "/c2/Conv":
            layer["Weights"]["Type"] = "Half"
    (folder / "layers.json").write_text(json.dumps(layers))
    again = job(device, measure=False, engines=("fp16",)).run(device / "r.json").engines[0]
    assert {x.name: x.verdict for x in again.report.layers}["/c2/Conv"] is LayerVerdict.DEMOTED


def test_a_second_run_builds_nothing(device: Path) -> None:
    first = by_name(run(device, measure=False))
    second = by_name(run(device, measure=False))
    assert [e.status for e in second.values()] == ["cached"] * 3
    assert {n: e.sha256 for n, e in first.items()} == {n: e.sha256 for n, e in second.items()}
    assert second["fp16"].report.summary == first["fp16"].report.summary
    assert [p.action for p in job(device).plan()] == ["reuse"] * 3


def test_another_version_rebuilds_and_says_why(device: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(device, measure=False)
    monkeypatch.setenv("TRTEXEC_STUB_VERSION", "10.16.1.11")
    assert {p.why for p in job(device).plan()} == {"tensorrt 10.3.0.26 -> 10.16.1.11"}
    with pytest.raises(CapabilityError, match=r"10\.3\.0\.26 -> 10\.16\.1\.11"):
        run(device, measure=False, on_mismatch="fail")
    result = run(device, measure=False)
    assert {e.why for e in result.engines} == {"tensorrt 10.3.0.26 -> 10.16.1.11"}
    assert len(list((device / "cache/tiny/fp16").glob("*"))) == 2  # the old one is kept: the host may go back


def test_another_device_or_jetpack_rebuilds(device: Path) -> None:
    machine = look()
    nx = dataclasses.replace(machine, gpus=(Gpu("Orin NX", "8.7"),), l4t="36.4.3", memory_mib=16000)
    agx = dataclasses.replace(nx, gpus=(Gpu("AGX Orin", "8.7"),), memory_mib=64000)
    upgraded = dataclasses.replace(nx, l4t="36.5.0")
    settings = DeviceSettings(backend="trtexec", cache=device / "cache", measure=False, engines=("fp16",))
    bundle = device / "bundle.tar"
    DeviceBuild(bundle, settings, machine=nx).run(device / "r.json")
    assert DeviceBuild(bundle, settings, machine=nx).plan()[0].action == "reuse"
    why = DeviceBuild(bundle, settings, machine=agx).plan()[0].why
    assert "device Orin NX -> AGX Orin" in why and "memory_gib 16 -> 62" in why
    assert DeviceBuild(bundle, settings, machine=upgraded).plan()[0].why == "l4t 36.4.3 -> 36.5.0"
    driver = dataclasses.replace(nx, driver="999", container="other:tag")
    assert DeviceBuild(bundle, settings, machine=driver).plan()[0].action == "reuse"


def test_another_model_or_profile_rebuilds(device: Path) -> None:
    run(device, measure=False, engines=("fp16",))
    tiny_bundle.write_bundle(device, held={"/c2/Conv": "fp32"}, weight="w9")
    assert job(device).plan()[1].why.startswith("model ")
    tiny_bundle.write_bundle(device)
    assert job(device).plan()[1].why == 'layer precisions {"/c2/Conv": "fp32"} -> {}'


def test_a_damaged_engine_is_rebuilt(device: Path) -> None:
    run(device, measure=False, engines=("fp16",))
    engine = next((device / "cache/tiny/fp16").glob("*/engine.plan"))
    engine.write_bytes(engine.read_bytes()[:-1])
    assert job(device, engines=("fp16",)).plan()[0].why == "the cached engine is damaged"
    assert run(device, measure=False, engines=("fp16",)).engines[0].status == "built"


FAILURES = {
    "oom": ("memory ran out", "swap"),
    "killed": ("SIGKILL", "swap"),
    "unsupported": ("node /c1/Conv (Conv) is not supported", "operator"),
    "noimpl": ("no implementation for node /c1/Conv", "FP32"),
    "nospace": ("the disk is full", "--cache"),
    "crash": ("SIGSEGV", "NVIDIA"),
    "nogpu": ("no GPU answers", "--runtime nvidia"),
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("failure", FAILURES)
def test_failures_are_named(device: Path, monkeypatch: pytest.MonkeyPatch, version: str, failure: str) -> None:
    monkeypatch.setenv("TRTEXEC_STUB_VERSION", version)
    work = job(device, engines=("fp16",))
    monkeypatch.setenv("TRTEXEC_STUB_FAIL", failure)
    (engine,) = work.run(device / "r.json").engines
    reason, remedy = FAILURES[failure]
    assert engine.status == "failed" and not engine.report.built
    assert reason in engine.report.reason, engine.report.reason
    assert remedy in engine.remedy
    assert engine.report.summary is None and engine.evaluation is None and engine.sha256 is None
    assert not list((device / "cache/tiny/fp16").glob("*")), "nothing half-built may stay"


def test_one_failed_engine_does_not_stop_the_others(device: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = job(device, measure=False)
    build = work.backend.build

    def failing(wish: Any, *args: Any, **more: Any) -> Any:
        if wish.name == "fp16":
            os.environ["TRTEXEC_STUB_FAIL"] = "oom"
        try:
            return build(wish, *args, **more)
        finally:
            os.environ.pop("TRTEXEC_STUB_FAIL", None)

    monkeypatch.setattr(work.backend, "build", failing)
    result = work.run(device / "r.json")
    assert {e.name: e.status for e in result.engines} == {"fp32": "built", "fp16": "failed", "int8": "built"}
    assert not result.ok


def test_a_hanging_build_is_ended(device: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = job(device, engines=("fp32",), timeout_minutes=0.03)
    monkeypatch.setenv("TRTEXEC_STUB_FAIL", "hang")
    (engine,) = work.run(device / "r.json").engines
    assert engine.status == "failed" and "did not end within" in engine.report.reason


def test_an_engine_of_another_version_is_refused_by_name(device: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(device, measure=False, engines=("fp16",))
    engine = next((device / "cache/tiny/fp16").glob("*/engine.plan"))
    monkeypatch.setenv("TRTEXEC_STUB_VERSION", "10.16.1.11")
    work = job(device)
    inputs = {"x": np.zeros((2, 4), np.float32)}
    with pytest.raises(ArtifactError, match=r"built by TensorRT 10\.3\.0\.26; this device has 10\.16\.1\.11"):
        work.backend.infer(engine, inputs, work.bundle.profiles, device, timeout=10, on_progress=lambda *_: None)


def test_missing_tensorrt_libraries_are_told(device: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRTEXEC_STUB_FAIL", "nolib")
    with pytest.raises(CapabilityError, match="libnvdla_compiler") as caught:
        job(device)
    assert "--runtime nvidia" in caught.value.remedy


def test_dla_only_where_the_release_has_it(device: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = job(device, dla_core=1, engines=("fp32",)).plan()[0].command
    assert {"--useDLACore=1", "--allowGPUFallback", "--fp16"} <= set(command)
    assert run(device, dla_core=0, measure=False, engines=("fp16",)).ok
    for version in ("10.16.1.11", "11.1.0.99"):
        monkeypatch.setenv("TRTEXEC_STUB_VERSION", version)
        with pytest.raises(CapabilityError, match=r"10\.7"):
            job(device, dla_core=0)


def test_a_quantised_model_on_the_dla_is_a_warning_not_a_promise(device: Path) -> None:
    planned = {p.name: p.notes for p in job(device, dla_core=0).plan()}
    assert [n for n in planned["int8"] if n.startswith("warning: int8 is a Q/DQ model")]
    assert not any("Q/DQ" in n for name in ("fp32", "fp16") for n in planned[name])
    assert not any("Q/DQ" in n for p in job(device).plan() for n in p.notes)  # on the GPU it is what it should be
    result = by_name(run(device, dla_core=0, measure=False, engines=("int8",)))["int8"]
    assert any("which layers run on the DLA is unknown" in n for n in result.notes)


def test_a_quantised_model_on_the_dla_of_11_is_unknown(device: Path) -> None:
    bundle, _, _ = open_bundle(device / "bundle.tar")
    features = Features.of(Version.parse("11.4.1.5"))
    notes = {w.name: map_wish(w, features, "strong", 0).notes for w in bundle.engines}
    assert [n[:8] for n in notes["int8"]] == ["unknown:"] and notes["fp32"] == ()
    fp16 = dataclasses.replace(bundle.engine("fp16"), op_types={"/q": "QuantizeLinear"})
    assert map_wish(fp16, features, "strong", 0).notes[0].startswith("unknown: fp16")


def test_strong_typing_can_be_asked_of_10(device: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(device, typing="strong", measure=False)
    assert result.ok and {e.typing for e in result.engines} == {"strong"}
    assert "--stronglyTyped" in by_name(result)["fp16"].command and "--fp16" not in by_name(result)["fp16"].command
    monkeypatch.setenv("TRTEXEC_STUB_VERSION", "8.6.1")
    with pytest.raises(CapabilityError, match="no strongly typed"):
        job(device, typing="strong")
    monkeypatch.setenv("TRTEXEC_STUB_VERSION", "11.1.0.99")
    with pytest.raises(CapabilityError, match="only strongly typed"):
        job(device, typing="weak")


def test_too_old_a_release_is_refused(device: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = device / "bin/trtexec"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\necho '&&&& RUNNING TensorRT.trtexec [TensorRT v8201] # trtexec --help'\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(CapabilityError, match=r"8\.2\.1 is older than 8\.6"):
        job(device)


def test_two_builds_at_once_share_no_cache(device: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = job(device, engines=("fp32",), timeout_minutes=1), job(device, engines=("fp32",))
    monkeypatch.setenv("TRTEXEC_STUB_FAIL", "hang")
    seen: list[str] = []
    ready = threading.Event()
    first.note = lambda text: ready.set()

    def other() -> None:
        ready.wait(20)
        try:
            second.run(device / "r2.json")
        except CapabilityError as error:
            seen.append(error.message)
        os.kill(os.getpid(), signal.SIGUSR1)

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, stop)
    thread = threading.Thread(target=other)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            first.run(device / "r.json")
    finally:
        thread.join()
        signal.signal(signal.SIGUSR1, before)
    assert seen and "another process is building" in seen[0]
    assert not list((device / "cache/tiny/fp32").glob("*")), "an interrupted build leaves nothing"


def test_a_changed_file_of_the_unpacked_bundle_is_seen(device: Path) -> None:
    run(device, measure=False, engines=("fp32",))
    model = next((device / "cache/tiny/bundles").glob("*/models/onnx-fp32/model.onnx"))
    model.write_bytes(model.read_bytes() + b"x")
    with pytest.raises(Exception, match="was changed"):
        run(device, measure=False, engines=("fp32",))


def test_wrong_values_name_the_right_ones(device: Path) -> None:
    with pytest.raises(ConfigError, match="'fp8'"):
        job(device, engines=("fp8",))
    with pytest.raises(ConfigError) as caught:
        read_settings(backend="tensorrt-rtx", typing="auto", on_mismatch="rebuild")
    assert "tensorrt_rtx" in caught.value.remedy and caught.value.where == "--backend"


def test_a_hand_made_result_is_validated(device: Path) -> None:
    path = device / "device-result.json"
    for content in ("", "[]", '{"schema": "x"}', '{"schema": "deploychain.device-result/1"}', "{" * 5000):
        path.write_text(content)
        with pytest.raises(ArtifactError):
            read_result(path)


def test_the_exit_code_is_that_of_the_worst_engine(device: Path) -> None:
    result = run(device, measure=False)
    fp32, fp16, int8 = result.engines

    def code(**unmeasured: Any) -> int:
        engines = [dataclasses.replace(e, **unmeasured.get(e.name, {})) for e in (fp32, fp16, int8)]
        return dataclasses.replace(result, engines=tuple(engines)).exit_code

    assert code() == 0
    assert code(fp16={"unmeasured": "unable"}) == 4
    assert code(fp16={"unmeasured": "unable"}, int8={"unmeasured": "failed"}) == 3
    assert code(fp16={"unmeasured": "unable"}, int8={"status": "failed"}) == 3
    assert dataclasses.replace(result, engines=()).exit_code == 3  # nothing was built
