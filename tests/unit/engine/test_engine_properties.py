# ruff: noqa: E501 (lines of the real grammar are long)
"""Properties that hold for any input: nothing raises, names survive, counts add up, a cut file is never a whole one."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from deploychain.engine.classify import make_layer
from deploychain.engine.evidence import Evidence, read_evidence
from deploychain.engine.join import join
from deploychain.engine.judge import judge_layers, summarise
from deploychain.engine.layertext import parse_build_line, parse_layer_line
from deploychain.engine.nodes import nodes_from_model, nodes_in_metadata, nodes_in_name
from deploychain.engine.profiles import ProfileBuilder, parse_profile_json
from deploychain.engine.report import build_report
from deploychain.errors import DeploychainError
from deploychain.precision import Precision
from deploychain.records import LayerKind, LayerRecord, TensorRecord

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "engine"
SEEDS = [p.read_bytes() for p in sorted(GOLDEN.iterdir()) if p.suffix in (".txt", ".json")]
calm = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)

# What no writer can put into one line of text, and what the grammar itself uses between the parts of a line.
LINE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), min_size=1, max_size=60)
MARKS = (
    ", LayerType: ",
    ", Inputs: [",
    "{ Name: ",
    ", Dimensions: [",
    ", Location: ",
    ", Tactic: ",
    "], Outputs: [",
    "], Constants: [",
)
NAME = LINE.filter(lambda name: not any(mark in name for mark in MARKS))
WORDS = {
    "Half": Precision.FP16,
    "Float": Precision.FP32,
    "BFloat16": Precision.BF16,
    "Int8": Precision.INT8,
    "FP8": Precision.FP8,
}
WORD = st.sampled_from(sorted(WORDS))


def read(data: bytes) -> Evidence:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "input"
        path.write_bytes(data)
        return read_evidence([path])


def whole_use(data: bytes) -> None:
    try:
        evidence = read(data)
    except DeploychainError:
        return
    json.dumps(evidence.to_json(), allow_nan=False)
    build_report(evidence)
    if evidence.summary is not None:
        s = evidence.summary
        assert s.as_asked + s.fallback + s.demoted + s.possible + s.expected + s.unknown == s.compute_layers <= s.layers


@calm
@given(st.binary(max_size=3000))
def test_any_bytes(data: bytes) -> None:
    whole_use(data)


@calm
@given(st.sampled_from(SEEDS), st.data())
def test_any_damage_to_real_files(seed: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(seed)))
    drop = data.draw(st.integers(0, 400))
    put = data.draw(
        st.binary(max_size=40) | st.sampled_from([b"&&&& RUNNING x\n", b"Layers:\n", b"}", b'"', b"\x00", b"nan"])
    )
    whole_use(seed[:at] + put + seed[at + drop :])


@calm
@given(st.lists(st.tuples(NAME, WORD, WORD), min_size=1, max_size=5))
def test_names_and_types_survive_the_inspector_line(rows: list[tuple[str, str, str]]) -> None:
    for name, into, out in rows:
        line = (
            f"Name: {name}, LayerType: kgen, Inputs: [ {{ Name: {name}, Location: Device, Dimensions: [1,-1], "
            f"Format/Datatype: {into} }}], Outputs: [ {{ Name: {name}, Dimensions: [], Format/Datatype: {out} }}], "
            f"TacticName: t, StreamId: 0, Metadata: "
        )
        layer = parse_layer_line(line)
        assert layer is not None and layer.name == name
        assert [(t.name, t.dtype, t.dims) for t in layer.inputs] == [(name, WORDS[into], (1, -1))]
        assert [(t.name, t.dtype, t.dims) for t in layer.outputs] == [(name, WORDS[out], ())]


@calm
@given(NAME, NAME, WORD, WORD, st.booleans())
def test_names_and_types_survive_the_build_list(name: str, tensor: str, into: str, out: str, new: bool) -> None:
    assume(
        " -> " not in tensor
        and not any(f"{w}[" in tensor or f"{w}(" in tensor for w in ("Half", "Float", "Int8", "FP8", "None"))
    )
    assume(not tensor.startswith((",", " ")) and not tensor.endswith(" "))
    a, b = (
        (f"{tensor} ({into}[1,2:8])", f"{tensor} ({out}[-1])")
        if new
        else (f"{tensor}[{into}(1,2)]", f"{tensor}[{out}(-2)]")
    )
    layer = parse_build_line(f"Layer(CaskConvolution): {name}, Tactic: 0x01, {a} -> {b}")
    assert layer is not None and layer.name == name
    assert [t.dtype for t in layer.inputs] == [WORDS[into]] and [t.dtype for t in layer.outputs] == [WORDS[out]]
    assert layer.inputs[0].name == tensor


@calm
@given(st.lists(st.tuples(LINE, st.floats(0, 1e6)), min_size=1, max_size=6))
def test_profile_rows_survive_raw_writing(rows: list[tuple[str, float]]) -> None:
    lines = [
        f', {{ "name" : "{n}", "timeMs" : {t!r}, "averageMs" : nan, "medianMs" : 0, "percentage" : nan }}'
        for n, t in rows
    ]
    assume(not any('"timeMs"' in name or "\\" in name for name, _ in rows))
    profile, problem = parse_profile_json('[\n  { "count" : 7 }\n' + "\n".join(lines) + "\n]\n")
    assert profile.names == tuple(name for name, _ in rows) and list(profile.total_ms) == [t for _, t in rows]
    assert profile.iterations == 7 and profile.complete and problem is not None


@calm
@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=8), st.lists(st.sampled_from(["a", "b", "d"]), max_size=8))
def test_join_uses_each_row_once(names: list[str], rows: list[str]) -> None:
    layers = [make_layer(name, "CaskConvolution") for name in names]
    builder = ProfileBuilder()
    for place, row in enumerate(rows):
        builder.add(row, float(2**place), float(2**place))
    joined = join(layers, builder.build(1))
    if joined.how == "none":
        assert sum(min(names.count(r), rows.count(r)) for r in set(rows)) * 2 < len(rows)
        return
    given_out = sum(time for time in joined.times if time is not None)
    left = sum(2.0**place for place, row in enumerate(rows) if row in joined.unmatched_rows)
    assert given_out + left >= 2.0 ** len(rows) - 1 - 1e-9  # every row is in a layer or on the list
    assert len([t for t in joined.times if t is not None]) + len(joined.unmatched_rows) == len(rows)


TENSOR = st.builds(TensorRecord, st.sampled_from("abcdef"), st.none() | st.sampled_from(list(Precision)))
LAYER = st.builds(
    lambda name, kind, a, b, weights: make_layer(name, kind, tuple(a), tuple(b), weights=weights),
    st.sampled_from(["c", "__myl_CastMulCast_myl0_1", "__myl_Resh_myl0_2", "{ForeignNode[a...b]}", "x + y", "Reformatting CopyNode for x"]),
    st.sampled_from(["CaskConvolution", "kgen", "Reformat", "NoOp", "Myelin", "Shuffle", "PluginV2", "runtime_fusion"]),
    st.lists(TENSOR, max_size=3), st.lists(TENSOR, max_size=3), st.none() | st.sampled_from([Precision.FP16, Precision.INT8]),
)  # fmt: skip


@calm
@given(st.lists(LAYER, max_size=8), st.none() | st.sampled_from(list(Precision)), st.booleans())
def test_every_arithmetic_layer_is_counted_once(
    layers: list[LayerRecord], asked: Precision | None, graph: bool
) -> None:
    judged = judge_layers(layers, asked, {"x": Precision.FP16, "y": Precision.FP32} if graph else None)
    s = summarise(judged)
    assert [layer.name for layer in judged] == [layer.name for layer in layers]
    assert s.compute_layers == sum(layer.kind in (LayerKind.COMPUTE, LayerKind.OPAQUE) for layer in layers)
    assert s.as_asked + s.fallback + s.demoted + s.possible + s.expected + s.unknown == s.compute_layers
    for layer in judged:
        if asked is not None and layer.verdict.value == "fallback":
            assert layer.compute is not None and layer.asked is not None and layer.compute.rank > layer.asked.rank
        if layer.verdict.value == "demoted":
            assert layer.compute is not None and layer.asked is not None and layer.compute.rank < layer.asked.rank


@calm
@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x1e\x1f\ufffd"), min_size=1, max_size=20),
        max_size=4,
    )
)
def test_metadata_gives_back_the_nodes(nodes: list[str]) -> None:
    assume(not any("[ONNX Layer: " in n or n.strip() != n or n.endswith("]") for n in nodes))
    for separator in ("\x1e", "\x1f", "\ufffd", ""):
        text = separator.join(f"[ONNX Layer: {node}]" for node in nodes)
        assert nodes_in_metadata(text) == tuple(dict.fromkeys(nodes))


@calm
@given(st.text(max_size=300))
def test_names_never_raise(text: str) -> None:
    nodes_in_metadata(text)
    nodes_in_name(text)
    nodes_from_model(text, {"a", "b"})
    parse_layer_line(text)
    parse_build_line(text)


RUN = (
    b"&&&& RUNNING TensorRT.trtexec [TensorRT v8601] # trtexec --onnx=a.onnx --fp16\n"
    b"[03/01/2026-10:00:00] [I] Throughput: 5 qps\n"
    b"[03/01/2026-10:00:00] [W] [TRT] x\n"
    b"[03/01/2026-10:00:00] [I] === Profile (2 iterations ) ===\n"
    b"[03/01/2026-10:00:00] [I]    Time(ms)     Avg.(ms)   Median(ms)   Time(%)   Layer\n"
    b"[03/01/2026-10:00:00] [I]        1.00       0.5000       0.5000     100.0   a\n"
    b"[03/01/2026-10:00:00] [I]        1.00       0.5000       0.5000     100.0   Total\n"
    b"&&&& PASSED TensorRT.trtexec [TensorRT v8601] # trtexec --onnx=a.onnx --fp16\n"
)


@calm
@given(st.integers(1, RUN.index(b"&&&& PASSED") + 10))
def test_a_cut_run_is_never_a_pass(keep: int) -> None:
    assert read(RUN[:keep]).passed is not True
    assert read(RUN).passed is True


LAYERS = json.dumps(
    {"Layers": [{"Name": f"l{i}", "LayerType": "T", "Inputs": [], "Outputs": []} for i in range(9)], "Bindings": []}
)


@calm
@given(st.integers(1, len(LAYERS) - 1))
def test_a_cut_listing_is_never_complete(keep: int) -> None:
    evidence = read(LAYERS[:keep].encode())
    assert not evidence.complete and evidence.inputs[0].problem
    assert read(LAYERS.encode()).complete


PREFIX = st.sampled_from(
    ["> ", "\t", "svc-1  | ", "2026-03-01T10:00:00.123Z ", "Mar 01 10:00:00 host x[12]: ", "\x1b[36mweb |\x1b[0m "]
)


@calm
@given(PREFIX, st.sampled_from(["\n", "\r\n"]))
def test_a_common_prefix_changes_nothing(prefix: str, end: str) -> None:
    plain = read(RUN).runs[0]
    wrapped = read("".join(f"{prefix}{line}{end}" for line in RUN.decode().split("\n")).encode()).runs[0]
    assert (wrapped.status, wrapped.throughput_qps, wrapped.tensorrt) == (
        plain.status,
        plain.throughput_qps,
        plain.tensorrt,
    )
    assert wrapped.profile is not None and plain.profile is not None
    assert wrapped.profile.names == plain.profile.names and wrapped.warnings == plain.warnings
