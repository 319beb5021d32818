"""Readings in which a naive tool is wrong: kernel names, casts inside, runs without banners, options in two lines."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from deploychain.engine.advice import advise, context_of
from deploychain.engine.datatypes import tactic_precision
from deploychain.engine.diff import diff_evidence
from deploychain.engine.evidence import Evidence, read_evidence
from deploychain.errors import ConfigError
from deploychain.precision import Precision
from deploychain.records import LayerVerdict

HALF = "Channel major FP16 format where channel % 8 == 0"


def log(*options: str, command: str = "trtexec --onnx=m.onnx --fp16", **facts: Any) -> str:
    """A run: ``options`` are lines of its build and inference options."""
    banner = f"{facts.get('tool', 'TensorRT.trtexec')} [TensorRT v{facts.get('version', 8601)}] # {command}"
    lines = [
        "=== Model Options ===",
        "Format: ONNX",
        "=== Build Options ===",
        f"Precision: {facts.get('precision', 'FP32+FP16')}",
        *options,
        "=== Inference Options ===",
        *(line for line in facts.get("inference", ("Input inference shapes: model",))),
        "CUDA Graph: Disabled",
        "=== Device Information ===",
        "Selected Device: Orin",
        "",
        "=== Performance summary ===",
        f"Throughput: {facts.get('qps', 100)} qps",
        "Latency: min = 1 ms, max = 3 ms, mean = 2 ms, median = 2 ms, percentile(99%) = 3 ms",
        *facts.get("more", ()),
        "",
    ]
    stamped = [f"[03/01/2026-10:00:00] [I] {line}" for line in lines]
    end = facts.get("end", "PASSED")
    return "\n".join([f"&&&& RUNNING {banner}", *stamped, *([f"&&&& {end} {banner}"] if end else [])]) + "\n"


def read(tmp_path: Path, text: str | bytes, name: str = "log.txt", **options: Any) -> Evidence:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_evidence([path], **options)


def unstamped(text: str) -> str:
    """The log as a filter for banners leaves it."""
    return "".join(line + "\n" for line in text.splitlines() if not line.startswith("&&&&"))


def layer(name: str, dtype: str, kind: str = "ElementWise", **more: Any) -> dict[str, Any]:
    tensors = [{"Name": f"{name}_{side}", "Dimensions": [1, 8], "Format/Datatype": dtype} for side in "io"]
    return {"Name": name, "LayerType": kind, "Inputs": tensors[:1], "Outputs": tensors[1:], **more}


def graph(*layers: dict[str, Any]) -> str:
    return json.dumps({"Layers": list(layers), "Bindings": ["x", "y"]})


@pytest.mark.parametrize(
    ("kernel", "precision"),
    [
        ("turing_s1688gemm_fp16_256x128_ldg8_tn", Precision.FP16),  # FP16 products, FP32 accumulation
        ("cutlass_tensorop_s1688gemm_f16_256x128_32x2_nn_align8", Precision.FP16),
        ("cutlass_tensorop_s1688gemm_bf16_256x128_16x3_nn_align8", Precision.BF16),
        ("cutlass_tensorop_s1688gemm_tf32_256x128_16x3_nn_align4", Precision.TF32),
        ("cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4", Precision.TF32),
        ("sm80_xmma_fprop_implicit_gemm_i8f16_i8i32_f32_nhwckrsc_nhwc_tilesize128x128x64", Precision.INT8),
    ],
)
def test_kernel_names_that_hold_the_words_of_two_precisions(kernel: str, precision: Precision) -> None:
    assert tactic_precision(kernel) is precision


def test_half_at_both_ends_and_casts_inside_is_not_as_asked(tmp_path: Path) -> None:
    layers = [
        layer("__myl_CastMaxrSubExpSumDivCast_myl0_3", "Half", "kgen"),
        layer("__myl_MulAdd_myl0_4", "Half", "kgen"),
    ]
    evidence = read(tmp_path, graph(*layers), asked="fp16")
    assert [row.verdict for row in evidence.layers] == [LayerVerdict.POSSIBLE, LayerVerdict.AS_ASKED]
    assert "casts inside" in evidence.layers[0].reason


def test_two_runs_without_banners_stay_two(tmp_path: Path) -> None:
    text = unstamped(log(qps=100)) + unstamped(log(qps=200, precision="FP32"))
    evidence = read(tmp_path, text)
    assert [(run.throughput_qps, run.asked) for run in evidence.runs] == [
        (100.0, Precision.FP16),
        (200.0, Precision.FP32),
    ]


def test_what_follows_the_end_of_a_run_does_not_change_it(tmp_path: Path) -> None:
    excerpt = "[03/01/2026-11:00:00] [I] Throughput: 7 qps\n"
    assert [run.throughput_qps for run in read(tmp_path, log(qps=100) + excerpt).runs] == [100.0]
    again = read(tmp_path, log(qps=100) + unstamped(log(qps=200))).runs
    assert [(run.status, run.throughput_qps) for run in again] == [("passed", 100.0), ("unknown", 200.0)]


def test_a_second_summary_inside_a_run_with_banners_does_not_split_it(tmp_path: Path) -> None:
    runs = read(tmp_path, log(more=("=== Performance summary ===", "Throughput: 5 qps"))).runs
    assert [(run.status, run.throughput_qps) for run in runs] == [("passed", 5.0)]


def test_every_input_shape_counts(tmp_path: Path) -> None:
    shapes = [f"Input inference shape: mask={n}x128" for n in (1, 8)]
    one, two = (
        read(tmp_path, log(inference=("Input inference shape: image=1x3x8x8", shape)), f"{shape[-5:]}.log")
        for shape in shapes
    )
    assert one.runs[0].options["Inference Options"]["Input inference shape"] == "image=1x3x8x8, mask=1x128"
    diff = diff_evidence(one, two)
    assert not diff.comparable
    assert diff.reasons == ("input shapes differs: image=1x3x8x8, mask=1x128 and image=1x3x8x8, mask=8x128",)


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"end": ""}, "a run is incomplete"),
        ({"end": "FAILED"}, "a run failed"),
        ({"inference": ()}, "input shapes not known for B"),
    ],
)
def test_what_is_cut_or_unknown_is_not_compared(tmp_path: Path, other: dict[str, Any], reason: str) -> None:
    diff = diff_evidence(read(tmp_path, log(), "a.log"), read(tmp_path, log(**other), "b.log"))
    assert (diff.comparable, diff.reasons) == (False, (reason,))


def test_tensorrt_rtx_counts_its_versions_from_one(tmp_path: Path) -> None:
    table = (
        "=== Profile (2 iterations ) ===",
        "   Time(ms)     Avg.(ms)   Median(ms)   Time(%)   Layer",
        "       1.00       0.5000       0.5000     100.0   a",
        "       1.00       0.5000       0.5000     100.0   Total",
    )
    text = log(tool="TensorRT.tensorrt_rtx", version=10200, command="tensorrt_rtx --onnx=m.onnx", more=table)
    run = read(tmp_path, text.replace("Precision: FP32+FP16", "Sparsity: Disabled")).runs[0]
    assert (run.tensorrt, run.strongly_typed, run.asked) == ("1.2.0", True, None)
    assert run.profile is not None and not any("profiler was on" in note for note in run.notes)
    old = read(tmp_path, log(version=8205, more=table)).runs[0]
    assert any("profiler was on during the timed run" in note for note in old.notes)


def test_dynamic_calibration_is_what_a_quantised_model_prints_too(tmp_path: Path) -> None:
    notes = read(tmp_path, log("Calibration: Dynamic", precision="FP32+INT8")).runs[0].notes
    assert sum("unless the model has Q/DQ nodes" in note for note in notes) == 1


@pytest.mark.parametrize(("constraints", "told"), [("", 1), (" --precisionConstraints=obey", 0)])
def test_layer_precisions_need_constraints(tmp_path: Path, constraints: str, told: int) -> None:
    command = f"trtexec --onnx=m.onnx --fp16{constraints} --layerPrecisions=a:fp32"
    build = (
        "[03/01/2026-10:00:00] [V] [TRT] Engine Layer Information:\n"
        "Layer(CaskConvolution): a, Tactic: 0x1, x (Half[1,8]) -> y (Half[1,8])\n"
    )
    text = log(command=command).replace("&&&& PASSED", build + "&&&& PASSED")
    evidence = read(tmp_path, text)
    run = evidence.runs[0]
    assert sum("no effect without --precisionConstraints" in note for note in run.notes) == told
    assert [row.verdict for row in evidence.layers] == [LayerVerdict.DEMOTED]
    context = context_of(evidence.layers, evidence.asked, run, False)
    assert advise(evidence.layers[0], context).remedy == "rebuild with --precisionConstraints=obey"


def test_two_graphs_of_one_network_built_otherwise_are_told_apart(tmp_path: Path) -> None:
    for name, dtype in (("half", HALF), ("full", "Row major linear FP32")):
        (tmp_path / f"{name}.json").write_text(graph(layer("a", dtype), layer("b", dtype)))
    evidence = read_evidence([tmp_path / "half.json", tmp_path / "full.json"])
    assert [row.compute for row in evidence.layers] == [Precision.FP16, Precision.FP16]
    assert [(Path(p.path).name, "2 layers of the same name" in p.text) for p in evidence.problems] == [
        ("full.json", True)
    ]
    same = read_evidence([tmp_path / "half.json", tmp_path / "half.json"])
    assert not same.problems


def test_text_that_ends_inside_the_list_of_layers_says_so(tmp_path: Path) -> None:
    line = (
        "Name: a, LayerType: ElementWise, Inputs: [ { Name: x, Dimensions: [1], Format/Datatype: Half }], "
        "Outputs: [ { Name: y, Dimensions: [1], Format/Datatype: Half }], ParameterType: ElementWise\n"
    )
    whole = read(tmp_path, f"Layers:\n{line}\nBindings:\nx\ny\n")
    assert len(whole.layers) == 1 and not whole.problems
    cut = read(tmp_path, f"Layers:\n{line}")
    assert len(cut.layers) == 1 and ["it may be cut" in p.text for p in cut.problems] == [True]
    assert not read(tmp_path, line).problems  # a single layer, as get_layer_information prints it


@pytest.mark.parametrize(
    "head", [b"\x08\x08\x12\x07pytorch\x1a\x062.13.0:", b"\x08\x07\x12\x0bskl2onnx1.16", b"\x08\x0a\x3a\x10"]
)
def test_an_onnx_model_among_the_files_is_named(tmp_path: Path, head: bytes) -> None:
    evidence = read(tmp_path, head + b"graph", "m.onnx")
    assert not evidence.readable and evidence.inputs[0].problem == "an ONNX model: pass it with --model"


def test_a_network_listing_of_polygraphy_is_no_engine(tmp_path: Path) -> None:
    text = (
        "[I] ==== TensorRT Network ====\n    Name: Unnamed Network 0 | Explicit Batch Network\n\n"
        "    ---- 1 Layer(s) ----\n    Layer 0    | y [Op: LayerType.IDENTITY]\n"
        "        {x [dtype=float32, shape=(1,)]}\n"
        "         -> {y [dtype=float32, shape=(1,)]}\n"
    )
    evidence = read(tmp_path, text)
    assert not evidence.layers and ["not an engine" in p.text for p in evidence.problems] == [True]


@pytest.mark.parametrize(
    "line",
    [
        "+ grep -q '&&&& PASSED TensorRT.trtexec' out.log",
        'if ! grep "&&&& PASSED TensorRT.trtexec" out.log; then exit 1; fi',
        "look for `&&&& PASSED TensorRT.trtexec` at the end",
        "it prints &&&& PASSED when all went well",
    ],
)
def test_a_search_for_the_end_banner_is_no_end_banner(tmp_path: Path, line: str) -> None:
    assert [run.status for run in read(tmp_path, log(end="") + line + "\n").runs] == ["incomplete"]
    assert not read(tmp_path, line + "\n").readable


@pytest.mark.parametrize(
    "rest", ["", " [TensorRT v100700]", " [TensorRT v100700] [b23]", " # trtexec --onnx='a b.onnx'"]
)
def test_every_form_of_the_end_banner_is_one(tmp_path: Path, rest: str) -> None:
    text = log(end="") + f"trt-1  | &&&& PASSED TensorRT.trtexec{rest}\r\n"
    assert [run.status for run in read(tmp_path, text).runs] == ["passed"]


def test_layers_that_leave_the_dla_are_named(tmp_path: Path) -> None:
    text = (
        "[03/01/2026-10:00:00] [W] [TRT] Layer 'Softmax_9' (SOFTMAX): Unsupported on DLA. "
        "Switching this layer's device type to GPU.\n"
        "[03/01/2026-10:00:00] [W] [TRT] Default DLA is enabled but layer (Unnamed Layer* 4) [Shuffle] is not "
        "supported on DLA, falling back to GPU.\n"
    )
    warnings = read(tmp_path, text).runs[0].warnings
    assert [(w.kind, w.layer) for w in warnings] == [
        ("dla-fallback", "Softmax_9"),
        ("dla-fallback", "(Unnamed Layer* 4) [Shuffle]"),
    ]


def test_layer_json_between_prefixed_lines(tmp_path: Path) -> None:
    text = log() + json.dumps(json.loads(graph(layer("a", HALF))), indent=1) + "\ndone\n"
    evidence = read(tmp_path, "".join(f"trt-1  | {line}\n" for line in text.splitlines()))
    assert [(row.name, row.compute) for row in evidence.layers] == [("a", Precision.FP16)]
    assert evidence.runs[0].throughput_qps == 100.0


def test_text_after_layer_json_is_not_a_cut(tmp_path: Path) -> None:
    evidence = read(tmp_path, graph(layer("a", HALF), layer("b", HALF)) + "\nsaved in 0.1 s\n")
    assert len(evidence.layers) == 2 and evidence.complete
    assert ["more text follows" in p.text for p in evidence.problems] == [True]


def test_a_table_in_which_nothing_was_timed_says_so(tmp_path: Path) -> None:
    table = (
        "=== Profile (2 iterations ) ===",
        "   Time(ms)     Avg.(ms)   Median(ms)   Time(%)   Layer",
        "       0.00       0.0000       0.0000      -nan   a",
        "       0.00       0.0000       0.0000      -nan   Total",
    )
    evidence = read(tmp_path, log(more=table))
    assert "the profile table holds no time: nothing was timed" in [p.text for p in evidence.problems]
    assert evidence.runs[0].profile is not None and evidence.runs[0].profile.names == ("a",)


def test_two_runs_that_build_one_network_otherwise_are_told_apart(tmp_path: Path) -> None:
    def run(dtype: str) -> str:
        build = (
            "[03/01/2026-10:00:00] [V] [TRT] Engine Layer Information:\n"
            f"Layer(CaskConvolution): a, Tactic: 0x1, x ({dtype}[1,8]) -> y ({dtype}[1,8])\n"
        )
        return log().replace("&&&& PASSED", build + "&&&& PASSED")

    notes = read(tmp_path, run("Half") + run("Float")).notes
    assert "2 runs list layers, of the same names but in other precisions; shown: the last. Use --run N." in notes
    assert not any("runs list layers" in note for note in read(tmp_path, run("Half") + run("Half")).notes)


def test_the_last_layer_before_a_cut_is_not_at_the_border_of_the_network(tmp_path: Path) -> None:
    rows = [layer("a", HALF), layer("m", "Row major linear FP32"), layer("z", HALF)]
    for before, after in pairwise(rows):
        after["Inputs"][0]["Name"] = before["Outputs"][0]["Name"]
    text = json.dumps({"Layers": rows, "Bindings": [rows[0]["Inputs"][0]["Name"], "z_o"]})
    whole = read(tmp_path, text, asked="fp16")
    assert [row.verdict.value for row in whole.layers] == ["as-asked", "fallback", "as-asked"]
    cut = read(tmp_path, text[: text.index('"z"')], asked="fp16")
    assert [row.verdict.value for row in cut.layers] == ["as-asked", "fallback"] and not cut.complete


@pytest.mark.parametrize("asked", ["int32", "bool", "long", "fp99"])
def test_only_precisions_to_compute_in_can_be_asked(tmp_path: Path, asked: str) -> None:
    with pytest.raises(ConfigError, match="is no precision to compute in"):
        read(tmp_path, graph(layer("a", HALF)), asked=asked)


def tear(text: str, at: int) -> str:
    """Standard error writes into a line of standard output, as both go to one file."""
    return f"{text[:at]}[03/01/2026-10:00:00] [W] [TRT] torn in\n{text[at:]}"


TABLE = (
    "=== Profile (2 iterations ) ===",
    "   Time(ms)     Avg.(ms)   Median(ms)   Time(%)   Layer",
    "       6.00       3.0000       3.0000      60.0   conv 1",
    "       4.00       2.0000       2.0000      40.0   b",
    "      10.00       5.0000       5.0000     100.0   Total",
)


@pytest.mark.parametrize(
    ("anchor", "offset"),
    [
        ("Throughput", 13),
        ("Latency: min", 40),
        ("6.00  ", 2),
        ("conv 1", 4),
        ("] [I]        4.00", 2),
        ("] [I] Selected", 1),
        ("] [I] Selected", -2),
        ("] [I]        4.00", -2),
    ],
)
def test_a_torn_line_is_mended(tmp_path: Path, anchor: str, offset: int) -> None:
    text = log(more=TABLE)
    run = read(tmp_path, tear(text, text.index(anchor) + offset)).runs[0]
    assert (run.status, run.device, run.throughput_qps) == ("passed", "Orin", 100.0)
    assert run.latency is not None and (run.latency.mean, run.latency.p99) == (2.0, 3.0)
    assert run.profile is not None and run.profile.names == ("conv 1", "b") and run.profile.printed_total_ms == 10.0
    assert [w.text for w in run.warnings] == ["torn in"]


def test_a_torn_line_without_a_tail_takes_nothing_from_the_next(tmp_path: Path) -> None:
    build = (
        "[03/01/2026-10:00:00] [V] [TRT] Engine Layer Information:\n"
        "[03/01/2026-10:00:00] [I] Throu[03/01/2026-10:00:00] [W] [TRT] torn in\n"
        "Layer(CaskConvolution): a, Tactic: 0x1, x (Half[1,8]) -> y (Half[1,8])\n"
    )
    evidence = read(tmp_path, log().replace("&&&& PASSED", build + "&&&& PASSED"))
    assert [row.name for row in evidence.layers] == ["a"] and evidence.runs[0].throughput_qps == 100.0
