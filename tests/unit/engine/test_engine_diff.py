# ruff: noqa: E501 (lines of the real grammar are long)
"""Two engines: aligned by ONNX nodes, times refused where they cannot be compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deploychain.cli.app import main
from deploychain.engine.diff import EngineDiff, diff_evidence
from deploychain.engine.evidence import Evidence, read_evidence

BANNER = "TensorRT.trtexec [TensorRT v101601] [b11] # trtexec --onnx=a.onnx"


def layer(name: str, nodes: str, word: str = "Half", kind: str = "CaskConvolution", dims: int = 8) -> dict[str, Any]:
    tensor = {"Name": f"{name}.t", "Dimensions": [1, dims], "Format/Datatype": word}
    metadata = "\x1e".join(f"[ONNX Layer: {n}]" for n in nodes.split()) if nodes else ""
    return {"Name": name, "LayerType": kind, "Inputs": [tensor], "Outputs": [tensor], "Metadata": metadata}


def engine(tmp_path: Path, name: str, layers: list[dict[str, Any]], *more: Path) -> Evidence:
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps({"Layers": layers, "Bindings": ["x"]}))
    return read_evidence([path, *more], asked="fp16")


def log(
    tmp_path: Path, name: str, mean: float, *, version: str = "101601", device: str = "Orin", graph: str = "Disabled"
) -> Path:
    path = tmp_path / f"{name}.log"
    banner = BANNER.replace("101601", version)
    path.write_text(
        f"&&&& RUNNING {banner}\n"
        f"[03/01/2026-10:00:00] [I] === Inference Options ===\n[03/01/2026-10:00:00] [I] CUDA Graph: {graph}\n"
        f"[03/01/2026-10:00:00] [I] === Device Information ===\n[03/01/2026-10:00:00] [I] Selected Device: {device}\n"
        f"[03/01/2026-10:00:00] [I] === Performance summary ===\n"
        f"[03/01/2026-10:00:00] [I] Latency: min = 1 ms, max = 9 ms, mean = {mean} ms, median = 2 ms, percentile(99%) = 3 ms\n"
        f"[03/01/2026-10:00:00] [W] x\n&&&& PASSED {banner}\n"
    )
    return path


def kinds(diff: EngineDiff) -> dict[str, str]:
    return {"+".join(change.nodes) or (change.a or change.b)[0].name: change.kind for change in diff.changes}


def test_aligned_by_nodes_not_names(tmp_path: Path) -> None:
    a = engine(
        tmp_path, "a",
        [layer("conv_a", "/c1"), layer("one", "/c2"), layer("two", "/r2"), layer("p", "/p /q"), layer("old", "/gone")],
    )  # fmt: skip
    b = engine(
        tmp_path, "b",
        [layer("other name", "/c1", "Float"), layer("fused", "/c2 /r2"), layer("p1", "/p"), layer("p2", "/q"), layer("n", "/new", dims=9)],
    )  # fmt: skip
    diff = diff_evidence(a, b)
    assert kinds(diff) == {
        "/c1": "precision", "/c2+/r2": "fused", "/p+/q": "split", "old": "only-a", "n": "only-b",
    }  # fmt: skip
    change = diff.of_kind("precision")[0]
    assert [layer.compute and layer.compute.value for layer in (*change.a, *change.b)] == ["fp16", "fp32"]


def test_same_engine_has_no_change(tmp_path: Path) -> None:
    layers = [layer("a", "/a"), layer("b", ""), layer("b", "")]
    diff = diff_evidence(engine(tmp_path, "a", layers), engine(tmp_path, "b", layers))
    assert {change.kind for change in diff.changes} == {"same"} and len(diff.changes) == 3


def test_renumbered_nodes_are_paired_by_operator_and_shape_as_a_guess(tmp_path: Path) -> None:
    a = engine(tmp_path, "a", [layer("Conv_0 + Relu_1", "", dims=4), layer("Conv_2", "", dims=5)])
    b = engine(
        tmp_path, "b", [layer("w + QuantizeLinear_7 + Conv_9", "", "Float", dims=4), layer("Conv_19", "", dims=5)]
    )
    diff = diff_evidence(a, b)
    assert [(change.kind, change.how) for change in diff.changes] == [("precision", "order"), ("same", "order")]
    assert "a guess" in diff.headline()


def test_other_models_are_said_to_be_other(tmp_path: Path) -> None:
    a = engine(tmp_path, "a", [layer("a", "/a/Conv", dims=3)])
    b = engine(tmp_path, "b", [layer("b", "/b/Gemm", dims=4)])
    assert "different models" in diff_evidence(a, b).headline()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"version": "8601"}, "TensorRT version differs: 10.16.1 and 8.6.1"),
        ({"device": "A100"}, "device differs: Orin and A100"),
        ({"graph": "Enabled"}, "CUDA graph differs: Disabled and Enabled"),
    ],
)
def test_latency_is_compared_only_under_the_same_conditions(
    tmp_path: Path, change: dict[str, str], reason: str | None
) -> None:
    layers = [layer("a", "/a")]
    a = engine(tmp_path, "a", layers, log(tmp_path, "la", 2.0))
    b = engine(tmp_path, "b", layers, log(tmp_path, "lb", 1.0, **change))
    diff = diff_evidence(a, b)
    assert diff.comparable is (reason is None)
    if reason is None:
        assert "Latency 2 -> 1 ms (-50.0 %)" in diff.headline()
    else:
        assert reason in diff.headline() and "->" not in diff.headline()
        assert diff.to_json()["latency_ms"] is None
        told = diff_evidence(a, b, anyway=True)
        assert "Latency 2 -> 1 ms" in told.headline() and reason in told.headline()


def test_unknown_conditions_are_not_the_same(tmp_path: Path) -> None:
    layers = [layer("a", "/a")]
    diff = diff_evidence(engine(tmp_path, "a", layers), engine(tmp_path, "b", layers))
    assert not diff.comparable and "nothing says" in diff.reasons[0]


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for side, word in (("a", "Half"), ("b", "Float")):
        (tmp_path / side).mkdir()
        document = {"Layers": [layer("c", "/c", word), layer("d", "/d")], "Bindings": []}
        (tmp_path / side / "layers.json").write_text(json.dumps(document))
    with pytest.raises(SystemExit) as caught:
        main(["diff", str(tmp_path / "a"), str(tmp_path / "b"), "--json"])
    assert caught.value.code == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "deploychain.diff/1" and document["summary"]["precision"] == 1
    assert document["changes"][0]["nodes"] == ["/c"] and document["comparable"] is False
    with pytest.raises(SystemExit):
        main(["diff", str(tmp_path / "a"), str(tmp_path / "b")])
    out = capsys.readouterr().out
    assert out.splitlines()[0].startswith("1 precision changes") and "Times are not compared" in out
    with pytest.raises(SystemExit) as caught:
        main(["diff", str(tmp_path / "a"), str(tmp_path / "none.json")])
    assert caught.value.code == 3
