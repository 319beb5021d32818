"""`--fail-on`: what was not shown is never a pass. Each case names the exit code that a careful reader would give."""

# ruff: noqa: E501 - one case a line

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deploychain.cli.app import main
from deploychain.engine.evidence import read_engines, read_evidence

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "engine"


def write(folder: Path, name: str, value: Any) -> Path:
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def layer(name: str, word: str = "Half", kind: str = "CaskConvolution") -> dict[str, Any]:
    tensor = {"Name": f"{name}.t", "Dimensions": [1, 8], "Format/Datatype": word}
    return {"Name": name, "LayerType": kind, "Inputs": [tensor], "Outputs": [{**tensor, "Name": f"{name}.o"}]}


def graph(*layers: dict[str, Any] | str) -> dict[str, Any]:
    return {"Layers": list(layers), "Bindings": ["x"]}


def log(*runs: str) -> str:
    return "".join(runs)


def run_text(
    word: str | None, options: str = "--onnx=m.onnx --fp16", name: str = "conv", status: str = "PASSED"
) -> str:
    """One verbose run that lists one layer, or none."""
    stamp = "[01/02/2024-10:00:00]"
    text = f"&&&& RUNNING TensorRT.trtexec [TensorRT v8601] # trtexec {options}\n{stamp} [I] === Build Options ===\n"
    text += f"{stamp} [I] Precision: FP32+FP16\n{stamp} [W] [TRT] a warning\n"
    if word:
        text += f"{stamp} [V] [TRT] Engine Layer Information:\n"
        text += f"Layer(CaskConvolution): {name}, Tactic: 0x1, a ({word}[1,8]) -> b ({word}[1,8])\n{stamp} [I] done\n"
    return text + f"&&&& {status} TensorRT.trtexec [TensorRT v8601] # trtexec {options}\n"


FINE, BAD = graph(layer("a")), graph(layer("a"), layer("b", "Float"), layer("c"))
NO_LAYERS = run_text(None)

# files, options, exit code of fallback, possible, unknown
CASES: list[tuple[str, dict[str, Any], list[str], tuple[int, int, int]]] = [
    ("all as asked", {"l.json": FINE}, ["--asked", "fp16"], (0, 0, 0)),
    ("one certain fallback", {"l.json": BAD}, ["--asked", "fp16"], (1, 1, 1)),
    ("a log without layers", {"l.log": NO_LAYERS}, [], (3, 3, 1)),
    ("times alone", {"t.json": [{"computeMs": 1.0, "latencyMs": 1.1}]}, [], (3, 3, 1)),
    ("names alone", {"l.json": graph("a", "b")}, ["--asked", "fp16"], (3, 3, 1)),
    ("an empty list", {"l.json": graph()}, ["--asked", "fp16"], (3, 3, 1)),
    ("nobody says what was asked", {"l.json": FINE}, [], (3, 3, 3)),
    ("an FP32 engine, nobody says what was asked", {"l.json": graph(layer("a", "Float"))}, [], (3, 3, 1)),
    ("no type is printed", {"l.json": graph(layer("a", "N/A"))}, ["--asked", "fp16"], (3, 3, 1)),
    ("one type is missing", {"l.json": graph(layer("a"), layer("b", "N/A"))}, ["--asked", "fp16"], (0, 0, 1)),
    ("copies alone", {"l.json": graph(layer("a", kind="Reformat"))}, ["--asked", "fp16"], (3, 3, 3)),
    ("a cut file", {"l.json": json.dumps(graph(*(layer(f"l{i}") for i in range(9))))[:-300]}, ["--asked", "fp16"], (3, 3, 1)),
    ("the bad engine is left out", {"a.json": FINE, "b.json": graph(layer("p", "Float"), layer("q", "Float"))}, ["--asked", "fp16"], (3, 3, 3)),
    ("a second file is missing", {"a.json": FINE, "b.json": None}, ["--asked", "fp16"], (3, 3, 3)),
    ("a second file is no artefact", {"a.json": FINE, "b.txt": "hello\n"}, ["--asked", "fp16"], (3, 3, 3)),
    ("a log whose run passed", {"l.log": run_text("Half")}, [], (0, 0, 0)),
    ("a log whose run failed", {"l.log": run_text("Half", status="FAILED")}, [], (1, 1, 1)),
    ("two runs, the first fell back", {"l.log": log(run_text("Float", name="one"), run_text("Half", name="two"))}, [], (1, 1, 1)),
    ("two runs, the last fell back", {"l.log": log(run_text("Half", name="one"), run_text("Float", name="two"))}, [], (1, 1, 1)),
    ("two runs, both fine", {"l.log": log(run_text("Half", name="one"), run_text("Half", name="two"))}, [], (0, 0, 0)),
    ("two runs, asked for the fine one", {"l.log": log(run_text("Float", name="one"), run_text("Half", name="two"))}, ["--run", "2"], (0, 0, 0)),
    ("two builds, one without layers", {"l.log": log(run_text(None), run_text("Half"))}, [], (3, 3, 3)),
    ("the engine loaded again", {"l.log": log(run_text("Half"), run_text(None, "--loadEngine=m.engine"))}, [], (0, 0, 0)),
    ("a fallback in the other profile", {"l.json": graph(layer("a"), layer("a [profile 1]", "Float"), layer("b [profile 1]"))}, ["--asked", "fp16"], (1, 1, 1)),
    ("the profile that is fine", {"l.json": graph(layer("a"), layer("a [profile 1]", "Float"), layer("b [profile 1]"))}, ["--asked", "fp16", "--profile", "0"], (0, 0, 0)),
    ("nothing readable", {"l.txt": "hello\n"}, [], (3, 3, 3)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].replace(" ", "_"))
def test_exit_code(case: tuple[str, dict[str, Any], list[str], tuple[int, int, int]], tmp_path: Path) -> None:
    _, files, options, codes = case
    paths = [tmp_path / name if value is None else write(tmp_path, name, value) for name, value in files.items()]
    found = []
    for limit in ("fallback", "possible", "unknown"):
        with pytest.raises(SystemExit) as caught:
            main(["layers", *map(str, paths), *options, "--fail-on", limit])
        found.append(caught.value.code)
    assert tuple(found) == codes


def test_what_is_missing_is_said_on_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, "l.log", NO_LAYERS)
    with pytest.raises(SystemExit):
        main(["layers", str(path), "--fail-on", "fallback", "--json"])
    out, err = capsys.readouterr()
    assert json.loads(out)["summary"] is None  # one document, and nothing else
    assert "--fail-on fallback cannot be answered: no layers are listed (add --exportLayerInfo" in err


def test_a_graph_that_says_what_it_asks_needs_no_other_word() -> None:
    evidence = read_evidence(GOLDEN / "rtx-guard-lone.txt", model=GOLDEN / "guard-lone.onnx")
    assert evidence.asked_by_node
    assert not read_evidence(GOLDEN / "rtx-guard-lone.txt").asked_by_node


def test_a_failed_run_among_hundreds_is_not_forgotten(tmp_path: Path) -> None:
    runs = [run_text(None, "--loadEngine=e") for _ in range(240)]
    assert read_evidence(write(tmp_path, "fine.log", log(*runs))).passed is True
    runs[220] = run_text(None, "--loadEngine=e", status="FAILED")
    evidence = read_evidence(write(tmp_path, "bad.log", log(*runs)))
    assert evidence.passed is False and len(evidence.runs) == 200
    assert evidence.headline() == "The run failed; no layers are listed: precision is unknown."


def test_every_engine_is_read_once_and_the_shown_one_first(tmp_path: Path) -> None:
    path = write(tmp_path, "l.log", log(run_text("Float", name="one"), run_text("Half", name="two")))
    names = [engine.layers[0].name for engine in read_engines(path)]
    assert names == ["two", "one"] and read_evidence(path).layers[0].name == "two"
    # Layers beside the log stand for the engine of the log: nothing else is judged.
    beside = write(tmp_path, "l.json", graph(layer("two")))
    assert len(read_engines([path, beside])) == 1
