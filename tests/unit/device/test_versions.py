from __future__ import annotations

import struct
from pathlib import Path

import pytest

from deploychain.device.bundle import EngineWish, WeakRequest
from deploychain.device.command import map_wish, shapes_spec
from deploychain.device.fingerprint import clocks
from deploychain.device.versions import Features, Version, engine_file_version, refuse_foreign_engine
from deploychain.errors import ArtifactError, CapabilityError


def test_versions_are_four_numbers() -> None:
    assert Version.parse("10.3.0.26") == Version(10, 3, 0, 26)
    assert str(Version.parse("10.16")) == "10.16" and str(Version.parse("8.6.1")) == "8.6.1"
    assert Version.parse("10.3.0") < Version.parse("10.16.0") < Version.parse("11.1.0")
    assert Version.parse("10.3.0.26").same_engine(Version.parse("10.3.0"))
    # The apt package and the tarball of one JetPack differ in the build alone, and do not share engines.
    assert not Version.parse("10.3.0.26").same_engine(Version.parse("10.3.0.30"))
    with pytest.raises(CapabilityError):
        Version.parse("latest")


@pytest.mark.parametrize(
    ("version", "weak", "strong", "flag", "dla"),
    [
        ("8.6.2", True, False, False, True),
        ("9.0.1", True, True, True, True),
        ("10.3.0", True, True, True, True),
        ("10.7.0", True, True, True, True),
        ("10.8.0", True, True, True, False),
        ("10.16.1", True, True, True, False),
        ("11.1.0", False, True, False, False),
        ("11.4.0", False, True, False, False),
        ("11.4.1", False, True, False, True),
        ("12.0.0", False, True, False, True),
    ],
)
def test_features(version: str, weak: bool, strong: bool, flag: bool, dla: bool) -> None:
    found = Features.of(Version.parse(version))
    assert (found.weak_typing, found.strong_typing, found.strong_flag, found.dla) == (weak, strong, flag, dla)
    assert found.typing("auto") == ("weak" if weak else "strong")


def engine(path: Path, tag: bytes, version: tuple[int, ...], serialization: int = 0) -> Path:
    path.write_bytes(tag + struct.pack("<I", serialization) + bytes(16) + bytes(version) + b"rest of the plan")
    return path


def test_the_engine_header(tmp_path: Path) -> None:
    path = engine(tmp_path / "e", b"ftrt", (10, 3, 0, 26))
    assert engine_file_version(path) == ("TensorRT", Version(10, 3, 0, 26))
    assert engine_file_version(engine(path, b"vtrt", (1, 7, 1, 116)))[0] == "TensorRT for RTX"
    for content in (b"", b"ftrt", b"ptrt" + bytes(40), b"PK" + bytes(40)):
        path.write_bytes(content)
        with pytest.raises(ArtifactError, match="no TensorRT engine"):
            engine_file_version(path)
    with pytest.raises(ArtifactError):
        engine_file_version(engine(path, b"ftrt", (10, 3, 0, 26), serialization=7))


def test_foreign_engines_are_refused_by_name(tmp_path: Path) -> None:
    path = engine(tmp_path / "e", b"ftrt", (10, 3, 0, 26))
    refuse_foreign_engine(path, Version.parse("10.3.0.26"))
    with pytest.raises(ArtifactError, match=r"TensorRT 10\.3\.0\.26; this device has 10\.16\.2\.10"):
        refuse_foreign_engine(path, Version.parse("10.16.2.10"))
    with pytest.raises(ArtifactError, match=r"TensorRT for RTX 1\.7\.1\.116"):
        refuse_foreign_engine(engine(path, b"vtrt", (1, 7, 1, 116)), Version.parse("10.3.0.26"))


def wish(**held: str) -> EngineWish:
    return EngineWish("fp16", "strong.onnx", {}, {}, WeakRequest("weak.onnx", ("fp16",), held))


def test_a_strong_wish_sends_no_flags() -> None:
    mapped = map_wish(wish(a="fp32"), Features.of(Version.parse("11.1.0")), "strong")
    assert (mapped.model, mapped.flags, dict(mapped.layer_precisions)) == ("strong.onnx", (), {})


def test_names_that_the_option_cannot_spell_are_told() -> None:
    weak = WeakRequest("weak.onnx", ("fp16",), {"/a/Conv": "fp32", "x,y": "fp32", "p:q": "fp32", "s*": "fp32"})
    mapped = map_wish(EngineWish("fp16", "s", {}, {}, weak), Features.of(Version.parse("10.3.0")), "weak")
    assert dict(mapped.layer_precisions) == {"/a/Conv": "fp32"}
    assert len(mapped.notes) == 3 and all("layerPrecisions" in note for note in mapped.notes)


def test_shapes_spell_scalars_and_quoted_names() -> None:
    profiles = {"x": {"opt": (8, 3)}, "in:0": {"opt": (1,)}, "s": {"opt": ()}}
    assert shapes_spec(profiles, "opt") == "x:8x3,'in:0':1,s:scalar"


def test_locked_clocks(tmp_path: Path) -> None:
    folder = tmp_path / "sys/class/devfreq/17000000.gpu"
    folder.mkdir(parents=True)
    assert clocks(tmp_path) == "unknown"
    (folder / "max_freq").write_text("1300500000\n")
    (folder / "min_freq").write_text("306000000\n")
    assert clocks(tmp_path) == "not locked (306 to 1300 MHz)"
    (folder / "min_freq").write_text("1300500000\n")
    assert clocks(tmp_path) == "locked at 1300 MHz"
