"""FP16 emulation: against values worked out by hand, torch's half kernels and onnx.reference."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx", reason="needs the [chain] extra")
pytest.importorskip("onnxruntime", reason="needs the [chain] extra")
from onnx import TensorProto, checker, helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

from deploychain.backends.ort import run_model
from deploychain.backends.ort_emulation import emulate_fp16, half_types, tensor_types
from deploychain.errors import StageError

pytestmark = pytest.mark.chain

OVERFLOW = """
<ir_version: 8, opset_import: ["" : 17]>
overflow (float[N,2] x) => (float[N,2] y)
{
  big = Constant <value_float = 300.0> ()
  small = Constant <value_float = 0.001953125> ()
  h = Cast <to = 10> (x)
  big16 = Cast <to = 10> (big)
  small16 = Cast <to = 10> (small)
  squared = Mul (h, big16)
  back = Mul (squared, small16)
  y = Cast <to = 1> (back)
}
"""


def emulated(text: str, weights: dict[str, float] | None = None, **inputs: np.ndarray) -> dict[str, np.ndarray]:
    model = parser.parse_model(text)
    for name, value in (weights or {}).items():
        model.graph.initializer.append(numpy_helper.from_array(np.array(value, np.float16), name))
    made = emulate_fp16(model)
    checker.check_model(made, full_check=True)
    return run_model(made, inputs)


def test_overflow_is_infinite_where_plain_onnxruntime_is_finite() -> None:
    # 300 * 300 = 90000 > 65504, then * 2^-9: FP32 gives 175.78, FP16 inf. 100 * 300 = 30000 stays in range.
    x = np.array([[300.0, 100.0]], np.float32)
    plain = run_model(parser.parse_model(OVERFLOW), {"x": x})["y"]
    y = emulated(OVERFLOW, x=x)["y"]
    assert np.isfinite(plain).all()  # the trap that the emulation exists for
    assert np.isposinf(y[0, 0])
    # 30000 is a multiple of 16, the FP16 step there; 30000 / 512 = 58.59375 is one of 1/32.
    assert y[0, 1] == 58.59375


def test_each_result_is_rounded_once_to_nearest_even() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float16[N] x) => (float16[N] y)
    { s = Add (x, one)  y = Sub (s, one) }
    """
    # The FP16 step at 2048 is 2: 2048 + 1 is a tie and goes to 2048 (even); 2050 + 1 is a tie and goes to 2052.
    y = emulated(text, {"one": 1.0}, x=np.array([2048.0, 2050.0, 3.0], np.float16))["y"]
    assert y.dtype == np.float16
    # 2048 - 1 = 2047; 2052 - 1 = 2051, a tie between 2050 and 2052, goes to 2052.
    assert y.tolist() == [2047.0, 2052.0, 3.0]


def test_subnormal_results_are_kept() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float16[N] x) => (float16[N] y)
    { y = Mul (x, k) }
    """
    y = emulated(text, {"k": 2.0**-10}, x=np.array([2.0**-14, 2.0**-15], np.float16))["y"]
    assert y.astype(np.float64).tolist() == [2.0**-24, 0.0]  # 2^-25 is a tie with zero: even


def test_names_and_types_at_the_border_stay() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float16[N,3] x, int64[1] k) => (float16[N,3] x2, float16[N,1] top, int64[N,1] index)
    { x2 = Mul (x, x)  top, index = TopK (x2, k) }
    """
    model = parser.parse_model(text)
    made = emulate_fp16(model)
    checker.check_model(made, full_check=True)
    border = [(v.name, v.type.tensor_type.elem_type) for v in (*made.graph.input, *made.graph.output)]
    assert border == [(v.name, v.type.tensor_type.elem_type) for v in (*model.graph.input, *model.graph.output)]
    inner = {t for n, t in tensor_types(made).items() if n not in ("x", "x2", "top") and not n.endswith("/half")}
    assert TensorProto.FLOAT16 not in inner
    got = run_model(made, {"x": np.array([[1.0, 3.0, 2.0]], np.float16), "k": np.array([1], np.int64)})
    assert got["top"].tolist() == [[9.0]] and got["index"].tolist() == [[1]]


def test_subgraphs_see_renamed_outer_tensors() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float16[N] x, bool c) => (float16[N] y)
    {
      z = Mul (x, x)
      y = If (c) <
        then_branch = t () => (float16[N] a) { b = Mul (z, x)  a = Mul (b, x) },
        else_branch = e () => (float16[N] d) { d = Identity (x) }
      >
    }
    """
    x = np.array([3.0, 20.0], np.float16)
    y = emulated(text, x=x, c=np.array(True))["y"]
    assert y[0] == 81.0 and np.isposinf(y[1])  # 20^4 = 160000
    assert emulated(text, x=x, c=np.array(False))["y"].tolist() == x.tolist()


def test_local_functions_are_rounded_inside() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17, "own" : 1]>
    g (float16[N] x) => (float16[N] y) { y = own.Quarter (x) }
    <domain: "own", opset_import: ["" : 17]>
    Quarter (x) => (y)
    {
      k = Constant <value_float = 400.0> ()
      i = Constant <value_float = 0.00625> ()
      k16 = CastLike (k, x)
      i16 = CastLike (i, x)
      up = Mul (x, k16)
      y = Mul (up, i16)
    }
    """
    y = emulated(text, x=np.array([200.0, 1.0], np.float16))["y"]
    assert np.isposinf(y[0]) and np.isfinite(y[1])  # 80000 in between


def test_mixed_model_rounds_only_its_fp16_part() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[N] x) => (float[N] full, float[N] half) <float third = {0.333333343}>
    { full = Mul (x, third)  h = Cast <to = 10> (full)  half = Cast <to = 1> (h) }
    """
    got = emulated(text, x=np.array([1.0], np.float32))
    assert got["full"][0] == np.float32(0.333333343)
    assert got["half"][0] == 0.333251953125  # 1365 * 2^-12, the FP16 number next to 1/3


def test_quantised_islands_stay_fp32() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[N] x) => (float[N] y) <float s = {0.1}, int8 z = {0}>
    {
      q = QuantizeLinear (x, s, z)
      d = DequantizeLinear (q, s, z)
      h = Cast <to = 10> (d)
      m = Mul (h, k)
      y = Cast <to = 1> (m)
    }
    """
    y = emulated(text, {"k": 2.0}, x=np.array([0.34], np.float32))["y"]
    assert y[0] == np.float32(np.float16(np.float32(3) * np.float32(0.1)) * np.float16(2))


def test_unknown_result_type_is_refused_with_the_node() -> None:
    node = helper.make_node("Mystery", ["h"], ["m"], name="/block/Mystery", domain="somewhere")
    model = parser.parse_model(OVERFLOW)
    model.opset_import.append(helper.make_opsetid("somewhere", 1))
    model.graph.node.insert(3, node)
    assert model.graph.node[6].op_type == "Mul" and model.graph.node[6].input[0] == "h"
    model.graph.node[6].input[0] = "m"
    with pytest.raises(StageError, match=r"/block/Mystery.*somewhere\.Mystery"):
        emulate_fp16(model)


def test_the_model_given_is_not_changed() -> None:
    model = parser.parse_model(OVERFLOW)
    before = model.SerializeToString()
    emulate_fp16(model)
    assert model.SerializeToString() == before
    assert half_types(model) == ("FP16",)
    assert not half_types(
        parser.parse_model('<ir_version: 8, opset_import: ["": 17]> g (float[N] x) => (float[N] y) { y = Neg(x) }')
    )


@pytest.mark.parametrize("operator", ["Exp", "Sigmoid", "Tanh", "Sqrt", "Erf", "Softplus", "Reciprocal", "Relu", "Neg"])
def test_unary_operators_agree_with_onnx_reference(operator: str) -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float16[N] x) => (float16[N] y) '
        f"{{ t = {operator}(x)  y = Mul(t, t) }}"
    )
    x = (np.random.default_rng(0).uniform(0.1, 5, 256)).astype(np.float16)
    ours = run_model(emulate_fp16(model), {"x": x})["y"].astype(np.float64)
    theirs = np.asarray(ReferenceEvaluator(model).run(None, {"x": x})[0]).astype(np.float64)
    # Both round each result; the functions themselves may differ by one step of FP16 (2^-10) before the square.
    assert np.max(np.abs(ours - theirs) / np.maximum(np.abs(theirs), 2**-14)) <= 3 * 2**-10


def test_two_layers_agree_with_torch_half_on_the_cpu() -> None:
    torch = pytest.importorskip("torch", reason="needs the [chain] extra")
    rng = np.random.default_rng(1)
    w1 = (rng.standard_normal((32, 64)) / 5).astype(np.float16)
    w2 = (rng.standard_normal((64, 10)) / 8).astype(np.float16)
    x = rng.standard_normal((50, 32)).astype(np.float16)
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w1"], ["a"], name="a"),
            helper.make_node("Tanh", ["a"], ["b"], name="b"),
            helper.make_node("MatMul", ["b", "w2"], ["y"], name="y"),
        ],
        "two",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT16, ["N", 32])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT16, ["N", 10])],
        [numpy_helper.from_array(w1, "w1"), numpy_helper.from_array(w2, "w2")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    ours = run_model(emulate_fp16(model), {"x": x})["y"].astype(np.float64)
    with torch.no_grad():
        theirs = (torch.tanh(torch.from_numpy(x) @ torch.from_numpy(w1)) @ torch.from_numpy(w2)).double().numpy()
    exact = np.tanh(x.astype(np.float64) @ w1.astype(np.float64)) @ w2.astype(np.float64)
    assert np.max(np.abs(ours - theirs)) <= 4 * 2**-10  # a few FP16 steps at magnitude 1..2
    assert 0 < np.max(np.abs(ours - exact)) < 0.01  # rounded, and not by more than FP16 explains
    plain = run_model(model, {"x": x})["y"].astype(np.float64)
    error_ours, error_plain = (float(np.linalg.norm(v - exact)) for v in (ours, plain))
    assert error_ours > 1.2 * error_plain  # plain onnxruntime hides the rounding in between


@pytest.mark.parametrize(
    "body",
    [
        "y = Softmax <axis = 1> (x)",
        "m = ReduceMean <axes = [1], keepdims = 1> (x)  y = Sub(x, m)",
        "y = Div(x, a)",
        "b = Pow(x, x)  y = Sqrt(b)",
        "b = Concat <axis = 1> (x, a)  c = Slice(b, i2, i6, i1)  y = Mul(c, c)",
        "b = Greater(x, a)  y = Where(b, x, a)",
        "b = Transpose <perm = [1, 0]> (x)  c = MatMul(b, x)  d = MatMul(x, c)  y = Tanh(d)",
        "c = Cast <to = 7> (x)  d = Cast <to = 10> (c)  y = Add(d, x)",
        "b = CastLike(s, x)  y = Mul(x, b)",
    ],
)
def test_small_graphs_agree_with_onnx_reference(body: str) -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float16[N,4] x, float16[N,4] a) => (float16[P,Q] y) '
        f"<int64[2] i2 = {{0, 1}}, int64[2] i6 = {{8, 6}}, int64[2] i1 = {{0, 1}}, float s = {{0.1}}> {{ {body} }}"
    )
    rng = np.random.default_rng(3)
    feed = {name: rng.uniform(0.2, 1.5, (8, 4)).astype(np.float16) for name in ("x", "a")}
    made = emulate_fp16(model)
    checker.check_model(made, full_check=True)
    ours = run_model(made, feed)["y"]
    theirs = np.asarray(ReferenceEvaluator(model).run(None, feed)[0])
    assert ours.dtype == theirs.dtype == np.float16 and ours.shape == theirs.shape
    difference = np.linalg.norm(ours.astype(float) - theirs.astype(float)) / np.linalg.norm(theirs.astype(float))
    assert difference <= 3 * 2**-11  # a few roundings (the reference also accumulates in FP16)


def test_bf16_is_rounded_to_eight_bits() -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]> g (float[N] x) => (float[N] y)
        { h = Cast <to = 16> (x)  s = Add(h, h)  y = Cast <to = 1> (s) }"""
    )
    assert half_types(model) == ("BF16",)
    x = np.array([1 + 2**-7, 1 + 2**-9, 1 + 3 * 2**-9, 1e38, 3e38], np.float32)
    y = run_model(emulate_fp16(model), {"x": x})["y"]
    # The BF16 step at 1 is 2^-7: 1 + 2^-9 goes to 1, 1 + 3 * 2^-9 to 1 + 2^-7. 1e38 is in range, 6e38 is not.
    assert y[:3].tolist() == [2 + 2**-6, 2.0, 2 + 2**-6]
    assert y[3] == pytest.approx(2e38, rel=2**-8) and np.isposinf(y[4])
