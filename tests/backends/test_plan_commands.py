"""The plan commands as people call them: files, exit codes, JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxruntime", reason="needs the frameworks of the [chain] extra")
pytest.importorskip("modelopt.onnx", reason="needs ModelOpt")

import qdq_models
from plan_models import PLANTED, Graph

from deploychain.cli.app import main

pytestmark = pytest.mark.chain


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit code and standard output of one command."""
    with pytest.raises(SystemExit) as ended:
        main([str(a) for a in arguments])
    return int(ended.value.code or 0), capsys.readouterr().out


@pytest.fixture()
def case(tmp_path: Path) -> tuple[Path, Path]:
    made = PLANTED["variance_by_difference"]()
    onnx.save(made.model, tmp_path / "m.onnx")
    np.savez(tmp_path / "d.npz", **made.data)
    return tmp_path / "m.onnx", tmp_path / "d.npz"


def test_json_has_what_scripts_rely_on(
    case: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    model, data = case
    code, text = call(capsys, "plan", model, "--data", data, "-o", tmp_path / "o.onnx", "--no-prove", "--json")
    document: dict[str, Any] = json.loads(text)
    assert code == 0
    assert document["schema"] == "deploychain.plan/1"
    keys = {"name", "op", "module", "precision", "reason", "abs_max", "overflow_share", "underflow_share"}
    assert all(keys <= node.keys() for node in document["nodes"])
    finding = document["findings"][0]
    assert {"node", "module", "kind", "severity", "detail", "remedy"} <= finding.keys()
    assert (finding["node"], finding["kind"], finding["severity"]) == ("/variance/Sub", "sensitive", "error")
    assert document["drop"] < 1
    assert document["evaluations"] > 0
    assert Path(document["output"]) == tmp_path / "o.onnx"
    assert onnx.load(document["output"]).opset_import[0].version == 17


def test_search_keeps_the_limit_and_ends_with_one_where_it_cannot(
    case: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    model, data = case
    code, text = call(capsys, "plan", model, "--data", data, "--max-drop", "1", "--no-prove", "--json")
    document = json.loads(text)
    assert code == 0
    assert document["drop"] <= 1
    kept = {n["name"] for n in document["nodes"] if n["precision"] == "fp32"}
    assert "/variance/Sub" in kept
    assert "/shift/Add" not in kept
    arguments = ("--max-drop", "1", "--pin", "/square/*=fp16", "--no-prove", "--json")
    code, text = call(capsys, "plan", model, "--data", data, *arguments)
    assert code == 1
    assert json.loads(text)["ok"] is False


def test_saved_plan_is_applied_as_it_is_and_diffed(
    case: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    model, data = case
    first, second = tmp_path / "a.onnx", tmp_path / "b.onnx"
    call(capsys, "plan", model, "--data", data, "-o", first, "--save-plan", tmp_path / "a.yaml", "--no-prove")
    text = (tmp_path / "a.yaml").read_text()
    # Edited by hand: one node moved to FP32 by a pin.
    (tmp_path / "edited.yaml").write_text(text.replace("pin: {}", "pin: {/shift/Add: fp32}"))
    code, _ = call(capsys, "plan", model, "--data", data, "-o", second, "--plan", tmp_path / "a.yaml", "--no-prove")
    assert code == 0
    assert first.read_bytes() == second.read_bytes()
    call(
        capsys,
        *("plan", model, "--data", data, "-o", second, "--plan", tmp_path / "edited.yaml", "--no-prove"),
        *("--save-plan", tmp_path / "b.yaml"),
    )
    code, text = call(capsys, "plan", "diff", tmp_path / "a.yaml", tmp_path / "b.yaml", "--json")
    assert code == 1
    assert [(c["node"], c["before"], c["after"]) for c in json.loads(text)["changes"]] == [
        ("/shift/Add", "fp16", "fp32")
    ]
    code, text = call(capsys, "plan", "diff", tmp_path / "a.yaml", tmp_path / "a.yaml")
    assert code == 0
    assert "agree on every node" in text


def test_plan_of_another_model_is_refused(
    case: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    model, data = case
    call(capsys, "plan", model, "--data", data, "--save-plan", tmp_path / "a.yaml", "--no-prove")
    other = PLANTED["log_of_small"]()
    onnx.save(other.model, tmp_path / "other.onnx")
    np.savez(tmp_path / "other.npz", **other.data)
    arguments = ("--data", tmp_path / "other.npz", "--plan", tmp_path / "a.yaml", "--json")
    code, text = call(capsys, "plan", tmp_path / "other.onnx", *arguments)
    assert code == 2
    assert json.loads(text)["error"]["where"] == "/loss/Log"


def test_options_for_weakly_typed_builds(
    case: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    model, data = case
    code, text = call(
        capsys, "plan", model, "--data", data, "-o", tmp_path / "o.onnx", "--target", "tensorrt-10", "--json"
    )
    assert code == 0
    document = json.loads(text)
    wide = {n["name"] for n in document["nodes"] if n["precision"] == "fp32"}
    command = Path(document["texts"][0]).read_text()
    listed = next(line for line in command.splitlines() if "--layerPrecisions=" in line)
    names = {part.rpartition(":")[0] for part in listed.strip(" \\").partition("=")[2].split(",")}
    assert names == wide
    assert "--precisionConstraints=obey" in command
    script: dict[str, Any] = {"__name__": "script"}
    source = Path(document["texts"][1]).read_text().replace("import tensorrt as trt", "")
    exec(compile(source, "script", "exec"), script)
    assert script["FP32"] == wide


def test_top1_is_the_metric_where_there_are_targets(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    g = Graph()
    model = g.model({"x": ["n", 8]}, g.linear("x", 8, 4, name="/head/MatMul"), ["n", 4])
    onnx.save(model, tmp_path / "m.onnx")
    x = g.random.standard_normal((40, 8)).astype(np.float32)
    np.savez(tmp_path / "d.npz", x=x, targets=np.arange(40) % 4)
    code, text = call(capsys, "plan", tmp_path / "m.onnx", "--data", tmp_path / "d.npz", "--max-drop", "0.5", "--json")
    document = json.loads(text)
    assert code == 0
    assert document["drop_of"] == "top1, points"
    assert document["drop"] == 0.0


def test_int8_of_a_plain_model_is_calibrated(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    g = Graph()
    h = g.op("Relu", g.linear("x", 16, 32, name="/a/MatMul"), name="/a/Relu")
    onnx.save(g.model({"x": ["n", 16]}, g.linear(h, 32, 8, name="/b/MatMul"), ["n", 8]), tmp_path / "m.onnx")
    np.savez(tmp_path / "d.npz", x=g.random.standard_normal((64, 16)).astype(np.float32))
    code, text = call(
        capsys, "plan", tmp_path / "m.onnx", "--data", tmp_path / "d.npz", "--precision", "int8", "--json"
    )
    document = json.loads(text)
    assert code == 0
    assert {n["precision"] for n in document["nodes"] if n["op"] == "MatMul"} == {"int8"}
    assert 0 < document["drop"] < 5


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (("--precision", "fp8"), 2, "fp8"),
        (("--target", "tensorrt-99"), 2, "tensorrt-99"),
        (("--pin", "no-precision"), 2, "no-precision"),
        (("--data", "missing.npz"), 3, "missing.npz"),
        (("--plan", "missing.yaml"), 3, "missing.yaml"),
    ],
)
def test_bad_arguments_end_with_the_code_of_their_family(
    case: tuple[Path, Path], capsys: pytest.CaptureFixture[str], arguments: tuple[str, str], code: int, word: str
) -> None:
    model, data = case
    ended, text = call(capsys, "plan", model, "--data", data, *arguments, "--json")
    assert ended == code
    assert word in json.dumps(json.loads(text)["error"])


def test_sensitivity_names_the_node_that_costs_most(
    case: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    model, data = case
    code, text = call(capsys, "plan", "sensitivity", model, "--data", data, "--json")
    table = json.loads(text)
    assert code == 0
    assert table["exact"] is True
    assert table["evaluations"] == 1 + 2 * len(table["rows"])
    alone = {r["block"]: r["alone"] for r in table["rows"]}
    assert alone["/shift/Add"] < 1 < alone["/variance/Sub"]
    code, text = call(capsys, "plan", "sensitivity", model, "--data", data, "--budget", "5", "--json")
    table = json.loads(text)
    assert table["exact"] is False
    assert table["evaluations"] == 5
    assert [r["block"] for r in table["rows"] if r["alone"] is not None].count("/variance/Sub") == 1


def test_check_finds_and_repairs_a_scale_of_shape_1(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    g = Graph()
    scale, zero = g.weight(np.array([0.02], np.float32), "scale"), g.weight(np.array([0], np.int8), "zero")
    per_column, zeros = g.weight(np.full(8, 0.01, np.float32)), g.weight(np.zeros(8, np.int8))
    w = g.weight(g.random.standard_normal((16, 8)) * 0.2)
    x = g.op("DequantizeLinear", g.op("QuantizeLinear", "x", scale, zero, name="/q"), scale, zero, name="/dq")
    k = g.op("QuantizeLinear", w, per_column, zeros, name="/wq", axis=1)
    k = g.op("DequantizeLinear", k, per_column, zeros, name="/wdq", axis=1)
    onnx.save(g.model({"x": ["n", 16]}, g.op("MatMul", x, k, name="/fc/MatMul"), ["n", 8]), tmp_path / "q.onnx")
    code, text = call(capsys, "plan", "check", tmp_path / "q.onnx", "--json")
    document = json.loads(text)
    assert code == 1
    assert {f["node"] for f in document["findings"] if f["severity"] == "error"} & {"/q", "/dq"}
    code, text = call(capsys, "plan", "check", tmp_path / "q.onnx", "--fix", "-o", tmp_path / "f.onnx", "--json")
    assert code == 0
    assert json.loads(text)["repaired"]
    code, text = call(capsys, "plan", "check", tmp_path / "f.onnx")
    assert code == 0


@pytest.mark.parametrize(
    ("model", "left"),
    [
        # TensorRT's parser: "Non-zero zero point is not supported".
        (qdq_models.chain(zero=3), ["a/QuantizeLinear", "a/DequantizeLinear"]),
        (qdq_models.chain(scale=[0.05]), []),  # a scale of shape [1] is repaired in what is written
        (qdq_models.chain(), []),
    ],
)
def test_a_quantised_model_that_tensorrt_refuses_is_no_success(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, model: onnx.ModelProto, left: list[str]
) -> None:
    onnx.save(model, tmp_path / "q.onnx")
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "d.npz", x=rng.standard_normal((4, qdq_models.CHANNELS, 16, 16)).astype(np.float32))
    arguments = (tmp_path / "q.onnx", "--data", tmp_path / "d.npz", "--precision", "int8", "--no-prove")
    code, text = call(capsys, "plan", *arguments, "--json")
    document = json.loads(text)
    errors = [f for f in document["findings"] if f["severity"] == "error" and f["kind"] == "qdq"]
    assert [f["node"] for f in errors] == left
    assert (code, document["ok"]) == ((1, False) if left else (0, True))
    assert Path(document["output"]).is_file()  # to look at, or for another runtime
    code, text = call(capsys, "plan", *arguments)
    assert code == (1 if left else 0)
    assert ("errors left in the converted model: 2 (qdq)" in text) == bool(left)
