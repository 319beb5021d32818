"""Kind, compute precision and verdict, rule by rule, on hand-made layers."""

from __future__ import annotations

import pytest

from deploychain.engine.classify import make_layer
from deploychain.engine.datatypes import kernel_words, tactic_precision, tensor_precision
from deploychain.engine.judge import judge_layers, summarise
from deploychain.precision import Precision as P
from deploychain.records import EvidenceSource, LayerKind, LayerRecord, LayerVerdict, TensorRecord


def tensor(name: str, dtype: P | None) -> TensorRecord:
    return TensorRecord(name, dtype, (1, 8))


def layer(
    name: str = "l", kind: str = "CaskConvolution", ins: str = "", outs: str = "", **facts: object
) -> LayerRecord:
    """``ins`` and ``outs`` like ``a:fp16 b:fp32``."""

    def tensors(text: str) -> tuple[TensorRecord, ...]:
        return tuple(
            tensor(part.split(":")[0], P(part.split(":")[1]) if part.split(":")[1] != "none" else None)
            for part in text.split()
        )

    return make_layer(name, kind, tensors(ins), tensors(outs), **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("Half", P.FP16), ("Float", P.FP32), ("BFloat16", P.BF16), ("FP8", P.FP8), ("FP4", P.FP4), ("Int8", P.INT8),
        ("Int4", P.INT4), ("Int32", P.INT32), ("Int64", P.INT64), ("Bool", P.BOOL), ("UInt8", P.UINT8), ("None", None),
        ("", None), ("N/A due to dynamic shapes", None), ("Row major linear FP32", P.FP32),
        ("Row major linear FP32.", P.FP32), ("Row major linear FP16 format", P.FP16),
        ("Channel major FP16 format where channel % 8 == 0", P.FP16), ("Row major linear BFloat16 format", P.BF16),
        ("Thirty-two wide channel vectorized row major Int8 format", P.INT8), ("Row major linear BOOL", P.BOOL),
        ("Row major linear FP4 format (kLINEAR)", P.FP4), ("Row major linear Int32", P.INT32),
    ],
)  # fmt: skip
def test_tensor_words(text: str, want: P | None) -> None:
    assert tensor_precision(text) is want


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("ampere_fp32_icudnn_int8x4_128x128_relu_small_nn_v1", P.INT8),
        ("sm80_xmma_fprop_implicit_gemm_i8i8_i8i32_f32_nchw_vect_c_32kcrs_vect_c_32", P.INT8),
        ("sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize64x64x64", P.FP16),
        ("sm50_xmma_cublas_gemvx_f16f16_f32_f32_tn_n_int32_unit_n_launch", P.FP16),
        ("sm50_xmma_pooling_fw_4d_FP16FP32NHWC_Average_FastDiv_CAlign4", P.FP16),
        ("sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw", P.TF32),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x16", P.TF32),
        ("cutlass_80_tensorop_s1688gemm_128x64_16x6_nn_align4", P.TF32),
        ("turing_fp16_s1688cudnn_fp16_128x128_ldg8_relu_exp_interior_nhwc_tn_v1", P.FP16),
        ("volta_h884cudnn_256x128_ldg8_relu_exp_small_nhwc_tn_v1", P.FP16),
        ("turing_int8_i8816cudnn_int8_256x64_ldg16_relu_singleBuffer_small_nt_v1", P.INT8),
        ("maxwell_scudnn_128x32_relu_small_nn_v0", P.FP32),
        ("sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs_nchw_tilesize32x32x8_g1_ffma", P.FP32),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_cublas", P.BF16),
        ("sm89_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n", P.FP8),
        ("__myl_CastMulFp32_0x61e6", None), ("__myelin_CASK_STUB", None), ("cutlass", None), ("", None),
    ],
)  # fmt: skip
def test_tactic_words(name: str, want: P | None) -> None:
    assert tactic_precision(name) is want


def test_kernel_words() -> None:
    assert kernel_words("__myl_CastMulAddReluCast_myl0_3") == ("Cast", "Mul", "Add", "Relu", "Cast")
    assert kernel_words("__myl_ResMulSumAddCas_0xabc") == ("Res", "Mul", "Sum", "Add", "Cas")
    assert kernel_words("conv1") == ()


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (layer("r", "Reformat", "a:fp32", "b:fp16"), LayerKind.COPY),
        (layer("r", "MyelinReformat", "a:fp32", "b:fp16"), LayerKind.COPY),
        (layer("Reformatting CopyNode for Input Tensor 0 to x", "NoOp", "a:fp16", "b:fp16"), LayerKind.COPY),
        (layer("conv input reformatter 0", "Reformat7", "a:fp16", "b:fp16"), LayerKind.COPY),
        (layer("n", "NoOp", "a:fp32", "b:fp32"), LayerKind.HELPER),
        (layer("c", "Constant", "", "b:fp32"), LayerKind.HELPER),
        (layer("s", "shape_call"), LayerKind.HELPER), (layer("s", "signal"), LayerKind.HELPER),
        (layer("s", "TrainStation"), LayerKind.HELPER), (layer("s", "runtime_function"), LayerKind.HELPER),
        (layer("s", "Shuffle", "a:fp32", "b:fp32"), LayerKind.DATA_MOVEMENT),
        (layer("s", "Odd", "a:fp32", "b:fp32", parameter_type="Concatenation"), LayerKind.DATA_MOVEMENT),
        (layer("i", "ElementWise", "a:int32", "b:bool"), LayerKind.INTEGER),
        (layer("{ForeignNode[a...b]}", "Myelin", "a:fp16", "b:fp16"), LayerKind.OPAQUE),
        (layer("{ForeignNode[a...b]}", "DLA", "a:fp16", "b:fp16"), LayerKind.OPAQUE),
        (layer("__myl_Cast_myl0_1", "kgen", "a:fp32", "b:fp16"), LayerKind.COPY),
        (layer("p", "PluginV2", "a:fp16", "b:fp16"), LayerKind.COMPUTE),
        (layer("c", "CaskConvolution", "a:none", "b:none"), LayerKind.COMPUTE),
    ],
)  # fmt: skip
def test_kinds(made: LayerRecord, kind: LayerKind) -> None:
    assert made.kind is kind


@pytest.mark.parametrize(
    ("made", "compute", "evidence"),
    [
        # Weights and kernel that cannot both be true: neither is believed, whatever the tensors say.
        (layer(ins="a:fp16", outs="b:fp16", weights=P.FP32, tactic="x_f16f16_f16f32_f32"), None, EvidenceSource.NONE),
        (layer(ins="a:fp32", outs="b:fp32", weights=P.FP32, tactic="volta_h884gemm"), None, EvidenceSource.NONE),
        (layer(ins="a:fp16", outs="b:fp16", weights=P.FP16, tactic="x_f32f32_"), None, EvidenceSource.NONE),
        (layer(ins="a:fp16", outs="b:fp16", weights=P.FP16, tactic="x_tf32f32_"), None, EvidenceSource.NONE),
        (layer(ins="a:int8", outs="b:int8", weights=P.INT8, tactic="x_f16f16_f16f32_f32"), None, EvidenceSource.NONE),
        (layer(ins="a:fp32", outs="b:fp32", weights=P.FP32, tactic="x_i8i8_i8i32_f32"), None, EvidenceSource.NONE),
        # On Turing s1688 multiplies FP16; and an INT8 kernel may be named after its FP32 output.
        (layer(ins="a:fp16", outs="b:fp16", weights=P.FP16, tactic="turing_s1688gemm"), P.FP16, EvidenceSource.WEIGHTS),
        (layer(ins="a:int8", weights=P.INT8, tactic="ampere_fp32_icudnn_int8x4"), P.INT8, EvidenceSource.WEIGHTS),
        (layer(ins="a:fp16", weights=P.FP16, tactic="x_bf16bf16_"), P.FP16, EvidenceSource.WEIGHTS),
        (layer(ins="a:none", outs="b:none", weights=P.FP32), P.FP32, EvidenceSource.WEIGHTS),
        (layer(ins="a:fp32", outs="b:fp32", weights=P.FP32, tactic="x_tf32f32_"), P.TF32, EvidenceSource.TACTIC),
        (layer(ins="a:int8", outs="b:fp32", weights=P.INT8), P.INT8, EvidenceSource.WEIGHTS),
        # Weight-only quantisation: INT4 weights, FP16 input, FP16 products.
        (layer(ins="a:fp16", outs="b:fp16", weights=P.INT4), P.FP16, EvidenceSource.TENSORS),
        (layer(ins="a:fp32", outs="b:fp32", tactic="y_h884_"), P.FP16, EvidenceSource.TACTIC),
        (layer(ins="a:int32 b:fp16", outs="c:fp16"), P.FP16, EvidenceSource.TENSORS),
        (layer(ins="a:bf16", outs="b:bf16"), P.BF16, EvidenceSource.TENSORS),
        (layer(ins="a:int8", outs="b:fp32"), None, EvidenceSource.NONE),
        (layer(ins="a:none", outs="b:none"), None, EvidenceSource.NONE),
        (layer("{ForeignNode[a]}", "Myelin", "a:fp16", "b:fp16"), None, EvidenceSource.NONE),
    ],
)
def test_compute(made: LayerRecord, compute: P | None, evidence: EvidenceSource) -> None:
    assert (made.compute, made.evidence) == (compute, evidence)


@pytest.mark.parametrize("asked", [P.FP32, P.FP16, P.INT8])
def test_a_contradiction_is_unknown_whatever_was_asked(asked: P) -> None:
    # Its input is the network's: not even the border excuses it.
    made = layer("c", ins="p:fp32", outs="q:fp16", weights=P.FP32, tactic="x_f16f16_f16f32_f32")
    (found,) = judge_layers([made], asked, network_io=frozenset({"p"}))
    assert found.verdict is LayerVerdict.UNKNOWN and found.asked is asked
    assert found.reason == "weights FP32, kernel FP16: the evidence contradicts itself"
    (pinned,) = judge_layers([made], asked, pinned={"c": P.FP32})
    assert pinned.verdict is LayerVerdict.UNKNOWN and pinned.asked is P.FP32


def one(made: LayerRecord, asked: P | None, **facts: object) -> LayerVerdict:
    """The verdict of a layer in the middle of an engine that runs FP16 elsewhere."""
    first = layer("first", ins="x:fp16", outs="p:fp16")
    last = layer("last", ins="q:fp16", outs="y:fp16")
    return judge_layers((first, made, last), asked, network_io=("x", "y"), **facts)[1].verdict  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("made", "asked", "want"),
    [
        (layer(ins="p:fp16", outs="q:fp16"), P.FP16, LayerVerdict.AS_ASKED),
        (layer(ins="p:fp32", outs="q:fp32"), P.FP16, LayerVerdict.FALLBACK),
        (layer(ins="p:fp32", outs="q:fp32", weights=P.FP32, tactic="tf32"), P.FP16, LayerVerdict.FALLBACK),
        (layer(ins="p:fp32", outs="q:fp32", weights=P.FP32, tactic="tf32"), P.FP32, LayerVerdict.AS_ASKED),
        (layer(ins="p:fp16", outs="q:fp32"), P.FP16, LayerVerdict.POSSIBLE),
        (layer(ins="p:none", outs="q:none"), P.FP16, LayerVerdict.UNKNOWN),
        (layer(ins="p:fp16", outs="q:fp16"), None, LayerVerdict.UNKNOWN),
        (layer(ins="p:fp16", outs="q:fp16"), P.FP32, LayerVerdict.DEMOTED),
        (layer(ins="p:bf16", outs="q:bf16"), P.FP16, LayerVerdict.DEMOTED),
        (layer("{ForeignNode[a]}", "Myelin", "p:fp16", "q:fp16"), P.FP16, LayerVerdict.UNKNOWN),
        (layer("{ForeignNode[a]}", "Myelin", "p:fp16 r:fp32", "q:fp16"), P.FP16, LayerVerdict.POSSIBLE),
        (layer("{ForeignNode[a]}", "Myelin", "p:fp32", "q:fp32"), P.FP32, LayerVerdict.AS_ASKED),
        (layer("{ForeignNode[a]}", "Myelin", "p:int64", "q:int64"), P.FP16, LayerVerdict.EXPECTED),
        (layer("__myl_ReshTran_myl0_1", "kgen", "p:fp32", "q:fp32"), P.FP16, LayerVerdict.EXPECTED),
        (layer("__myl_MulAdd_myl0_1", "kgen", "p:fp32", "q:fp32"), P.FP16, LayerVerdict.FALLBACK),
        (layer("s", "Shuffle", "p:fp32", "q:fp32"), P.FP16, LayerVerdict.EXPECTED),
        (layer("r", "Reformat", "p:fp16", "q:fp32"), P.FP16, LayerVerdict.EXPECTED),
        (layer(ins="p:fp16", outs="q:fp16", weights=P.FP16), P.INT8, LayerVerdict.POSSIBLE),
        (layer("p", "CaskPooling", "p:fp16", "q:fp16"), P.INT8, LayerVerdict.EXPECTED),
        (layer("p", "CaskPooling", "p:fp32", "q:fp32"), P.INT8, LayerVerdict.FALLBACK),
    ],
)
def test_against_the_engine(made: LayerRecord, asked: P | None, want: LayerVerdict) -> None:
    assert one(made, asked) is want


def test_edges_are_expected_only_in_a_reduced_engine() -> None:
    layers = (
        layer("first", ins="x:fp32", outs="a:fp32"),
        layer("r", "Reformat", "a:fp32", "b:fp16"),
        layer("second", ins="b:fp16", outs="c:fp16"),
        layer("inner", ins="d:fp32", outs="e:fp32"),
        layer("r2", "Reformat", "f:fp16", "g:fp32"),
        layer("last", ins="g:fp32", outs="y:fp32"),
    )
    judged = {found.name: found.verdict for found in judge_layers(layers, P.FP16, network_io=("x", "y"))}
    assert judged["first"] is judged["last"] is LayerVerdict.EXPECTED
    assert judged["inner"] is LayerVerdict.FALLBACK
    whole = tuple(found for found in layers if found.name in ("first", "inner", "last"))
    assert all(f.verdict is LayerVerdict.FALLBACK for f in judge_layers(whole, P.FP16, network_io=("x", "y")))


def test_border_is_followed_through_layout_copies() -> None:
    layers = (
        layer("copy", "Reformat", "x:fp32", "x2:fp32"),
        layer("first", ins="x2:fp32", outs="a:fp32"),
        layer("mid", ins="b:fp16", outs="c:fp16"),
    )
    assert judge_layers(layers, P.FP16, network_io=("x",))[1].verdict is LayerVerdict.EXPECTED


def test_allowed_precisions_are_expected() -> None:
    made = layer(ins="p:int8", outs="q:int8", weights=P.INT8)
    assert one(made, P.FP16, allowed=(P.FP32, P.FP16, P.INT8)) is LayerVerdict.EXPECTED
    assert one(made, P.FP16, allowed=(P.FP32, P.FP16)) is LayerVerdict.DEMOTED


def test_pins() -> None:
    made = layer("head.conv", ins="p:fp32", outs="q:fp32")
    assert one(made, P.FP16, pinned={"head.conv": P.FP32}) is LayerVerdict.EXPECTED
    assert one(made, P.FP16, pinned={"head.*": P.FP32}) is LayerVerdict.EXPECTED
    assert one(made, P.FP16, pinned=["head.conv"]) is LayerVerdict.EXPECTED
    assert one(made, P.FP32, pinned={"head.conv": P.FP16}) is LayerVerdict.FALLBACK
    low = layer("head[0].conv", ins="p:fp16", outs="q:fp16")
    assert one(low, P.FP16, pinned={"head[0].*": P.FP32}) is LayerVerdict.DEMOTED


def meta(*nodes: str) -> str:
    return "\x1f".join(f"[ONNX Layer: {node}]" for node in nodes)


def test_graph_decides_per_node_both_ways() -> None:
    requested = {"/a/Conv": P.FP16, "/b/Conv": P.FP32, "/c/Relu": P.FP32}
    up = layer("l", "correlation", "p:fp32", "q:fp32", weights=P.FP32, metadata=meta("/a/Conv"))
    down = layer("l", "correlation", "p:fp16", "q:fp16", weights=P.FP16, metadata=meta("/b/Conv"))
    kept = layer("l", "correlation", "p:fp32", "q:fp32", weights=P.FP32, metadata=meta("/b/Conv", "/c/Relu"))
    point = layer("__myl_Relu_myl0_1", "kgen", "p:fp16", "q:fp16", metadata=meta("/c/Relu"))
    stray = layer("__myl_MulAdd_myl0_1", "kgen", "p:fp32", "q:fp32")
    for made, want in (
        (up, LayerVerdict.FALLBACK), (down, LayerVerdict.DEMOTED), (kept, LayerVerdict.EXPECTED),
        (point, LayerVerdict.DEMOTED), (stray, LayerVerdict.UNKNOWN),
    ):  # fmt: skip
        assert one(made, P.FP16, requested=requested) is want


def test_opaque_layer_with_a_graph_shows_what_was_asked_and_stays_unknown() -> None:
    made = layer("{ForeignNode[a...b]}", "Myelin", "p:fp16", "q:fp16", metadata=meta("/a/Conv"))
    judged = judge_layers((made,), P.FP16, {"/a/Conv": P.FP16})[0]
    assert (judged.verdict, judged.compute, judged.evidence) == (LayerVerdict.UNKNOWN, P.FP16, EvidenceSource.NETWORK)


def test_fused_nodes_that_were_asked_differently() -> None:
    requested = {"/a/Exp": P.FP32, "/b/Mul": P.FP16}
    made = layer("__myl_ExpMul_myl0_1", "kgen", "p:fp16", "q:fp16", metadata=meta("/a/Exp", "/b/Mul"))
    assert one(made, P.FP16, requested=requested) is LayerVerdict.UNKNOWN


def test_counts_add_up() -> None:
    layers = (
        layer("a", ins="p:fp16", outs="q:fp16"), layer("b", ins="p:fp32", outs="q:fp32"),
        layer("c", ins="p:none", outs="q:none"), layer("d", "Reformat", "p:fp16", "q:fp32"),
        layer("{ForeignNode[x]}", "Myelin", "p:fp16", "q:fp32"), layer("s", "Shuffle", "p:fp16", "q:fp16"),
    )  # fmt: skip
    summary = summarise(judge_layers(layers, P.FP16, network_io=()))
    assert (summary.layers, summary.compute_layers, summary.copies) == (6, 4, 1)
    parts = (summary.as_asked, summary.fallback, summary.demoted, summary.possible, summary.expected, summary.unknown)
    assert parts == (1, 1, 0, 1, 0, 1) and sum(parts) == summary.compute_layers
    assert summary.time_share_as_asked is None
