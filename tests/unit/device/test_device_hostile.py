"""What a hostile or clumsy bundle, result or user may try on a device: refused by name, or done right."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_bundle
from test_archive import hostile, nothing
from test_device_import import publish

from deploychain.device import containers, serve
from deploychain.device.archive import ArchiveReader, write_archive
from deploychain.device.backend import DeviceSettings
from deploychain.device.build import DeviceBuild
from deploychain.device.bundle import TensorFile, load_arrays, open_bundle
from deploychain.device.health import HealthBoard
from deploychain.device.importing import import_result
from deploychain.device.output import check_output
from deploychain.device.result import DeviceResult, read_result, write_result
from deploychain.device.trtexec import read_outputs
from deploychain.errors import ArtifactError, CapabilityError, ConfigError
from deploychain.machine import look
from deploychain.precision import Precision

STUBS = Path(__file__).parents[2] / "stubs"


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a bundle, its unpacked content in ``answers``, and the stand-in trtexec on PATH."""
    monkeypatch.setenv("PATH", f"{STUBS}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("TRTEXEC_STUB_VERSION", "10.3.0.26")
    monkeypatch.delenv("TRTEXEC_STUB_FAIL", raising=False)
    ArchiveReader(tiny_bundle.write_bundle(tmp_path)).unpack(tmp_path / "answers")
    monkeypatch.setenv("TRTEXEC_STUB_ANSWERS", str(tmp_path / "answers"))
    return tmp_path


def repack(device: Path, change: Callable[[dict[str, Any], dict[str, Path]], object]) -> Path:
    """The bundle again, with another manifest or other files; sizes and sha256 are those of the files."""
    answers = device / "answers"
    manifest = json.loads((answers / "manifest.json").read_text())
    files = {f["path"]: answers / f["path"] for f in manifest.pop("files")}
    change(manifest, files)
    write_archive(device / "bundle.tar", manifest, files)
    return device / "bundle.tar"


def build(device: Path, **settings: Any) -> DeviceResult:
    chosen = DeviceSettings(**{"backend": "trtexec", "cache": device / "cache", "engines": ("fp16",), **settings})
    return DeviceBuild(device / "bundle.tar", chosen).run(device / "device-result.json")


# -- the archive --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", ["Infinity", "-Infinity", "NaN", "1e400", "7.0", '"7"', "true", "null"])
def test_a_size_is_a_whole_number(tmp_path: Path, size: str) -> None:
    path = hostile(tmp_path, nothing)
    data = path.read_bytes()
    small = f'"size": {size}'.encode()
    at = data.index(b'"size": 7')
    text = data[512 : 512 + int(data[124:135], 8)].replace(b'"size": 7', small)
    head = tarfile.TarInfo("manifest.json")
    head.size = len(text)
    assert at > 512
    path.write_bytes(head.tobuf(tarfile.USTAR_FORMAT) + text + bytes(-len(text) % 512) + data[1024:])
    with pytest.raises(ArtifactError, match="not usable"):
        ArchiveReader(path).verify()


@pytest.mark.parametrize("field", [b"-0000000001\0", b"0000_000_07\0", b"0o7\0\0\0\0\0\0\0\0\0", b"\x80" + bytes(11)])
def test_a_header_has_octal_digits_only(tmp_path: Path, field: bytes) -> None:
    data = bytearray(hostile(tmp_path, nothing).read_bytes())
    data[124:136] = field
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    (tmp_path / "x.tar").write_bytes(data)
    with pytest.raises(ArtifactError, match="a header is damaged"):
        ArchiveReader(tmp_path / "x.tar").read_manifest()


@pytest.mark.parametrize("name", ["manifest.json/x", "MANIFEST.json", "manifest.sha256"])
def test_nothing_takes_the_place_of_the_manifest(tmp_path: Path, name: str) -> None:
    entry = {"path": name, "size": 7, "sha256": hashlib.sha256(b"payload").hexdigest()}
    with pytest.raises(ArtifactError, match="not usable"):
        ArchiveReader(hostile(tmp_path, nothing, {"files": [entry]})).read_manifest()


def test_half_a_character_is_refused(tmp_path: Path) -> None:
    path = hostile(tmp_path, nothing, {"files": [], "name": "\ud800"})
    with pytest.raises(ArtifactError, match="half a character"):
        ArchiveReader(path).read_manifest()


def test_a_changed_word_of_the_manifest_is_seen(device: Path) -> None:
    data = (device / "bundle.tar").read_bytes()
    changed = data.replace(b'"top1": 0.9', b'"top1": 0.8')
    assert changed != data
    (device / "bundle.tar").write_bytes(changed)
    with pytest.raises(ArtifactError, match="its manifest is not what was packed"):
        ArchiveReader(device / "bundle.tar").verify()


def test_an_endless_end_is_not_read(device: Path) -> None:
    with (device / "bundle.tar").open("r+b") as stream:
        stream.truncate(1 << 40)  # sparse: takes no room, and an hour to read
    with pytest.raises(ArtifactError, match="more than its manifest"):
        ArchiveReader(device / "bundle.tar").verify()


def test_the_writer_refuses_what_the_reader_would(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="--samples"):
        write_archive(tmp_path / "b.tar", {"evals": "x" * (17 << 20)}, {})
    (tmp_path / "f").touch()
    with pytest.raises(ArtifactError, match="1001 files"):
        write_archive(tmp_path / "b.tar", {}, {f"f{i}": tmp_path / "f" for i in range(1001)})
    with pytest.raises(CapabilityError, match="cannot write the bundle"):
        write_archive(tmp_path / "none/b.tar", {}, {})
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


# -- the manifest -------------------------------------------------------------------------------------------------


def _twice(manifest: dict[str, Any]) -> None:
    manifest["engines"].append(manifest["engines"][0])


LIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "name": lambda m: m.update(name=".."),
    "engines": _twice,
    "golden.inputs": lambda m: m["golden"].update(inputs=[]),
    "golden.reference": lambda m: m["golden"].update(reference="onnx-int8"),
    "golden.samples": lambda m: m["golden"].update(samples=41),
    "golden.targets": lambda m: m["golden"]["targets"].update(dtype="<f4"),
    "golden.classes": lambda m: m["golden"].update(classes=["a"]),
    "golden.fixed": lambda m: m["golden"].update(fixed={"x": []}),
    "the profile of 'x'": lambda m: m["profiles"].update(x={k: [] for k in ("min", "opt", "max")}),
    "the profile of 'x' is too large": lambda m: m["profiles"]["x"].update(max=[1 << 30, 4]),
}


@pytest.mark.parametrize("key", LIES)
def test_a_manifest_that_does_not_go_together_is_refused(device: Path, key: str) -> None:
    path = repack(device, lambda m, _: LIES[key](m))
    with pytest.raises(ArtifactError, match=key):
        open_bundle(path)


def test_arrays_are_what_they_say(tmp_path: Path) -> None:
    tensor = TensorFile("x", "x.npy", "<f4", (3, 4))
    good = io.BytesIO()
    np.save(good, np.zeros((3, 4), np.float32))
    packed = io.BytesIO()
    np.savez(packed, a=np.zeros(3))
    huge = good.getvalue().replace(b"(3, 4), }" + b" " * 11, b"(" + b"9" * 12 + b", 4), }")
    unclosed = good.getvalue().replace(b"(3, 4), }", b"(3, 4,  {")
    assert len(huge) == len(unclosed) == len(good.getvalue()) and b"999, 4" in huge
    for content in (b"", b"PK\3\4" + bytes(60), packed.getvalue(), good.getvalue()[:-1], huge, unclosed, b"text"):
        (tmp_path / "x.npy").write_bytes(content)
        with pytest.raises(ArtifactError, match="array"):
            load_arrays(tmp_path, (tensor,))
    (tmp_path / "x.npy").write_bytes(good.getvalue())
    assert load_arrays(tmp_path, (tensor,))["x"].shape == (3, 4)


# -- building -----------------------------------------------------------------------------------------------------


def test_a_cache_named_from_here(device: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(device)
    (engine,) = build(device, cache=Path("engines")).engines
    assert engine.status == "built", engine.report.reason
    assert engine.evaluation is not None and engine.evaluation.ran


def test_other_external_weights_are_another_model(device: Path) -> None:
    weights = device / "weights.data"

    def with_weights(_: dict[str, Any], files: dict[str, Path]) -> None:
        files["models/onnx-fp32/model.onnx.data"] = weights

    weights.write_bytes(b"first training")
    repack(device, with_weights)
    assert build(device, measure=False).engines[0].status == "built"
    assert build(device, measure=False).engines[0].status == "cached"
    weights.write_bytes(b"second training")  # model.onnx itself is as before
    repack(device, with_weights)
    (engine,) = build(device, measure=False).engines
    assert engine.status == "built" and engine.why.startswith("model ")


def test_a_failed_build_leaves_its_log(device: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = DeviceBuild(device / "bundle.tar", DeviceSettings("trtexec", ("fp16",), cache=device / "cache"))
    monkeypatch.setenv("TRTEXEC_STUB_FAIL", "oom")
    (engine,) = job.run(device / "r.json").engines
    log = device / "cache/tiny/fp16.failed.log"
    assert str(log) in engine.remedy and "OutOfMemory" in log.read_text()


def test_a_result_that_cannot_be_written_is_told_before_the_build(device: Path) -> None:
    job = DeviceBuild(device / "bundle.tar", DeviceSettings("trtexec", ("fp16",), cache=device / "cache"))
    with pytest.raises(ConfigError, match="no folder"):
        job.run(device / "none/r.json")
    assert not (device / "cache/tiny/fp16").exists()
    with pytest.raises(ConfigError, match="is a folder"):
        check_output(device)
    check_output(device / "r.json")


def test_a_model_of_one_shape_is_run_at_that_shape(device: Path) -> None:
    def fixed(manifest: dict[str, Any], _: dict[str, Path]) -> None:
        manifest["profiles"] = {}
        manifest["golden"]["fixed"] = {"x": [4, 4]}

    repack(device, fixed)
    seen: list[int] = []
    job = DeviceBuild(device / "bundle.tar", DeviceSettings("trtexec", ("fp16",), cache=device / "cache"))
    infer = job.backend.infer

    def spy(engine: Path, inputs: Any, profiles: Any, work: Path, **more: Any) -> Any:
        made = infer(engine, inputs, profiles, work, **more)
        seen.append((work / "input-0.bin").stat().st_size)
        return made

    job.backend.infer = spy  # type: ignore[method-assign]
    (engine,) = job.run(device / "r.json").engines
    assert engine.evaluation is not None and engine.evaluation.samples == 40  # ten runs of four
    assert seen == [4 * 4 * 4]
    assert not any(part.startswith("--minShapes") for part in engine.command)


def test_outputs_that_are_not_finite_are_numbers_too(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text('[{ "name" : "y", "dimensions" : "1x6", "values" : [ nan, -nan, inf, -inf, 1e-07, -2 ] }]')
    values = read_outputs(path)["y"][0]
    assert np.isnan(values[:2]).all() and values[2] == np.inf and values[3] == -np.inf
    assert values[4:].tolist() == pytest.approx([1e-7, -2])


def test_times_of_an_earlier_run_are_not_this_ones(device: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (first,) = build(device, seconds=1).engines
    assert first.latency is not None and any(layer.share is not None for layer in first.report.layers)
    job = DeviceBuild(device / "bundle.tar", DeviceSettings("trtexec", ("fp16",), cache=device / "cache"))
    monkeypatch.setenv("TRTEXEC_STUB_FAIL", "nolib")  # from now on it does not start
    (again,) = job.run(device / "r.json").engines
    assert again.status == "cached" and again.latency is None
    assert again.evaluation is not None and not again.evaluation.ran
    assert all(layer.share is None for layer in again.report.layers)


def test_fp32_on_the_dla_is_told_to_be_fp16(device: Path) -> None:
    (engine,) = build(device, engines=("fp32",), dla_core=0, measure=False).engines
    assert engine.flags == ("fp16",) and engine.report.asked is Precision.FP16
    assert any("the DLA computes in FP16 or INT8 only" in note for note in engine.notes)
    (plain,) = build(device, engines=("fp32",), measure=False).engines
    assert plain.report.asked is Precision.FP32 and plain.notes == ()


# -- importing ----------------------------------------------------------------------------------------------------


@pytest.fixture
def result(device: Path) -> Path:
    publish(device / "run", device / "source")
    write_result(build(device, seconds=1), device / "device-result.json")
    return device / "device-result.json"


def edit(path: Path, **change: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))


def test_a_result_that_names_no_models_is_refused(result: Path, device: Path) -> None:
    edit(result, models={})
    with pytest.raises(ArtifactError, match="does not say from which"):
        import_result(result, device / "run")


def test_a_device_name_cannot_leave_the_devices_folder(result: Path, device: Path) -> None:
    content = json.loads(result.read_text())
    edit(result, fingerprint={**content["fingerprint"], "device": ".."}, backend="")
    assert import_result(result, device / "run").folder == device / "run/devices/device"
    assert not (device / "run/comparison.json").exists()


def test_a_result_with_half_a_character_is_refused(result: Path) -> None:
    edit(result, jetpack="\ud800")
    with pytest.raises(ArtifactError, match="half a character"):
        read_result(result)


def test_a_newer_result_is_refused_by_schema(result: Path) -> None:
    edit(result, schema="deploychain.device-result/2")
    with pytest.raises(ArtifactError, match="device-result/2"):
        read_result(result)


# -- serving and containers ---------------------------------------------------------------------------------------


def test_a_state_that_cannot_be_written_does_not_end_the_server(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    board = HealthBoard(folder / "health.json")
    board.set("building")
    (folder / "health.json").unlink()
    folder.rmdir()
    board.set("ready")
    board.renew()
    assert board.health.state == "ready"


def test_an_engine_that_does_not_run_is_not_ready(device: Path) -> None:
    result = build(device, seconds=1)
    board = HealthBoard(device / "health.json")
    serve._conclude(result, board, device / "r.json", ())
    assert board.health.state == "ready"
    (engine,) = result.engines
    assert engine.evaluation is not None
    dead = dataclasses.replace(engine.evaluation, ran=False, reason="Version tag does not match")
    broken = dataclasses.replace(result, engines=(dataclasses.replace(engine, evaluation=dead),))
    serve._conclude(broken, board, device / "r.json", ())
    seen = dataclasses.asdict(board.health)
    assert seen["state"] == "broken" and "fp16 was built and does not run: Version tag" in seen["detail"]


def test_a_folder_of_engines_is_mounted_as_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "engines").mkdir()
    image = containers.read_images(Path(__file__).parents[3])["jetpack6"]

    def volume(engines: str) -> str:
        command = containers.run_command("docker", image, look(), bundle=None, engines=engines, groups=())
        return next(part for part in command if part.endswith(":/engines"))

    assert volume("engines") == f"{tmp_path}/engines:/engines"
    assert volume("./new") == f"{tmp_path}/new:/engines"
    assert volume("deploychain-engines") == "deploychain-engines:/engines"


def test_a_docker_without_buildkit_is_explained() -> None:
    found = containers.explain("the --mount option requires BuildKit. Refer to https://docs.docker.com/go/buildkit/")
    assert found is not None and "docker-buildx" in found[1]


def test_a_dry_run_names_known_tools_only() -> None:
    assert containers.choose_tool("auto", installed=False) == "docker"
    assert containers.choose_tool("nerdctl", installed=False) == "nerdctl"
    with pytest.raises(ConfigError, match="no container tool"):
        containers.choose_tool("buildah", installed=False)
