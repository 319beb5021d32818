# ruff: noqa: E501 (lines of the real grammar are long)
"""trtexec logs of every release, as files really look: encodings, prefixes, several runs, cut ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deploychain.engine.evidence import Evidence, read_evidence
from deploychain.engine.options import decode_version, layer_precisions, option
from deploychain.precision import Precision
from deploychain.records import LayerKind, LayerVerdict

STAMP = "[03/01/2026-10:00:00]"


def log(*lines: str) -> str:
    """Lines with ``I `` or the like become stamped messages; others stay as they are."""
    made = []
    for line in lines:
        if len(line) > 1 and line[0] in "VIWEF" and line[1] == " ":
            made.append(f"{STAMP} [{line[0]}] {line[2:]}")
        else:
            made.append(line)
    return "\n".join(made) + "\n"


def read(tmp_path: Path, text: str | bytes, name: str = "log.txt") -> Evidence:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_evidence([path])


BUILD = log(
    "&&&& RUNNING TensorRT.trtexec [TensorRT v8601] # trtexec --onnx=net.onnx --fp16 --verbose --dumpProfile",
    "I === Build Options ===",
    "I Precision: FP32+FP16",
    "I LayerPrecisions: ",
    "I Profiling verbosity: 0",
    "I ",
    "I === Device Information ===",
    "I Selected Device: Orin",
    "I Compute Capability: 8.7",
    "I ",
    "I TensorRT version: 8.6.1",
    "V [TRT] Engine Layer Information:",
    "Layer(Reformat): Reformatting CopyNode for Input Tensor 0 to conv1, Tactic: 0x00000000000003e8, "
    "x (Float[1,3,8,8]) -> Reformatted Input Tensor 0 to conv1 (Half[1,3:8,8,8])",
    "Layer(CaskConvolution): conv1, Tactic: 0x98e92db98836b738, Reformatted Input Tensor 0 to conv1 (Half[1,3:8,8,8]) "
    "-> a (Half[1,32:8,8,8])",
    "Layer(CaskConvolution): conv2, Tactic: 0x98e92db98836b739, b (Float[1,32,8,8]) -> c (Float[1,32,8,8])",
    "Layer(CaskPooling): pool, Tactic: 0x98e92db98836b73a, c (Float[1,32,8,8]) -> d (Half[1,32:8,8,8])",
    "Layer(NoOp): shape, Tactic: 0x0000000000000000, d (Half[1,32:8,8,8]) -> y (Half[1,2048])",
    "I [TRT] Created engine",
    "I === Performance summary ===",
    "I Throughput: 100.5 qps",
    "I Latency: min = 1 ms, max = 2e+01 ms, mean = 1.5 ms, median = 1.25 ms, percentile(90%) = 2 ms, percentile(99.9%) = 3 ms",
    "I GPU Compute Time: min = 0.5 ms, max = 1 ms, mean = 0.75 ms, median = 0.7 ms, percentile(99%) = 0.9 ms",
    "I ",
    "I === Profile (10 iterations ) ===",
    "I    Time(ms)     Avg.(ms)   Median(ms)   Time(%)   Layer",
    "I        1.00       0.1000       0.1000      10.0   Reformatting CopyNode for Input Tensor 0 to conv1",
    "I        6.00       0.6000       0.6000      60.0   conv1",
    "I        2.00       0.2000       0.2000      20.0   conv2",
    "I        1.00       0.1000       0.1000      10.0   pool",
    "I       10.00       1.0000       1.0000     100.0   Total",
    "I ",
    "W [TRT] something harmless",
    "&&&& PASSED TensorRT.trtexec [TensorRT v8601] # trtexec --onnx=net.onnx --fp16 --verbose --dumpProfile",
)


def check_build(evidence: Evidence) -> None:
    run = evidence.runs[0]
    assert (run.status, run.tensorrt, run.device, run.throughput_qps) == ("passed", "8.6.1", "Orin", 100.5)
    assert run.latency is not None and run.latency.max == 20.0
    assert run.latency.percentiles == {90.0: 2.0, 99.9: 3.0} and run.latency.p99 is None
    assert run.gpu is not None and run.gpu.p99 == 0.9
    assert evidence.asked is Precision.FP16 and evidence.asked_from == "build options"
    assert [layer.name for layer in evidence.layers][1:] == ["conv1", "conv2", "pool", "shape"]
    conv1, conv2, pool = evidence.layers[1:4]
    assert (conv1.verdict, conv1.compute, conv1.time_ms) == (LayerVerdict.AS_ASKED, Precision.FP16, 0.6)
    # conv2 reads and writes FP32 tensors that no layer links to the network's border except `b`, which nothing makes.
    assert conv2.compute is Precision.FP32
    assert (pool.compute, pool.verdict) == (None, LayerVerdict.POSSIBLE)
    assert conv1.share == pytest.approx(0.6)
    assert evidence.layers[4].time_ms == 0.0  # a table of 8.6 leaves layers without time out
    assert evidence.summary is not None and evidence.summary.time_share_as_asked == pytest.approx(0.6)


def test_whole_run(tmp_path: Path) -> None:
    check_build(read(tmp_path, BUILD))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda t: t.replace("\n", "\r\n"), id="crlf"),
        pytest.param(lambda t: "\ufeff" + t, id="bom"),
        pytest.param(lambda t: "".join(f"2026-03-01T10:00:00.{i:09d}Z {x}\n" for i, x in enumerate(t.split("\n"))), id="docker"),
        pytest.param(lambda t: "".join(f"\x1b[36mtrt-1  |\x1b[0m {x}\n" for x in t.split("\n")), id="compose"),
        pytest.param(
            lambda t: "".join(f"Mar {d % 28 + 1:2d} 10:00:{d % 60:02d} orin trtexec[{d + 7}]: {x}\n" for d, x in enumerate(t.split("\n"))),
            id="journald",
        ),
        pytest.param(lambda t: "".join(f"2026-03-01T10:00:00.1234567Z {x}\n" for x in t.split("\n")), id="github-actions"),
        pytest.param(lambda t: "".join(f"> {x}\n" for x in t.split("\n")), id="markdown-quote"),
        pytest.param(lambda t: "# Notes\n\nSome text.\n\n```\n" + t + "```\n", id="markdown-fence"),
        pytest.param(lambda t: "".join(f"\t{x}\n" for x in t.split("\n")), id="tabs"),
        pytest.param(lambda t: "".join(f"{x}\n\n" for x in t.split("\n")), id="markdown-blank-lines"),
        pytest.param(
            lambda t: "".join(json.dumps({"log": x + "\n", "stream": "stderr", "time": "2026"}) + "\n" for x in t.split("\n")),
            id="docker-json-file",
        ),
        pytest.param(lambda t: "".join(f"\x1b[32m{x}\x1b[0m\n" for x in t.split("\n")), id="ansi"),
        pytest.param(lambda t: t.replace("&&&& RUNNING", "root@orin:~# trtexec\n&&&& RUNNING"), id="prompt"),
    ],
)  # fmt: skip
def test_wrapped_in_prefixes(tmp_path: Path, change: object) -> None:
    check_build(read(tmp_path, change(BUILD)))  # type: ignore[operator]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    check_build(read(tmp_path, BUILD.encode(encoding)))


def test_conv2_at_border_is_expected_only_next_to_the_network(tmp_path: Path) -> None:
    inner = BUILD.replace("b (Float[1,32,8,8]) -> c", "a (Half[1,32:8,8,8]) -> c")
    layers = {layer.name: layer for layer in read(tmp_path, inner).layers}
    assert layers["conv2"].verdict is LayerVerdict.POSSIBLE  # Half in, Float out, in the middle
    island = BUILD.replace(
        "Layer(CaskConvolution): conv2,",
        "Layer(Reformat): Reformatting CopyNode for Input Tensor 0 to conv2, Tactic: 0x0, a (Half[1,32:8,8,8]) "
        "-> b (Float[1,32,8,8])\nLayer(CaskConvolution): conv2,",
    )
    layers = {layer.name: layer for layer in read(tmp_path, island).layers}
    assert layers["conv2"].verdict is LayerVerdict.FALLBACK


def test_banner_versions() -> None:
    for digits, version in (
        ("8001", "8.0.1"), ("8003", "8.0.3"), ("8601", "8.6.1"), ("8410", "8.4.10"), ("8510", "8.5.10"), ("9200", "9.2.0"),
        ("100001", "10.0.1"), ("101601", "10.16.1"), ("110100", "11.1.0"), ("7", None), ("", None),
    ):  # fmt: skip
        assert decode_version(digits) == version


def test_seven_x_run(tmp_path: Path) -> None:
    text = log(
        "&&&& RUNNING TensorRT.trtexec # ./trtexec --onnx=a.onnx --int8",
        "I === Model Options ===",
        "I Host Latency",
        "I min: 1.5 ms (end to end 2.5 ms)",
        "I max: 3 ms (end to end 4 ms)",
        "I mean: 2 ms (end to end 3 ms)",
        "I median: 1.9 ms (end to end 2.9 ms)",
        "I percentile: 2.8 ms at 99% (end to end 3.8 ms at 99%)",
        "I throughput: 480.5 qps",
        "I walltime: 3.01 s",
        "I Enqueue Time",
        "I min: 0.1 ms",
        "I max: 0.3 ms",
        "I median: 0.2 ms",
        "I GPU Compute",
        "I min: 1.25 ms",
        "I max: 2 ms",
        "I mean: 1.5 ms",
        "I median: 1.4 ms",
        "I percentile: 1.75 ms at 99%",
        "I total compute time: 2.9 s",
        "I === Profile (5 iterations ) ===",
        "I                  Layer   Time (ms)   Avg. Time (ms)   Time %",
        "I   conv 1 input reformatter 0        0.50           0.1000     25.0",
        "I                639 copy 2.00        1.00           0.2000     50.0",
        "I                        Total        0.50           0.1000     25.0",
        "I                         zero        0.00           0.0000      0.0",
        "I                        Total        2.00           0.4000    100.0",
        "I ",
        "&&&& PASSED TensorRT.trtexec # ./trtexec --onnx=a.onnx --int8",
    )
    run = read(tmp_path, text).runs[0]
    assert run.status == "passed" and run.tensorrt is None and run.asked is Precision.INT8
    assert (run.throughput_qps, run.walltime_s) == (480.5, 3.01)
    assert run.latency is not None and run.gpu is not None
    assert (run.latency.min, run.latency.mean, run.latency.p99) == (1.5, 2, 2.8)
    assert (run.gpu.mean, run.gpu.p99) == (1.5, 1.75)
    assert run.stats["End-to-End Host Latency"].p99 == 3.8
    assert run.stats["Enqueue Time"].median == 0.2
    profile = run.profile
    assert profile is not None and profile.layout == "name first" and profile.iterations == 5
    assert profile.names == ("conv 1 input reformatter 0", "639 copy 2.00", "Total", "zero")
    assert list(profile.total_ms) == [0.5, 1.0, 0.5, 0.0] and profile.printed_total_ms == 2.0
    assert not profile.skips_zero_rows


def test_name_first_with_median(tmp_path: Path) -> None:
    text = log(
        "I === Profile (10 iterations ) ===",
        "I    Layer   Time (ms)   Avg. Time (ms)   Median Time (ms)   Time %",
        "I    conv 1.5 2   1.00   0.1000   0.1000   100.0",
        "I    Total   1.00   0.1000   0.1000   100.0",
    )
    profile = read(tmp_path, text).runs[0].profile
    assert profile is not None and profile.names == ("conv 1.5 2",) and profile.complete and profile.skips_zero_rows


def test_nan_row_ends_nothing(tmp_path: Path) -> None:
    text = log(
        "I === Profile (0 iterations ) ===",
        "I    Time(ms)     Avg.(ms)   Median(ms)   Time(%)   Layer",
        "I        0.00         -nan         0.0000      -nan   conv1",
        "I        0.00          nan            nan       nan   Total",
    )
    profile = read(tmp_path, text).runs[0].profile
    assert profile is not None and profile.names == ("conv1",) and profile.complete
    assert profile.mean_ms[0] != profile.mean_ms[0]


def test_verbose_list_up_to_8_2_and_7_python_logger(tmp_path: Path) -> None:
    text = "\n".join(
        [
            "[TensorRT] VERBOSE: Engine Layer Information:",
            "[TensorRT] VERBOSE: Layer(Convolution): conv (a), [b] + relu, Tactic: -9153228964338181824, "
            "in[Float(-2,1,28,28)] -> out[Int8(-2,32,28,28)]",
            "[TensorRT] VERBOSE: Layer(Constant): k, Tactic: 0,  -> (Unnamed Layer* 10) [Shuffle]_output[Half(1,10)]",
            "[TensorRT] WARNING: No implementation of layer conv1 -> x obeys the requested constraints in strict mode. "
            "No conforming implementation was found",
        ]
    )
    evidence = read(tmp_path, text)
    assert [layer.name for layer in evidence.layers] == ["conv (a), [b] + relu", "k"]
    assert evidence.layers[0].inputs[0].dims == (-2, 1, 28, 28)
    assert evidence.layers[0].outputs[0].dtype is Precision.INT8
    assert evidence.layers[1].kind is LayerKind.HELPER and evidence.layers[1].outputs[0].name.startswith("(Unnamed")
    warned = evidence.runs[0].warnings[0]
    assert (warned.kind, warned.layer) == ("constraint-not-obeyed", "conv1 -> x")


def test_python_logger_order(tmp_path: Path) -> None:
    text = (
        f"{STAMP} [TRT] [V] Engine Layer Information:\n"
        "Layer(Myelin): {ForeignNode[a...b]}, Tactic: 0x0, x (Float[3,16]) -> r (FP8[3,16]), s (BFloat16[3])\n"
        f"{STAMP} [TRT] [W] The network has FP4 Q/DQ layers but the hardware does not accelerate FP4 compute.\n"
    )
    evidence = read(tmp_path, text)
    assert [t.dtype for t in evidence.layers[0].outputs] == [Precision.FP8, Precision.BF16]
    assert evidence.layers[0].kind is LayerKind.OPAQUE
    assert evidence.runs[0].warnings[0].kind == "fp4-not-accelerated"


def test_dump_layer_info_with_messages_between(tmp_path: Path) -> None:
    text = log(
        "&&&& RUNNING TensorRT.trtexec [TensorRT v101601] [b11] # trtexec --onnx=a.onnx --stronglyTyped --dumpLayerInfo",
        "I Precision: FP32 (Strongly Typed)",
        "I Layer Information:",
        "I [TRT] Loaded engine size: 1 MiB",
        "I Layers:",
        "Name: a, LayerType: X + b, LayerType: gemm, Inputs: [ { Name: t, Location: y, Location: Device, Dimensions: [1,3], "
        "Format/Datatype: Half }, { Name: { Name: odd, Dimensions: [2], Format/Datatype: Half }], Outputs: [ { Name: o], "
        "Outputs: [, Location: Device, Dimensions: [1], Format/Datatype: BFloat16 }], ParameterType: Matrix Multiply, "
        'Weights: {"Type": "Half", "Count": 1}, TacticName: t, TacticValue: 0x1, StreamId: 3, Metadata: '
        "[ONNX Layer: /a[0]/MatMul]\x1e[ONNX Layer: b]",
        "",
        "Bindings:",
        "t, Location: y",
        "o], Outputs: [",
        "I Starting inference",
        "&&&& PASSED TensorRT.trtexec [TensorRT v101601] [b11] # trtexec",
    )
    evidence = read(tmp_path, text)
    (layer,) = evidence.layers
    assert layer.name == "a, LayerType: X + b" and layer.layer_type == "gemm"
    assert [t.name for t in layer.inputs] == ["t, Location: y", "{ Name: odd"]
    assert layer.onnx_nodes == ("/a[0]/MatMul", "b") and layer.stream == 3 and layer.weights is Precision.FP16
    assert evidence.runs[0].strongly_typed and evidence.runs[0].build == 11
    assert evidence.listing is not None and "t, Location: y" in evidence.listing.bindings


def test_names_only_listing(tmp_path: Path) -> None:
    text = log(
        "&&&& RUNNING TensorRT.trtexec [TensorRT v8502] # trtexec --loadEngine=a.plan --dumpLayerInfo --fp16",
        "I Layer Information:",
        "I [TRT] The profiling verbosity was set to ProfilingVerbosity::kLAYER_NAMES_ONLY when the engine was built",
        "I Layers:",
        "conv1 + relu, x",
        "Reformatting CopyNode for Input Tensor 0 to conv2",
        "conv2",
        "",
        "Bindings:",
        "x",
        "y",
        "I Starting inference",
        "&&&& PASSED TensorRT.trtexec [TensorRT v8502] # trtexec",
    )
    evidence = read(tmp_path, text)
    assert [layer.name for layer in evidence.layers] == [
        "conv1 + relu, x", "Reformatting CopyNode for Input Tensor 0 to conv2", "conv2",
    ]  # fmt: skip
    assert evidence.asked is None  # flags of a run that loads an engine say nothing about it
    assert evidence.summary is not None and (evidence.summary.unknown, evidence.summary.fallback) == (2, 0)
    assert "cannot be judged" in evidence.headline() and "fallback" not in evidence.headline()


def test_newline_in_a_name_and_a_line_cut_by_the_log_driver(tmp_path: Path) -> None:
    line = (
        "Name: conv\none, LayerType: CaskConvolution, Inputs: [ { Name: x, Dimensions: [1], Format/Datatype: Half }], "
        "Outputs: [ { Name: y, Dimensions: [1], Format/Datatype: Half }], TacticName: t, StreamId: 0, Metadata: "
    )
    assert [layer.name for layer in read(tmp_path, f"Layers:\n{line}\n\nBindings:\nx\ny\n").layers] == ["conv\none"]
    long = line.replace("conv\none", "c" * 5000)
    cut = f"Layers:\n{long[:4500]}\n{long[4500:]}\n\nBindings:\nx\n"
    assert [layer.name for layer in read(tmp_path, cut).layers] == ["c" * 5000]


def test_torn_line(tmp_path: Path) -> None:
    text = log(
        "&&&& RUNNING TensorRT.trtexec [TensorRT v8601] # trtexec --onnx=a.onnx",
        f"I Starting inf{STAMP} [W] [TRT] Could not find any implementation for node conv7.",
        f"erence{STAMP} [I] Throughput: 5 qps",
    )
    evidence = read(tmp_path, text)
    assert evidence.runs[0].warnings[0].layer == "conv7" and evidence.runs[0].throughput_qps == 5
    assert any("torn" in note for note in evidence.notes)


@pytest.mark.parametrize(
    ("tail", "status"),
    [
        ("", "incomplete"),
        ("&&&& PASSED TensorRT.trtexec # x", "passed"),
        ("&&&& FAILED TensorRT.trtexec # x", "failed"),
        ("&&&& PASSED TensorRT.trtexec # x\n&&&& FAILED TensorRT.trtexec # x", "failed"),
        ("&&&& WAIVED TensorRT.trtexec # x", "unknown"),
        ("&&&& PASSED TensorRT.trtexec # x\nnsys: done", "passed"),
    ],
)
def test_status(tmp_path: Path, tail: str, status: str) -> None:
    evidence = read(tmp_path, log("&&&& RUNNING TensorRT.trtexec # x", "I Model: a", tail))
    assert [run.status for run in evidence.runs] == [status]
    assert evidence.passed is (True if status == "passed" else None if status == "unknown" else False)


def test_head_cut_off(tmp_path: Path) -> None:
    evidence = read(tmp_path, log("I Throughput: 7 qps", "&&&& PASSED TensorRT.trtexec [TensorRT v8601] # x"))
    assert evidence.runs[0].status == "passed" and evidence.runs[0].throughput_qps == 7
    assert any("start of the run is missing" in p.text for p in evidence.problems)


def test_task_banners_of_11_do_not_fail_a_run(tmp_path: Path) -> None:
    evidence = read(
        tmp_path,
        log(
            "&&&& RUNNING TensorRT.trtexec [TensorRT v110100] [b1] # trtexec --tuneBuildRoutes",
            "&&&& TASK_BEGIN [iter=0] BuildRoute = 'a'",
            "&&&& TASK_ABORT [iter=0] BuildRoute = 'a'",
            "&&&& PASSED TensorRT.trtexec [TensorRT v110100] [b1] # trtexec --tuneBuildRoutes",
        ),
    )
    assert evidence.runs[0].status == "passed"
    assert any("TASK_ABORT" in p.text for p in evidence.problems)


def test_options_of_a_loaded_engine_and_of_11_say_what_they_mean(tmp_path: Path) -> None:
    loaded = read(
        tmp_path,
        log(
            "&&&& RUNNING TensorRT.trtexec [TensorRT v101400] [b1] # trtexec --loadEngine=a.plan --fp16",
            "I === Build Options ===",
            "I Precision: FP32+FP16",
            "&&&& PASSED TensorRT.trtexec [TensorRT v101400] [b1] # trtexec",
        ),
    )
    assert loaded.asked is None and any("no effect" in note for note in loaded.notes)
    eleven = read(
        tmp_path,
        log("&&&& RUNNING TensorRT.trtexec [TensorRT v110000] [b1] # trtexec --onnx=a.onnx", "I Throughput: 1 qps"),
    )
    assert eleven.runs[0].strongly_typed and any("not comparable" in note for note in eleven.notes)


def test_command_line_options() -> None:
    command = "trtexec --onnx=my model.onnx --fp16 --layerPrecisions=a:b:fp32,*:fp16 --best"
    assert (
        option(command, "onnx") == "my model.onnx" and option(command, "fp16") == "" and option(command, "int8") is None
    )
    assert layer_precisions(option(command, "layerPrecisions") or "") == {"a:b": Precision.FP32, "*": Precision.FP16}


def test_pinned_layers(tmp_path: Path) -> None:
    pinned = BUILD.replace("I ", "I ").replace(
        "--fp16 --verbose", "--fp16 --layerPrecisions=conv2:fp32,conv1:fp32 --verbose"
    )
    layers = {layer.name: layer for layer in read(tmp_path, pinned).layers}
    assert layers["conv2"].verdict is LayerVerdict.EXPECTED
    assert layers["conv1"].verdict is LayerVerdict.DEMOTED and layers["conv1"].asked is Precision.FP32


def test_weight_overflow_warning(tmp_path: Path) -> None:
    evidence = read(
        tmp_path,
        log(
            "W [TRT] TensorRT encountered issues when converting weights between types and that could affect accuracy.",
            "W [TRT] - 3 weights are affected by this issue: Detected finite FP32 values which would overflow in FP16 "
            "and converted them to the closest finite FP16 value.",
            "V [TRT]   List of affected weights: conv1.weight",
            "W [TRT] Detected layernorm nodes in FP16: /norm/Add, /norm/Mul",
        ),
    )
    found = {w.kind: w for w in evidence.runs[0].warnings}
    assert found["fp16-weight-overflow"].count == 3 and found["fp16-weight-overflow"].serious
    assert found["layernorm-overflow"].layer == "/norm/Add, /norm/Mul"
    assert "affected-weights" in found


def test_embedded_layer_json(tmp_path: Path) -> None:
    document = {
        "Layers": [{"Name": "c", "LayerType": "X", "Inputs": [], "Outputs": [], "TacticName": "h884"}],
        "Bindings": [],
    }
    text = "Engine information:\n" + json.dumps(document, indent=2) + "\nInput -> x\n"
    evidence = read(tmp_path, text)
    assert evidence.inputs[0].kind == "graph" and evidence.layers[0].compute is Precision.FP16


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "empty"),
        (b"PK\x03\x04rest", "zip"),
        (b"ftrt\x00\x00\x00\x00", "engine"),
        (b"\x08\x07\x12\x07pytorch" + bytes(40), "ONNX"),
        (b"just some text\nof no interest\n", "no banner"),
        (b'[{"name": "y", "dimensions": "1x2", "values": [1, 2]}]', "output values"),
        (b"[" * 100_000, ""),
        (b'{"a": ' * 50_000, ""),
    ],
)  # fmt: skip
def test_refused_with_a_reason(tmp_path: Path, content: bytes, word: str) -> None:
    evidence = read(tmp_path, content)
    assert not evidence.readable
    assert word in (evidence.inputs[0].problem or "nothing")


def test_missing_file_and_folder(tmp_path: Path) -> None:
    evidence = read_evidence([tmp_path / "none.log", tmp_path])
    assert not evidence.readable and all(reading.problem for reading in evidence.inputs)


def test_many_runs_stay_bounded(tmp_path: Path) -> None:
    block = log("&&&& RUNNING T # x", "I Throughput: 3 qps", "&&&& PASSED T # x")
    evidence = read(tmp_path, block * 1000 + log("&&&& RUNNING T # x", "&&&& FAILED T # x"))
    assert len(evidence.runs) == 200 and evidence.passed is False
    assert any("801 runs in the middle" in note for note in evidence.notes)


def test_loggers_of_their_own(tmp_path: Path) -> None:
    text = (
        "[TRT] [VERBOSE] Engine Layer Information:\n"
        "Layer(CaskConvolution): c, Tactic: 0x1, x (Half[1]) -> y (Half[1])\n"
        "[TRT] [WARNING] Warning: no implementation of (Unnamed Layer* 173) [Fully Connected] obeys the requested "
        "constraints, using a higher precision type\n"
    )
    evidence = read(tmp_path, text)
    assert [layer.name for layer in evidence.layers] == ["c"]
    assert evidence.runs[0].warnings[0].layer == "(Unnamed Layer* 173) [Fully Connected]"


def test_layers_one_by_one(tmp_path: Path) -> None:
    one = {"Name": "c", "LayerType": "X", "Inputs": [], "Outputs": [], "TacticName": "h884"}
    for text in (json.dumps(one), json.dumps(one) + "\n" + json.dumps({**one, "Name": "d"}) + "\n"):
        evidence = read(tmp_path, text)
        assert evidence.complete and evidence.inputs[0].problem is None
        assert [layer.compute for layer in evidence.layers] == [Precision.FP16] * text.count('"Name"')
    cut = read(tmp_path, json.dumps(one) + "\n" + json.dumps(one)[:30])
    assert len(cut.layers) == 1 and not cut.complete
