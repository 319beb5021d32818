"""Every real artefact of the corpus reads as its index says. Skipped where the corpus is not beside the repository."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from deploychain.engine.evidence import Evidence, read_evidence
from deploychain.precision import Precision
from deploychain.records import LayerKind, LayerRecord, LayerVerdict

CORPUS = Path(__file__).resolve().parents[3].parent / "shared" / "corpus"
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the corpus is not at {CORPUS}")
pytestmark = needs_corpus


def read(*names: str, **options: object) -> Evidence:
    return read_evidence([CORPUS / name for name in names], **options)  # type: ignore[arg-type]


def label(layer: LayerRecord) -> str:
    """The reading of one layer in the words of the index."""
    if layer.kind in (LayerKind.HELPER, LayerKind.COPY):
        return f"helper {layer.layer_type}"
    if layer.kind is LayerKind.INTEGER:
        return "integer"
    if layer.compute is Precision.TF32:
        return "compute FP32(TF32 math)"
    if layer.compute is not None:
        return f"{layer.kind.value} {layer.compute.value.upper()}"
    types = sorted({t.dtype.value.upper() for t in (*layer.inputs, *layer.outputs) if t.dtype and not t.dtype.is_index})
    return f"{'opaque' if layer.kind is LayerKind.OPAQUE else 'mixed-io'} {'/'.join(types) or '?'}"


# kind, status of each run, version, throughput, mean latency, mean GPU time, profile (iterations, rows, Total)
BASE_PROFILE = (18362, 15, 1529.13)
LOGS: dict[str, dict[str, object]] = {
    "real/trt10.14-cookbook-trtexec-02-excerpt.log": {"status": ["passed"], "version": "10.14.1"},
    "real/trt10.14-cookbook-trtexec-05-profile.log": {
        "status": ["passed"], "version": "10.14.1", "profile": (21248, 16, 1508.99), "no_summary": True,
    },
    "real/trt10.16.0-cookbook-plugin-FAILED.log": {"status": ["failed"], "version": "10.16.0"},
    "real/trt10.16.1-cookbook-trtexec-01.log": {
        "status": ["passed"], "version": "10.16.1", "qps": [15374.3], "latency": [0.0441053], "gpu": [0.0359588],
    },
    "real/trt10.16.1-cookbook-trtexec-02.log": {"status": ["passed"], "version": "10.16.1", "no_summary": True},
    "real/trt10.16.1-cookbook-trtexec-03.log": {
        "status": ["passed"], "version": "10.16.1", "qps": [24896.9], "latency": [0.0387646], "gpu": [0.0387646],
    },
    "real/trt10.16.1-cookbook-trtexec-05.log": {
        "status": ["passed"], "version": "10.16.1", "profile": BASE_PROFILE, "no_summary": True,
    },
    "real/trt10.16.1-cookbook-trtexec-08-plugin.log": {
        "status": ["passed"], "version": "10.16.1", "qps": [27315.5], "latency": [0.0130058], "gpu": [0.00536421],
    },
    "real/trt8.0.3-cookbook-fp16-excerpt.log": {
        "status": ["passed"], "version": "8.0.3", "qps": [6330.83], "latency": [0.159522], "gpu": [0.15302],
    },
    "real/trt8.2.3-cookbook-fp16-FAILED-no-reason.log": {"status": ["failed"], "version": "8.2.3"},
    "real/trt8.4.1-cookbook-fp16-excerpt.log": {
        "status": ["passed"], "version": "8.4.1", "qps": [6175.47], "latency": [0.160819], "gpu": [0.154432],
    },
    "real/trt8.4.1-cookbook-three-runs.log": {
        "status": ["passed"] * 3, "version": "8.4.1", "qps": [53164.4, 53527.7, 48791.2],
        "latency": [0.017295, 0.0171717, 0.0176269], "gpu": [0.017295, 0.0171717, 0.0176269],
    },
    "real/trt8.6.0-cookbook-fp16-excerpt.log": {"status": ["passed"], "version": "8.6.0"},
    "real/trt8.4-jetsondla-bn.log": {"status": ["unknown"], "version": None, "qps": [649.723]},
    "real/trt10.16-cookbook-dynamicquantize-fp8.log": {"status": ["unknown"], "version": None},
    "real/trtrtx1.x-cookbook-rtx-verbose.log": {"status": ["unknown"], "version": None},
    **{
        f"derived/{name}.log": {
            "status": ["passed"], "version": "10.16.1", "profile": BASE_PROFILE, "no_summary": True,
        }
        for name in ("crlf", "docker-logs-timestamps", "ansi-colours", "powershell-utf16le", "stdout-only")
    },
    "derived/truncated-mid-table.log": {"status": ["incomplete"], "version": "10.16.1"},
    "derived/two-runs-second-failed.log": {"status": ["passed", "failed"]},
    "synthetic/precision-warnings-10.x.log": {"status": ["unknown"], "version": None},
    "synthetic/trap-names-name-last.log": {"status": ["unknown"], "version": None, "profile": (10, 4, 4.0)},
    "synthetic/trt11.1-option-error.log": {"status": ["incomplete"], "version": "11.1.0"},
    "synthetic/trt11.1-run-with-profile.log": {
        "status": ["passed"], "version": "11.1.0", "qps": [599.76], "latency": [1.66524], "gpu": [1.66524],
        "profile": (1800, 4, 3060.0),
    },
    "synthetic/trt8.0-endtoend-summary.log": {
        "status": ["passed"], "version": "8.0.1", "qps": [970.5], "latency": [1.1], "gpu": [1.02],
    },
}  # fmt: skip


@pytest.mark.parametrize("name", LOGS)
def test_log(name: str) -> None:
    want = LOGS[name]
    evidence = read(name)
    runs = evidence.runs
    assert [reading.kind for reading in evidence.inputs] == ["log"]
    assert [run.status for run in runs] == want["status"]
    if "version" in want:
        assert {run.tensorrt for run in runs} == {want["version"]}
    if "qps" in want:
        assert [run.throughput_qps for run in runs] == want["qps"]
    for key, found in (("latency", [run.latency for run in runs]), ("gpu", [run.gpu for run in runs])):
        if key in want:
            assert [stat.mean for stat in found if stat] == want[key]
    if "profile" in want:
        profile = runs[-1].profile
        assert profile is not None and profile.layout == "name last" and profile.complete
        assert (profile.iterations, profile.rows, profile.printed_total_ms) == want["profile"]
    if want.get("no_summary"):
        assert runs[-1].latency is None and runs[-1].throughput_qps is None


# Engine Layer Information: number of layers by LayerType, and the reading of each.
BUILD_LISTS: dict[str, tuple[dict[str, int], dict[str, int]]] = {
    "real/trt10.14-cookbook-trtexec-02-excerpt.log": (
        {
            "Reformat": 3, "Myelin": 3, "CaskConvolution": 2, "CaskPooling": 2, "Constant": 2, "PointWiseV2": 2,
            "NoOp": 1, "LogSoftmaxTopK": 1,
        },
        {
            "compute FP16": 6, "helper Reformat": 3, "opaque FP16": 2, "helper Constant": 2, "helper NoOp": 1,
            "compute FP32": 1, "opaque ?": 1,
        },
    ),
    "real/trt10.16-cookbook-dynamicquantize-fp8.log": (
        {"Myelin": 1, "MyelinReformat": 1}, {"opaque FP32/FP8": 1, "helper MyelinReformat": 1},
    ),
    "real/trt10.16.1-cookbook-trtexec-02.log": (
        {"Myelin": 3, "CaskPooling": 2, "Reformat": 1},
        {
            "opaque FP32": 1, "compute FP32": 1, "helper Reformat": 1, "opaque FP16": 1, "compute FP16": 1,
            "opaque FP16/FP32": 1,
        },
    ),
    "real/trt8.0.3-cookbook-fp16-excerpt.log": (
        {
            "CaskConvolution": 2, "TiledPooling": 2, "Reformat": 2, "CublasConvolution": 2, "Shuffle": 1,
            "LogSoftmaxTopK": 1,
        },
        {"compute FP32": 7, "helper Reformat": 2, "data-movement FP32": 1},
    ),
    "real/trt8.4.1-cookbook-fp16-excerpt.log": (
        {
            "CaskConvolution": 2, "Reformat": 2, "NoOp": 2, "TiledPooling": 1, "CudnnPooling": 1, "Shuffle": 1,
            "CublasConvolution": 1, "CudnnConvolution": 1, "LogSoftmaxTopK": 1,
        },
        {"compute FP32": 7, "helper Reformat": 2, "helper NoOp": 2, "data-movement FP32": 1},
    ),
    "real/trt8.6.0-cookbook-fp16-excerpt.log": (
        {
            "NoOp": 5, "Reformat": 2, "CaskConvolution": 2, "CaskPooling": 2, "CaskGemmConvolution": 2, "Shuffle": 1,
            "LogSoftmaxTopK": 1,
        },
        {
            "compute FP16": 6, "helper NoOp": 5, "helper Reformat": 2, "data-movement FP16": 1, "compute FP32": 1,
        },
    ),
    "real/trtrtx1.x-cookbook-rtx-verbose.log": ({"Myelin": 1}, {"opaque FP32": 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", BUILD_LISTS)
def test_build_list(name: str) -> None:
    types, readings = BUILD_LISTS[name]
    evidence = read(name)
    assert evidence.listing is not None and evidence.listing.source == "build list"
    assert Counter(layer.layer_type for layer in evidence.layers) == types
    assert Counter(map(label, evidence.layers)) == readings


def test_noop_rows_that_copy_are_copies() -> None:
    layers = read("real/trt8.6.0-cookbook-fp16-excerpt.log").layers
    copies = [layer for layer in layers if layer.kind is LayerKind.COPY]
    assert len(copies) == 5
    assert Counter(layer.layer_type for layer in copies) == {"NoOp": 3, "Reformat": 2}


def test_three_runs_list_their_own_layers() -> None:
    runs = read("real/trt8.4.1-cookbook-three-runs.log").runs
    counts = [[Counter(layer.layer_type for layer in listing.layers) for listing in run.listings] for run in runs]
    assert counts == [[{"Reduce": 1}], [{"Reduce": 1}], [{"NoOp": 2, "Shuffle": 1, "Reduce": 1}]]
    assert read("real/trt8.4.1-cookbook-three-runs.log", run=1).summary.layers == 1  # type: ignore[union-attr]


# Layer JSON: LayerType counts where the index gives them, the reading by rule, FP32 layers of a reduced engine.
GRAPHS: dict[str, tuple[int, dict[str, int], list[str] | int]] = {
    "real/trt10.16.1-cookbook-exportLayerInfo.json": (9, {"compute FP32": 8, "integer": 1}, []),
    "real/trt10.x-fuzzylabs-alexnet-fp16.graph.json": (
        14, {"compute FP16": 12, "helper Reformat": 1, "helper shape_call": 1}, [],
    ),
    "real/trt10.x-fuzzylabs-resnet18-fp16.graph.json": (
        26, {"compute FP16": 23, "helper Reformat": 1, "helper NoOp": 1, "helper shape_call": 1}, [],
    ),
    "real/trt8.4-trex-a100-resnet18-fp16.graph.json": (
        36, {"compute FP16": 23, "helper NoOp": 11, "helper Reformat": 2}, [],
    ),
    "real/trt8.4-trex-a100-resnet18-fp32.graph.json": (
        32, {"compute FP32(TF32 math)": 20, "helper NoOp": 8, "compute FP32": 3, "helper Reformat": 1}, [],
    ),
    "real/trt8.4-trex-a100-resnet18-qat-residual-qgap.graph.json": (
        24, {"compute INT8": 22, "helper Reformat": 1, "helper NoOp": 1}, [],
    ),
    "real/trt8.4-trex-a100-resnet18-qat-residual.graph.json": (
        26, {"compute INT8": 21, "helper Reformat": 3, "compute FP32": 1, "helper NoOp": 1},
        ["GlobalAveragePool_294"],
    ),
    "real/trt8.4-trex-a100-resnet18-qat.graph.json": (
        37, {"compute INT8": 21, "helper Reformat": 12, "helper NoOp": 2, "compute FP32": 1, "compute FP16": 1},
        ["MaxPool_12"],
    ),
    "real/trt8.6-yuan-controlnet-7bb9d37.layerinfo.json": (
        388,
        {
            "compute FP16": 148, "helper NoOp": 143, "helper Reformat": 69, "helper MyelinReformat": 14,
            "opaque FP16/FP32": 6, "compute FP32": 6, "helper Constant": 1, "opaque FP16": 1,
        },
        6,
    ),
    "derived/duplicate-names.graph.json": (36, {"compute FP16": 23, "helper NoOp": 11, "helper Reformat": 2}, []),
    "synthetic/trt10.x-mixed-fallback-answerkey.layerinfo.json": (
        7,
        {
            "helper Reformat": 2, "compute FP16": 2, "compute FP32(TF32 math)": 1, "opaque FP16/FP32": 1,
            "helper shape_call": 1,
        },
        ["conv1"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
def test_layer_json(name: str) -> None:
    count, readings, fp32 = GRAPHS[name]
    evidence = read(name)
    assert [reading.kind for reading in evidence.inputs] == ["graph"]
    assert len(evidence.layers) == count
    assert Counter(map(label, evidence.layers)) == readings
    fallbacks = [layer.name for layer in evidence.layers if layer.verdict is LayerVerdict.FALLBACK]
    if isinstance(fp32, int):
        assert len(fallbacks) == fp32
    else:
        assert fallbacks == fp32


def test_bf16_layer_info_of_11() -> None:
    evidence = read("synthetic/trt11.x-strongly-typed-bf16.layerinfo.json")
    assert len(evidence.layers) == 4
    bf16 = [layer for layer in evidence.layers if layer.compute is Precision.BF16]
    assert len(bf16) == 2 and all(layer.verdict is LayerVerdict.AS_ASKED for layer in bf16)
    cast, last = evidence.layers[0], evidence.layers[3]
    assert cast.kind is LayerKind.COPY
    assert last.compute is None and last.verdict is LayerVerdict.EXPECTED  # it writes the network's output
    assert evidence.summary is not None and evidence.summary.fallback == 0


def test_answer_key() -> None:
    evidence = read("synthetic/trt10.x-mixed-fallback-answerkey.layerinfo.json", asked="fp16")
    by_name = {layer.name: layer for layer in evidence.layers}
    assert by_name["conv0 + relu0"].onnx_nodes == ("conv0", "relu0")
    conv1 = by_name["conv1"]
    assert (conv1.weights, conv1.compute, conv1.verdict) == (Precision.FP32, Precision.TF32, LayerVerdict.FALLBACK)
    assert by_name["{ForeignNode[norm0...norm9]}"].verdict is LayerVerdict.POSSIBLE
    assert by_name["argmax"].verdict is LayerVerdict.AS_ASKED


def test_qdq_origin() -> None:
    layers = read("real/trt8.4-trex-a100-resnet18-qat.graph.json").layers
    assert Counter(layer.origin for layer in layers if layer.layer_type == "Reformat") == {"QDQ": 10, "REFORMAT": 2}
    first = next(layer for layer in layers if (layer.tactic or "").startswith("ampere_fp32_icudnn_int8x4_"))
    assert first.compute is Precision.INT8


def test_verbosity_none_is_unknown() -> None:
    evidence = read("synthetic/trt10.x-verbosity-none.layerinfo.json")
    assert evidence.layers == () and evidence.inputs[0].problem is not None
    assert "unknown" in evidence.headline() and "0 certain" not in evidence.headline()


def test_truncated_graph_is_no_smaller_engine() -> None:
    evidence = read("derived/truncated-graph.json")
    assert "cut" in (evidence.inputs[0].problem or "") and not evidence.complete
    assert len(evidence.layers) == 21 and evidence.headline().startswith("INCOMPLETE")


@pytest.mark.parametrize(
    ("name", "layers", "readings"),
    [
        ("real/trt10.12-torchtrt-kgen-mixed.txt", 3, {"mixed-io FP16/FP32": 2, "compute FP32": 1}),
        # The dump lists 11 layers, then each again: 22 lines, one engine.
        (
            "real/trt8.2-cookbook-engineinspector.txt",
            11,
            {"compute FP32": 4, "mixed-io ?": 4, "helper Reformat": 2, "helper NoOp": 1},
        ),
    ],
)
def test_inspector_text(name: str, layers: int, readings: dict[str, int]) -> None:
    evidence = read(name)
    assert [reading.kind for reading in evidence.inputs] == ["inspector-text"]
    assert len(evidence.layers) == layers
    assert Counter(map(label, evidence.layers)) == readings


# count, rows, sum timeMs, sum averageMs, zero-time rows, and the slowest row with its percentage.
PROFILES: dict[str, tuple[int, int, float, float, int, str, float]] = {
    "real/trt10.x-fuzzylabs-alexnet-fp16.profile.json": (
        14590, 14, 7647.65, 0.524171, 0, "/classifier/classifier_1/Gemm_myl9_2", 45.7,
    ),
    "real/trt10.x-fuzzylabs-resnet18-fp16.profile.json": (
        21071, 26, 7659.64, 0.363516, 1, "/conv1/Conv + /relu/Relu", 7.936,
    ),
    "real/trt8.4-trex-a100-resnet18-fp16.profile.json": (1, 36, 1.01683, 1.01683, 11, "Conv_0 + Relu_1", 10.98),
    "real/trt8.4-trex-a100-resnet18-fp32.profile.json": (1, 32, 2.12378, 2.12378, 8, "Conv_0 + Relu_1", 24.59),
    "real/trt8.4-trex-a100-resnet18-qat-residual-qgap.profile.json": (
        1, 24, 0.672768, 0.672768, 1, "QuantizeLinear_2", 14.16,
    ),
    "real/trt8.4-trex-a100-resnet18-qat-residual.profile.json": (
        1, 26, 0.731136, 0.731136, 1, "QuantizeLinear_2", 13.03,
    ),
    "real/trt8.4-trex-a100-resnet18-qat.profile.json": (
        1, 37, 1.09568, 1.09568, 2, "conv1.weight + QuantizeLinear_7 + Conv_9", 18.41,
    ),
    "real/trt8.6-yuan-controlnet-7bb9d37.profile.json": (
        810, 388, 2909.44, 3.5919, 144, "{ForeignNode[input_blocks.2.1.transformer_blocks.0.norm1.weight + (Unn", 6.578,
    ),
    "derived/duplicate-names.profile.json": (1, 36, 1.01683, 1.01683, 11, "Conv_0 + Relu_1", 10.98),
}  # fmt: skip


@pytest.mark.parametrize("name", PROFILES)
def test_profile_json(name: str) -> None:
    count, rows, total, mean, zero, slowest, percentage = PROFILES[name]
    reading = read(name).inputs[0]
    profile = reading.profile
    assert reading.kind == "profile" and reading.problem is None and profile is not None
    assert (profile.iterations, profile.rows, profile.has_median) == (count, rows, True)
    assert profile.sum_ms == pytest.approx(total, rel=1e-5)
    assert sum(profile.mean_ms) == pytest.approx(mean, rel=1e-5)
    assert sum(v == 0 for v in profile.total_ms) == zero
    top = max(range(rows), key=lambda i: profile.total_ms[i])
    assert profile.names[top].startswith(slowest)
    assert profile.total_ms[top] / profile.sum_ms * 100 == pytest.approx(percentage, rel=1e-3)


def test_graph_and_profile_join() -> None:
    base = "trt8.4-trex-a100-resnet18-fp16"
    evidence = read(f"real/{base}.profile.json", f"real/{base}.graph.json", f"real/{base}.build.metadata.json")
    assert evidence.joined is not None and evidence.joined.how == "position"
    assert evidence.asked is Precision.FP16 and evidence.asked_from == "TREx build metadata"
    assert sum(layer.share or 0 for layer in evidence.layers) == pytest.approx(1.0)


def test_duplicate_names_keep_their_times() -> None:
    evidence = read("derived/duplicate-names.graph.json", "derived/duplicate-names.profile.json")
    times = [layer.time_ms for layer in evidence.layers if layer.name == "dup layer"]
    assert len(times) == 2 and times[0] != times[1] and None not in times


def test_profile_of_another_engine_is_refused() -> None:
    evidence = read("real/trt8.4-trex-a100-resnet18-qat.graph.json", "real/trt8.4-trex-a100-resnet18-fp16.profile.json")
    assert all(layer.time_ms is None for layer in evidence.layers)
    assert any("of another one" in problem.text for problem in evidence.problems)


def test_times() -> None:
    reading = read("real/trt8.4-trex-a100-resnet18-fp32.timing.json").inputs[0]
    assert reading.kind == "times" and reading.times is not None
    assert reading.times.queries == 1600
    assert reading.times.keys == (
        "startEnqMs",
        "endEnqMs",
        "startH2dMs",
        "endH2dMs",
        "startComputeMs",
        "endComputeMs",
        "startD2hMs",
        "endD2hMs",
        "h2dMs",
        "computeMs",
        "d2hMs",
        "latencyMs",
    )
    assert reading.times.gpu.mean == pytest.approx(1.9982, rel=1e-4)
    assert reading.times.latency.mean == pytest.approx(1.9982, rel=1e-4)
    old = read("synthetic/trt7.1-exportTimes.json").inputs[0].times
    assert old is not None and old.queries == 3 and "endToEndMs" in old.keys
    assert (old.gpu.mean, old.latency.mean) == (pytest.approx(4), pytest.approx(4.2))
    assert any("swaps" in note for note in old.notes)


def test_trex_metadata() -> None:
    run = read("real/trt8.4-trex-a100-resnet18-fp16.profile.metadata.json").runs[0]
    assert run.throughput_qps == 1155.36 and run.latency is not None
    assert (run.latency.mean, run.latency.p99) == (0.86277, 0.871338)
    built = read("real/trt10.x-fuzzylabs-alexnet-fp16.build.metadata.json").runs[0]
    assert built.asked is Precision.FP16 and built.device == "NVIDIA GeForce RTX 3060 Laptop GPU"


def test_invalid_profiles() -> None:
    quoted = read("synthetic/unescaped-name.profile.json").inputs[0]
    assert quoted.profile is not None and "not valid JSON" in (quoted.problem or "")
    assert quoted.profile.names == ('path "quoted" \\x layer', "conv1")
    nan = read("synthetic/nan-total.profile.json").inputs[0]
    assert nan.profile is not None and nan.profile.names == ("conv0", "conv1") and "nan" in (nan.problem or "")


def test_refused() -> None:
    evidence = read("synthetic/not-an-artefact.json")
    assert not evidence.readable and evidence.inputs[0].kind == "other" and evidence.inputs[0].problem


def test_dla_placement() -> None:
    run = read("real/trt8.4-jetsondla-bn.log").runs[0]
    assert len(run.dla_layers) == 2 and len(run.gpu_layers) == 2
    assert run.dla_layers[1].startswith("{ForeignNode[Gemm_15 + linear.bias + (Unnamed Layer* 19) [Shuffle]")


def test_warnings() -> None:
    kinds = {w.kind: w for w in read("real/trt8.6.0-cookbook-fp16-excerpt.log").runs[0].warnings}
    assert kinds["fp16-weight-subnormal"].count == 2
    assert "layernorm-overflow" in {w.kind for w in read("synthetic/precision-warnings-10.x.log").runs[0].warnings}
    failed = read("real/trt10.16-cookbook-dynamicquantize-fp8.log").runs[0]
    assert {"fp4-not-accelerated", "build-failed"} <= {w.kind for w in failed.warnings}


def test_stdout_only_proves_nothing() -> None:
    for name in ("derived/stdout-only.log", "real/trt8.2.3-cookbook-fp16-FAILED-no-reason.log"):
        assert any("warnings not captured" in problem.text for problem in read(name).problems)
    assert not any("not captured" in p.text for p in read("real/trt10.16.1-cookbook-trtexec-05.log").problems)


def test_two_runs_are_no_pass() -> None:
    assert read("derived/two-runs-second-failed.log").passed is False
    assert read("derived/crlf.log").passed is True
    assert read("derived/truncated-mid-table.log").passed is False


def test_index_is_covered() -> None:
    """A file that the index names and no test above reads would go unnoticed."""
    index = (CORPUS / "INDEX.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `([^`]+)`", index, re.MULTILINE))
    here = Path(__file__).read_text(encoding="utf-8")
    missing = [name for name in named if name not in here and Path(name).stem not in here]
    covered_by_pattern = {f"derived/{n}.log" for n in ("crlf", "docker-logs-timestamps", "ansi-colours")}
    covered_by_pattern |= {"real/trt8.4-trex-a100-resnet18-fp16.build.metadata.json"}
    assert set(missing) <= covered_by_pattern
