"""The build process against the real TensorRT for RTX, and what becomes of it when it fails, hangs or dies."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("tensorrt_rtx", reason="TensorRT for RTX is not installed")
pytest.importorskip("onnx", reason="the models are made with onnx")

import build_models

from deploychain.backends.tensorrt_build import Build, BuildRequest, build_engine
from deploychain.errors import ConfigError

pytestmark = pytest.mark.rtx


def build(model: Path, tmp_path: Path, capability: str = "8.9", **more: object) -> Build:
    request = BuildRequest("tensorrt_rtx", model, tmp_path / "made.engine", capability, **more)  # type: ignore[arg-type]
    return build_engine(request, tmp_path, timeout=120)


def datatypes(text: str, layer_type: str) -> list[str]:
    """Datatype of the first input of every layer of one type, read without the package's own parser."""
    lines = [line for line in text.splitlines() if f"LayerType: {layer_type}," in line]
    return [line.split("Inputs: [ {", 1)[1].split("Datatype: ", 1)[1].split(",", 1)[0] for line in lines]


def test_engine_and_evidence(tmp_path: Path) -> None:
    made = build(build_models.conv(tmp_path / "m.onnx"), tmp_path)
    assert made.built, made.reason
    assert (tmp_path / "made.engine").stat().st_size == made.size_bytes
    assert made.profiles == {"x": {"min": [1, 8, 16, 16], "opt": [8, 8, 16, 16], "max": [16, 8, 16, 16]}}
    assert "Name: " in made.text and "I/O Tensors:" in made.text
    assert datatypes(made.text, "correlation") == ["Float"]
    layer = next(x for x in made.network if x["onnx_node"] == "/conv/Conv")
    assert (layer["type"], layer["inputs"][0], layer["outputs"]) == ("CONVOLUTION", "FLOAT", ["FLOAT"])
    assert made.settings["strongly_typed"] is True


def test_scalar_scales_build_int8_and_scales_of_shape_1_do_not(tmp_path: Path) -> None:
    good = build(build_models.quantised(tmp_path / "good.onnx"), tmp_path)
    assert datatypes(good.text, "correlation") == ["Int8"] * 3
    bad = build(build_models.quantised(tmp_path / "bad.onnx", scale_shape=(1,)), tmp_path)
    assert bad.built, "the library builds it without a word: only the layer listing tells"
    assert "Int8" not in datatypes(bad.text, "correlation")


@pytest.mark.parametrize(
    ("make", "kind", "node", "op", "word"),
    [
        (build_models.nms, "build", "/post/nms", "NonMaxSuppression", "no runners"),
        (build_models.scatter_add, "parse", "/post/Scatter", "ScatterElements", "reduction"),
        (build_models.plugin, "parse", "/head/MyOp", "MyOp", "Plugin not found"),
    ],
)
def test_what_cannot_be_built_is_named(tmp_path: Path, make, kind: str, node: str, op: str, word: str) -> None:  # type: ignore[no-untyped-def]
    made = build(make(tmp_path / "m.onnx"), tmp_path)
    assert not made.built
    assert made.kind == kind
    assert made.problems[0]["node"] == node and made.problems[0]["op"] == op
    assert node in made.reason and op in made.reason and word in made.reason
    assert "cudaError" not in made.reason
    assert not (tmp_path / "made.engine").exists()


def test_capability_7_5_names_the_gemm(tmp_path: Path) -> None:
    made = build(build_models.gemm(tmp_path / "m.onnx"), tmp_path, "7.5")
    assert not made.built and "/fc/Gemm" in made.reason and "FP32 GEMM is not supported" in made.reason


def test_unknown_capability_lists_the_known_ones(tmp_path: Path) -> None:
    made = build(build_models.gemm(tmp_path / "m.onnx"), tmp_path, "9.0")
    assert made.kind == "capability"
    assert "9.0" in made.reason and "8.9" in made.reason and "12.0" in made.reason


def test_a_failed_turing_build_does_not_leak_into_the_next(tmp_path: Path) -> None:
    # In one process the build after a failed 7.5 build computes its INT8 convolutions in Float.
    failed = build(build_models.gemm(tmp_path / "fail.onnx"), tmp_path, "7.5")
    assert not failed.built
    after = build(build_models.quantised(tmp_path / "good.onnx"), tmp_path)
    assert datatypes(after.text, "correlation") == ["Int8"] * 3


def test_shapes_that_do_not_fit_are_the_users_error(tmp_path: Path) -> None:
    model = build_models.conv(tmp_path / "m.onnx")
    with pytest.raises(ConfigError, match="'x'") as caught:
        build(model, tmp_path, shapes={"xx": {"min": [1, 8, 16, 16], "opt": [2, 8, 16, 16], "max": [4, 8, 16, 16]}})
    assert caught.value.where == "build.shapes.xx"


def test_relative_paths_are_those_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_models.conv(tmp_path / "m.onnx")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path)
    made = build_engine(BuildRequest("tensorrt_rtx", Path("m.onnx"), Path("e"), "8.9"), Path("work"), timeout=120)
    assert made.built and (tmp_path / "e").is_file()


def test_axis_names_reach_the_profile(tmp_path: Path) -> None:
    model = build_models.relu(tmp_path / "m.onnx", ["batch", 3, "height", 32])
    with pytest.raises(ConfigError, match="height"):
        build(model, tmp_path)
    made = build(model, tmp_path, examples={"x": (5, 3, 40, 32)})
    assert made.profiles["x"] == {"min": [1, 3, 20, 32], "opt": [8, 3, 40, 32], "max": [16, 3, 80, 32]}
    assert any("height" in note for note in made.notes)


def other_worker(code: str, tmp_path: Path, timeout: float) -> Build:
    (tmp_path / "made.engine").write_bytes(b"left over from another build")
    request = BuildRequest("tensorrt_rtx", tmp_path / "m.onnx", tmp_path / "made.engine", "8.9")
    return build_engine(request, tmp_path, timeout=timeout, command=[sys.executable, "-c", code])


def test_a_hanging_build_is_killed_with_its_children(tmp_path: Path) -> None:
    code = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(tmp_path / 'pids')!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "time.sleep(600)"
    )
    made = other_worker(code, tmp_path, timeout=4)
    assert made.kind == "timeout" and "was killed" in made.reason
    assert not (tmp_path / "made.engine").exists()
    for pid in (tmp_path / "pids").read_text().split():
        stat = Path(f"/proc/{pid}/stat")
        assert not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] in "ZX"


@pytest.mark.parametrize(("number", "name"), [(9, "SIGKILL"), (11, "SIGSEGV"), (6, "SIGABRT")])
def test_a_killed_build_is_named(tmp_path: Path, number: int, name: str) -> None:
    code = f"import os; print('last words', flush=True); os.kill(os.getpid(), {number})"
    made = other_worker(code, tmp_path, timeout=60)
    assert made.kind == "crash" and name in made.reason and "last words" in made.reason
    assert ("memory" in made.reason) == (number == 9)
    assert not (tmp_path / "made.engine").exists()


def test_a_worker_that_exits_without_a_result_is_a_crash(tmp_path: Path) -> None:
    made = other_worker("raise SystemExit('no such library')", tmp_path, timeout=60)
    assert made.kind == "crash" and "status 1" in made.reason and "no such library" in made.reason
