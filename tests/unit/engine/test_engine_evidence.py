# ruff: noqa: E501 (lines of the real grammar are long)
"""Files together: joins, layer JSON old and new, hostile names, the JSON contract and the commands' exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from deploychain.cli.app import main
from deploychain.engine.evidence import Evidence, read_evidence
from deploychain.engine.profiles import parse_profile_json
from deploychain.errors import ArtifactError, ConfigError
from deploychain.precision import Precision
from deploychain.records import LayerKind, LayerVerdict

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "engine"
STAT = {
    "type": ["object", "null"],
    "required": ["min", "max", "mean", "median", "p99"],
    "properties": {key: {"type": ["number", "null"]} for key in ("min", "max", "mean", "median", "p99")},
}
CONTRACT = {
    "type": "object",
    "required": ["schema", "inputs", "runs", "layers", "summary", "problems"],
    "properties": {
        "schema": {"type": "string"},
        "inputs": {
            "type": "array",
            "items": {
                "required": ["path", "kind", "problem"],
                "properties": {"path": {"type": "string"}, "kind": {"type": "string"}, "problem": {"type": ["string", "null"]}},
            },
        },
        "runs": {
            "type": "array",
            "items": {
                "required": ["status", "tensorrt", "throughput_qps", "latency_ms", "gpu_ms", "asked", "profile", "warnings"],
                "properties": {
                    "status": {"enum": ["passed", "failed", "incomplete", "unknown"]},
                    "tensorrt": {"type": ["string", "null"]},
                    "throughput_qps": {"type": ["number", "null"]},
                    "latency_ms": STAT,
                    "gpu_ms": STAT,
                    "asked": {"type": ["string", "null"]},
                    "profile": {"type": ["object", "null"], "required": ["iterations", "rows", "total_ms"]},
                    "warnings": {"type": "array", "items": {"required": ["kind", "text", "layer"]}},
                },
            },
        },
        "layers": {
            "type": "array",
            "items": {
                "required": [
                    "name", "kind", "storage", "compute", "evidence", "verdict", "time_ms", "share", "onnx_nodes", "module",
                ],
                "properties": {
                    "kind": {"enum": ["compute", "copy", "data-movement", "integer", "opaque", "helper"]},
                    "storage": {"required": ["inputs", "outputs", "weights"]},
                    "compute": {"type": ["string", "null"]},
                    "evidence": {"enum": ["weights", "tactic", "tensors", "network", "none"]},
                    "verdict": {"enum": ["as-asked", "fallback", "demoted", "possible", "expected", "unknown"]},
                    "time_ms": {"type": ["number", "null"]},
                    "share": {"type": ["number", "null"]},
                    "onnx_nodes": {"type": "array", "items": {"type": "string"}},
                    "module": {"type": ["string", "null"]},
                },
            },
        },
        "summary": {
            "type": ["object", "null"],
            "required": [
                "layers", "compute_layers", "as_asked", "fallback", "demoted", "possible", "expected", "unknown",
                "time_share_as_asked",
            ],
        },
        "problems": {"type": "array", "items": {"required": ["path", "text"]}},
    },
}  # fmt: skip


def write(tmp_path: Path, name: str, value: Any) -> Path:
    path = tmp_path / name
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def entry(
    name: str, ins: str = "Half", outs: str = "Half", kind: str = "CaskConvolution", **facts: Any
) -> dict[str, Any]:
    def tensors(text: str, side: str) -> list[dict[str, Any]]:
        return [
            {"Name": f"{name}.{side}{i}", "Dimensions": [1, 8], "Format/Datatype": word}
            for i, word in enumerate(text.split("+")) if word
        ]  # fmt: skip

    return {"Name": name, "LayerType": kind, "Inputs": tensors(ins, "i"), "Outputs": tensors(outs, "o"), **facts}


def profile(rows: list[tuple[str, float]], count: int = 10) -> list[dict[str, Any]]:
    total = sum(t for _, t in rows) or 1
    made = [
        {"name": n, "timeMs": t, "averageMs": t / count, "medianMs": t / count, "percentage": t / total * 100}
        for n, t in rows
    ]
    return [{"count": count}, *made]


def check_contract(evidence: Evidence) -> dict[str, Any]:
    document = evidence.to_json()
    jsonschema.validate(document, CONTRACT)
    json.dumps(document, allow_nan=False)
    return document


# -- layer JSON ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["Layers", "layers", "LayerInfo", "layerInfo", None])
def test_list_of_layers_under_any_key(tmp_path: Path, key: str | None) -> None:
    layers = [entry("a"), entry("b", "Float", "Float")]
    path = write(tmp_path, "engine.log", layers if key is None else {key: layers, "Bindings": ["a.i0"]})
    evidence = read_evidence(path, asked="fp16")
    assert evidence.inputs[0].kind == "graph" and [layer.name for layer in evidence.layers] == ["a", "b"]


def test_layers_of_11(tmp_path: Path) -> None:
    def tensor(name: str, word: str, form: str) -> dict[str, Any]:
        return {"Name": name, "Dimensions": [1], "Datatype": word, "Format": form, "Strides": [1], "StrideOrder": [0]}

    document = {
        "ProfilingVerbosity": "DETAILED",
        "Layers": [
            {
                "Name": "conv", "LayerType": "correlation",
                "Inputs": [tensor("x", "Float", "(Linear) Row major linear FP16 format")],
                "Constants": [{"Name": "w", "Dimensions": [8, 8], "DataType": "Int8"}, {"Name": "s", "Dimensions": [1], "DataType": "Float"}],
                "Outputs": [tensor("y", "Float", "")], "_subgraph": {"kept": True}, "Metadata": "[ONNX Layer: /c/Conv]",
            }
        ],
        "I/O Tensors": [{"Name": "x", "IOMode": "Input", "DataType": "Float"}, {"Name": "y", "IOMode": "Output", "DataType": "Float"}],
        "Engine Metadata": {"Multi-Device": "Disabled"},
    }  # fmt: skip
    evidence = read_evidence(write(tmp_path, "a.json", document))
    (layer,) = evidence.layers
    assert layer.inputs[0].dtype is Precision.FP32  # Datatype wins over the words of Format
    assert layer.weights is Precision.INT8 and layer.extra["_subgraph"] == {"kept": True}
    assert evidence.listing is not None and (evidence.listing.inputs, evidence.listing.outputs) == ({"x"}, {"y"})


def test_names_only_and_empty_are_unknown(tmp_path: Path) -> None:
    names = read_evidence(
        write(tmp_path, "a.json", {"Layers": ["conv1 + relu1", "conv2"], "Bindings": ["x"]}), asked="fp16"
    )
    assert names.summary is not None and (names.summary.unknown, names.summary.fallback) == (2, 0)
    assert names.layers[0].onnx_nodes == ("conv1", "relu1") and names.layers[0].nodes_from == "name"
    empty = read_evidence(write(tmp_path, "b.json", {"Layers": [], "Bindings": []}), asked="fp16")
    assert empty.readable and "unknown" in empty.headline()
    assert empty.summary is None and empty.to_json()["summary"] is None  # never "0 fallbacks"


def test_dynamic_shapes_are_unknown_unless_weights_speak(tmp_path: Path) -> None:
    na = "N/A due to dynamic shapes"
    layers = [
        entry("w", na, na, Weights={"Type": "Half", "Count": 9}),
        entry("f", na, na, "ConvActPool", ConvWeights={"Type": "Float", "Count": 9}),
        entry("n", na, na),
    ]
    found = read_evidence(write(tmp_path, "a.json", {"Layers": layers}), asked="fp16").layers
    assert [layer.verdict for layer in found] == [LayerVerdict.AS_ASKED, LayerVerdict.FALLBACK, LayerVerdict.UNKNOWN]


@pytest.mark.parametrize("cut", [0.3, 0.6, 0.9, 0.999])
def test_cut_layer_json(tmp_path: Path, cut: float) -> None:
    text = json.dumps({"Layers": [entry(f"l{i}") for i in range(40)], "Bindings": []}, indent=1)
    evidence = read_evidence(write(tmp_path, "a.json", text[: int(len(text) * cut)]), asked="fp16")
    assert not evidence.complete and "cut" in (evidence.inputs[0].problem or "")
    assert 0 < len(evidence.layers) <= 40 and evidence.headline().startswith("INCOMPLETE")
    assert [layer.name for layer in evidence.layers] == [f"l{i}" for i in range(len(evidence.layers))]


def test_optimisation_profiles_are_counted_apart(tmp_path: Path) -> None:
    layers = [entry(f"conv{p}") for p in ("", " [profile 1]", " [profile 12]")]
    layers.append(entry("node [profile 1]_myl11_2", kind="gemm"))
    path = write(tmp_path, "a.json", {"Layers": layers})
    shown = read_evidence(path, asked="fp16")
    assert [layer.name for layer in shown.layers] == ["conv"] and dict(shown.profiles) == {0: 1, 1: 2, 12: 1}
    assert len(read_evidence(path, asked="fp16", profile=1).layers) == 2
    rows = write(tmp_path, "p.json", profile([("conv [profile 12]", 2.0)]))
    assert [layer.name for layer in read_evidence([path, rows]).layers] == ["conv [profile 12]"]
    with pytest.raises(ConfigError, match="profile 3"):
        read_evidence(path, profile=3)


# -- joins --------------------------------------------------------------------------------------------------------


def test_join_by_name_consumes_duplicates_in_order(tmp_path: Path) -> None:
    layers = write(tmp_path, "l.json", {"Layers": [entry("dup"), entry("a"), entry("dup"), entry("lost")]})
    rows = write(
        tmp_path, "p.json", profile([("dup", 1.0), ("dup", 3.0), ("a", 4.0), ("dummy_shape_call", 0.0), ("extra", 2.0)])
    )
    evidence = read_evidence([rows, layers], asked="fp16")
    assert [layer.time_ms for layer in evidence.layers] == [
        pytest.approx(0.1),
        pytest.approx(0.4),
        pytest.approx(0.3),
        None,
    ]
    assert evidence.joined is not None
    assert evidence.joined.unmatched_rows == ("dummy_shape_call", "extra") and evidence.joined.unmatched_layers == (
        "lost",
    )
    texts = " ".join(problem.text for problem in evidence.problems)
    assert "`extra`" in texts and "dummy_shape_call" not in texts and "`lost`" in texts


def test_kernels_of_a_myelin_node_are_summed_for_it(tmp_path: Path) -> None:
    layers = [entry("c"), entry("{ForeignNode[a...b]}", kind="Myelin")]
    rows = profile([("c", 1.0), ("__mye1_0_myl1_0", 0.5), ("gemm_myl1_1", 1.5)])
    evidence = read_evidence(
        [write(tmp_path, "l.json", {"Layers": layers}), write(tmp_path, "p.json", rows)], asked="fp16"
    )
    assert evidence.layers[1].time_ms == pytest.approx(0.2) and evidence.layers[1].share == pytest.approx(2 / 3)


def test_profile_without_time(tmp_path: Path) -> None:
    layers = write(tmp_path, "l.json", {"Layers": [entry("a"), entry("b")]})
    rows = '[\n  { "count" : 0 }\n, { "name" : "a", "timeMs" : 0, "averageMs" : -nan, "medianMs" : 0, "percentage" : -nan }\n'
    rows += ', { "name" : "b", "timeMs" : 0, "averageMs" : nan, "medianMs" : 0, "percentage" : nan }\n]\n'
    evidence = read_evidence([layers, write(tmp_path, "p.json", rows)], asked="fp16")
    document = check_contract(evidence)
    assert [layer["time_ms"] for layer in document["layers"]] == [None, None]
    assert [layer["share"] for layer in document["layers"]] == [None, None]


NAMES = [
    "a, b, LayerType: c", "x [profile] [0]", "]", "[ONNX Layer: q]", "卷积_0 é 🙂", 'say "hi"', "back\\slash", "tab\there",
    "Total", "639 copy   2.00   0.2000", "a + b || c", "PWN(PWN(a), b)", "{ForeignNode[a...b]}", "", " leading",
    "ctrl\x01\x1e\x1f", "a -> b", "nan",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_hostile_names_survive_every_road(tmp_path: Path, name: str) -> None:
    layers = write(tmp_path, "l.json", {"Layers": [entry(name), entry("other")]})
    rows = write(tmp_path, "p.json", profile([(name, 3.0), ("other", 1.0)]))
    evidence = read_evidence([layers, rows], asked="fp16")
    assert evidence.layers[0].name == name and evidence.layers[0].share == pytest.approx(0.75)
    check_contract(evidence)
    # trtexec writes the name raw: what is no JSON is read by rows, and the name kept as it stands
    raw = "".join(
        f'{lead} {{ "name" : "{n}", "timeMs" : {t}, "averageMs" : {t}, "medianMs" : {t}, "percentage" : 50 }}\n'
        for lead, n, t in ((",", name, 3), (",", "other", 1))
    )
    found, _ = parse_profile_json(f'[\n  {{ "count" : 1 }}\n{raw}]\n')
    assert found.names == (name, "other") and list(found.total_ms) == [3.0, 1.0] and found.complete


def test_zero_time_rows_stay(tmp_path: Path) -> None:
    found, problem = parse_profile_json(json.dumps(profile([("a", 0.0), ("b", 1.0), ("a", 0.0)])))
    assert problem is None and found.names == ("a", "b", "a") and list(found.total_ms) == [0, 1, 0]


@pytest.mark.parametrize("keep", [0.5, 0.8, 0.97])
def test_cut_profile(keep: float) -> None:
    rows = ",\n".join(json.dumps(row) for row in profile([(f"l{i}", 1.0) for i in range(30)]))
    text = f"[\n{rows}\n]\n"
    found, problem = parse_profile_json(text[: int(len(text) * keep)])
    assert not found.complete and problem is not None and "cut" in problem
    assert found.names == tuple(f"l{i}" for i in range(len(found.names))) and len(found.names) < 30


# -- the API and the commands --------------------------------------------------------------------------------------


def test_asked_comes_from_the_best_source(tmp_path: Path) -> None:
    layers = write(tmp_path, "l.json", {"Layers": [entry("a", "Float", "Float"), entry("b")]})
    inferred = read_evidence(layers)
    assert inferred.asked is Precision.FP16 and "assumed asked" in inferred.headline()
    assert read_evidence(layers, asked="float32").asked is Precision.FP32
    only = write(tmp_path, "f.json", {"Layers": [entry("a", "Float", "Float")]})
    unknown = read_evidence(only)
    assert unknown.asked is None and unknown.layers[0].verdict is LayerVerdict.UNKNOWN
    assert "Nothing says which precision was asked" in unknown.headline()
    with pytest.raises(ConfigError, match="no precision"):
        read_evidence(only, asked="fp99")
    with pytest.raises(ConfigError):
        read_evidence([])


def test_headline(tmp_path: Path) -> None:
    layers = [
        entry("a"),
        entry("b", "Float", "Float"),
        entry("c", "N/A", "N/A"),
        entry("r", "Half", "Float", "Reformat"),
    ]
    layers.append(entry("d", "Half+Float", "Half", "Myelin"))
    rows = profile([("a", 6.0), ("b", 2.0), ("c", 1.0), ("r", 0.5), ("d", 0.5)])
    bindings = ["x"]
    files = [
        write(tmp_path, "l.json", {"Layers": layers, "Bindings": bindings}),
        write(tmp_path, "p.json", rows),
    ]
    assert read_evidence(files, asked="fp16").headline() == (
        "FP16 asked: 60.0 % of the time and 1 of 4 layers run in FP16; 1 certain fallback (20.0 % of the time), "
        "1 possible fallback (5.0 % of the time), 1 cannot be judged (10.0 % of the time)"
    )


def test_two_engines_are_noticed(tmp_path: Path) -> None:
    a = write(tmp_path, "a.json", {"Layers": [entry("a"), entry("b")]})
    b = write(tmp_path, "b.json", {"Layers": [entry("p"), entry("q")]})
    evidence = read_evidence([a, b], asked="fp16")
    assert [layer.name for layer in evidence.layers] == ["a", "b"]
    assert any("another engine" in problem.text and problem.path == str(b) for problem in evidence.problems)


def test_model_must_be_onnx(tmp_path: Path) -> None:
    layers = write(tmp_path, "l.json", {"Layers": [entry("a")]})
    for text in ("", "not a model", "\x08\x07\x3a\xff"):
        with pytest.raises(ArtifactError):
            read_evidence(layers, model=write(tmp_path, "m.onnx", text))
    with pytest.raises(ArtifactError, match="cannot be read"):
        read_evidence(layers, model=tmp_path / "none.onnx")


def test_dataframe(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is optional")
    frame = read_evidence(write(tmp_path, "l.json", {"Layers": [entry("a")]}), asked="fp16").to_dataframe()
    assert isinstance(frame, pandas.DataFrame) and list(frame["verdict"]) == ["as-asked"]


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as caught:
        main([str(a) for a in arguments])
    return int(caught.value.code or 0)


def test_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fine = write(tmp_path, "fine.json", {"Layers": [entry("a")]})
    bad = write(tmp_path, "bad.json", {"Layers": [entry("a"), entry("b", "Float", "Float")], "Bindings": ["x"]})
    possible = write(tmp_path, "possible.json", {"Layers": [entry("{ForeignNode[a]}", "Half+Float", "Half", "Myelin")]})
    empty = write(tmp_path, "empty.json", {"Layers": [], "Bindings": []})
    for limit, codes in (("fallback", (0, 1, 3, 3)), ("possible", (0, 1, 1, 3)), ("unknown", (0, 1, 1, 1))):
        found = tuple(run("layers", f, "--asked", "fp16", "--fail-on", limit) for f in (fine, bad, possible, empty))
        assert found == codes, limit
    assert run("layers", bad, "--asked", "fp16") == 0
    assert run("layers", fine, "--fail-on", "nonsense") == 2
    assert run("layers", fine, "--asked", "nonsense") == 2
    assert run("layers") == 2
    capsys.readouterr()
    assert run("layers", tmp_path / "none.json", "--json") == 3
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, CONTRACT)
    assert document["inputs"][0]["problem"]


def test_json_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(
        tmp_path,
        "l.json",
        {"Layers": [entry("a"), entry("b", "Float", "Float"), entry("c", "Half", "Float", "Reformat")]},
    )
    assert run("layers", path, "--asked", "fp16", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, CONTRACT)
    assert document["layers"][0]["storage"] == {"inputs": ["fp16"], "outputs": ["fp16"], "weights": None}
    assert document["summary"]["compute_layers"] == 2 and document["layers"][2]["kind"] == "copy"


def test_human_output_is_narrow_and_puts_the_headline_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    layers = [entry(f"/very/long/path/{'x' * 90}/{i}/Conv", "Float", "Float") for i in range(20)]
    layers += [entry("ok"), entry("evil\x1b[31m\x07[bold]", "Float", "Float")]
    path = write(tmp_path, "l.json", {"Layers": layers, "Bindings": ["x"]})
    assert run("layers", path, "--asked", "fp16", "--top", "3") == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[0] == "FP16 asked: 1 of 22 layers run in FP16; 21 certain fallbacks"
    assert "\x1b[31m" not in out and "\x07" not in out
    start = next(i for i, line in enumerate(lines) if "Not as asked" in line)
    table = lines[start : next(i for i, line in enumerate(lines) if line.startswith("[1] "))]
    assert max(map(len, table)) <= 100 and "worst 3 of 21" in table[0]
    assert "Remedy:" in out


def test_reads_without_frameworks() -> None:
    """The evidence side must work where torch, onnx and TensorRT are not installed."""
    code = (
        "import sys\n"
        "for name in ('torch', 'onnx', 'onnxruntime', 'modelopt', 'tensorrt', 'tensorrt_rtx', 'polygraphy', 'pandas'):\n"
        "    sys.modules[name] = None\n"
        "import deploychain\n"
        f"e = deploychain.read_evidence({str(GOLDEN / 'rtx-guard-lone.txt')!r}, model={str(GOLDEN / 'guard-lone.onnx')!r})\n"
        "assert e.summary.demoted == 1, e.summary\n"
        "heavy = {'numpy', 'pydantic', 'yaml', 'rich', 'typer'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    root = Path(__file__).resolve().parents[3]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)


def test_contract_on_every_golden_file() -> None:
    for path in sorted(GOLDEN.glob("*.txt")) + sorted(GOLDEN.glob("*.json")):
        evidence = read_evidence(path)
        assert evidence.readable, path
        check_contract(evidence)


def test_copy_kinds_are_never_fallbacks(tmp_path: Path) -> None:
    layers = [entry("r", "Float", "Float", "Reformat", Origin="QDQ"), entry("s", "Float", "Float", "Slice"), entry("a")]
    evidence = read_evidence(write(tmp_path, "l.json", {"Layers": layers}), asked="fp16")
    assert [layer.kind for layer in evidence.layers[:2]] == [LayerKind.COPY, LayerKind.DATA_MOVEMENT]
    assert evidence.summary is not None and evidence.summary.fallback == 0
