"""Polygraphy's own output (golden files) and its grammar by hand."""

from __future__ import annotations

from pathlib import Path

from deploychain.engine.evidence import read_evidence
from deploychain.precision import Precision
from deploychain.records import LayerKind, LayerVerdict

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "engine"


def test_inspect_model() -> None:
    evidence = read_evidence(GOLDEN / "polygraphy-inspect.txt", asked="fp16")
    assert evidence.inputs[0].kind == "polygraphy-inspect"
    assert [layer.layer_type for layer in evidence.layers] == [
        "Reformat", "CaskConvolution", "Reformat", "CaskConvolution", "Myelin", "shape_call", "TopK",
    ]  # fmt: skip
    conv0, conv1, opaque = evidence.layers[1], evidence.layers[3], evidence.layers[4]
    assert conv0.name == "conv0 + relu0" and conv0.inputs[0].dims == (1, 3, 8, 8)
    assert conv0.inputs[0].format == "Channel major FP16 format where channel % 4 == 0"
    assert (conv0.verdict, conv1.verdict, opaque.verdict) == (
        LayerVerdict.AS_ASKED, LayerVerdict.FALLBACK, LayerVerdict.POSSIBLE,
    )  # fmt: skip
    assert evidence.layers[0].origin == "REFORMAT" and evidence.layers[5].kind is LayerKind.HELPER
    assert evidence.complete and evidence.listing is not None and evidence.listing.inputs == {"x"}


def test_inspect_with_several_tensors_and_profiles(tmp_path: Path) -> None:
    text = (
        "[I] Loading bytes from a.plan\n"
        "[I] ==== TensorRT Engine ====\n"
        "    ---- 2 Engine Input(s) ----\n"
        "    {a [dtype=float32, shape=(1, -1)],\n"
        "     b [dtype=float32, shape=(1,)]}\n"
        "    ---- 1 Layer(s) Per Profile ----\n"
        "    - Profile: 0\n"
        "        Layer 0    | add [it], yes [Op: kgen]\n"
        "            {a [dtype=float16, shape=(1, -1), Format: FP8],\n"
        "             odd [name] [dtype=bfloat16, shape=(1, -1)]}\n"
        "             -> {y [shape=(1,)]}\n"
        "    - Profile: 1\n"
        "        Layer 0    | add [profile 1] [Op: kgen]\n"
        "            {} -> {y [dtype=int8, shape=(1,)]}\n"
    )
    path = tmp_path / "x.txt"
    path.write_text(text)
    evidence = read_evidence(path, profile=0)
    (layer,) = evidence.layers
    assert layer.name == "add [it], yes"
    assert [(t.name, t.dtype) for t in layer.inputs] == [("a", Precision.FP8), ("odd [name]", Precision.BF16)]
    assert [(t.name, t.dtype) for t in layer.outputs] == [("y", None)]
    assert dict(evidence.profiles) == {0: 1, 1: 1}


def test_saved_results() -> None:
    facts = read_evidence(GOLDEN / "polygraphy-results.json").inputs[0].facts
    runners = facts["runners"]
    assert isinstance(runners, list)
    assert [(r["name"], r["iterations"], r["outputs"]) for r in runners] == [
        ("onnxrt-runner-N0-01", 1, ["y"]), ("trt-runner-N0-01", 1, ["y"]),
    ]  # fmt: skip
    assert runners[1]["runtime_ms"]["mean"] == 2.0


def test_accuracy_results() -> None:
    reading = read_evidence(GOLDEN / "polygraphy-accuracy.json").inputs[0]
    assert reading.kind == "polygraphy-accuracy" and reading.facts["passed"] is False
    pairs = reading.facts["pairs"]
    assert isinstance(pairs, list) and pairs[0]["runners"] == ["onnxrt-runner-N0-01", "trt-runner-N0-01"]
    output = pairs[0]["outputs"][0]
    assert output["output"] == "y" and output["passed"] is False
    assert abs(output["max_absdiff"] - 0.01) < 1e-6


def test_debug_precision(tmp_path: Path) -> None:
    path = tmp_path / "debug.log"
    path.write_text(
        "[I] Using DataType.FLOAT as higher precision\n"
        "[I]     RUNNING | Iteration 1 | Approximately 3 iteration(s) remaining\n"
        "[I]         Selecting first 8 layer(s) to run in higher precision\n"
        "[I]     PASSED | Iteration 1 | Duration 2.5s\n"
        "[I]         Selecting first 4 layer(s) to run in higher precision\n"
        "[E]     FAILED | Iteration 2 | Duration 2.5s\n"
        "[I] To achieve acceptable accuracy, try running the first 6 layer(s) in higher precision\n"
        "[I] Finished 2 iteration(s) | Passed: 1/2 | Pass Rate: 50.0%\n"
    )
    evidence = read_evidence(path)
    assert evidence.inputs[0].kind == "polygraphy-debug"
    facts = evidence.runs[0].facts
    assert facts["answer"] == {"which": "first", "layers": 6} and facts["higher_precision"] == "DataType.FLOAT"
    tried = facts["tried"]
    assert isinstance(tried, list) and [(t["layers"], t["passed"]) for t in tried] == [(8, True), (4, False)]
    assert evidence.runs[0].status == "unknown" and evidence.runs[0].warnings == ()
