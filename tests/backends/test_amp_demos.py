"""The phenomenon behind each rule, in real PyTorch on the CPU. One test per rule; the numbers are the demo's own."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import pytest

pytest.importorskip("torch", reason="the experiments run in PyTorch")

from deploychain.audit.command import explained
from deploychain.audit.rules import load_rules
from deploychain.backends.amp_demos import run_demo

pytestmark = pytest.mark.chain


@lru_cache
def facts(rule: str) -> dict[str, Any]:
    return dict(run_demo(rule).facts)


def test_r01_the_dtype_of_the_logits_decides() -> None:
    f = facts("R01")
    assert f["dtype inside autocast"] == "torch.float32"
    assert f["dtype outside"] == "torch.float16"
    assert f["relative error inside"] < 1e-6 < 1e-5 < f["relative error outside"]
    assert f["relative error outside with .float()"] < 1e-6
    assert f["label_smoothing outside"] == math.inf
    assert math.isfinite(f["label_smoothing outside with .float()"])
    assert f["float16 loss times 65536"] == math.inf


def test_r02_unscaled_gradients_are_divided_by_the_scale() -> None:
    f = facts("R02")
    assert f["first step without scale"].startswith("AssertionError: Attempted step but _scale is None")
    assert f["update with scale"] == 3.0  # d(3p)/dp, learning rate 1
    # 1 - (1 - 3/65536), computed in float32 near 1, where the spacing is 2^-24
    assert f["update without scale, scale known"] == pytest.approx(3.0 / 65536, abs=2**-24)


def test_r03_one_inf_poisons_every_later_step() -> None:
    f = facts("R03")
    assert f["skipped of 40, zero_grad after the step"] == 1
    assert f["skipped of 40, no zero_grad"] == 38  # step 3 and the 37 after it
    assert f["log2 scale at the end, no zero_grad"] == 10 - 38


def test_r04_none_either_way() -> None:
    f = facts("R04")
    assert f["step() on a clean step"] == f["step() on a skipped step"] == "None"
    assert (f["scale fell, clean step"], f["scale fell, skipped step"]) == (False, True)


def test_r05_a_low_scale_can_be_healthy() -> None:
    f = facts("R05")
    assert f["log2 scale, summed loss"] < 14
    assert f["last skip of the summed loss"] <= 20  # only while it finds its level
    assert f["accuracy, summed loss"] >= f["accuracy, mean loss"] - 0.02 > 0.9


def test_r06_one_doubling_per_interval() -> None:
    f = facts("R06")
    for interval, log2 in ((500, 26), (1000, 21), (2000, 18), (4000, 17)):
        assert f[f"log2 scale after 5000 clean steps, interval {interval}"] == log2 == 16 + 5000 // interval
    assert f["skipped at the ceiling, interval 20 (%)"] == pytest.approx(100 / 21, rel=0.02)
    assert f["skipped at the ceiling, interval 2000 (%)"] < 0.06
    assert f["max(1000, batch // 16) for batches 32, 512, 16000"] == [1000, 1000, 1000]


def test_r07_clipping_scaled_gradients_clips_to_nothing() -> None:
    f = facts("R07")
    assert f["size of the update, unscaled first"] == pytest.approx(1.0, rel=1e-5)
    assert f["size of the update, still scaled"] == pytest.approx(1 / 65536, rel=1e-3)


def test_r08_half_parameters() -> None:
    f = facts("R08")
    assert "Attempting to unscale FP16 gradients" in f["GradScaler, float16 parameters"]
    assert f["GradScaler, float32 parameters"] == "no error"
    assert (f["Adam, float16: finite"], f["Adam, float32: finite"]) == (False, True)
    assert f["weight decay over 1000 steps, float16"] == 1.0
    assert f["weight decay over 1000 steps, float32"] == pytest.approx((1 - 1e-5) ** 1000, rel=1e-4)


def test_r09_which_constants_vanish() -> None:
    f = facts("R09")
    assert f["float16(1e-5)"] == pytest.approx(1e-5, rel=2e-3)
    assert f["float16(1e-8)"] == f["float16(1e-12)"] == 0.0
    assert math.isnan(f["zero row, x / (std + 1e-8)"])
    assert f["zero row, x / (std + 1e-6)"] == 0.0
    assert math.isnan(f["F.normalize of a zero row (eps 1e-12)"])
    assert f["half LayerNorm, eps 1e-12, relative error"] < 5e-4


def test_r10_another_eps_shrinks_the_output() -> None:
    f = facts("R10")
    assert f["finfo(float16).smallest_subnormal"].startswith("AttributeError")
    assert f["smallest subnormal x 100"] < 1e-5
    for std in (0.1, 0.03, 0.01, 0.003):
        # variance v: sqrt((v + 1e-5) / (v + tiny))
        expected = 100 * (1 - math.sqrt((std**2 + 1e-5) / (std**2 + 2.0**-14)))
        assert f[f"output shrinks at std {std} (%)"] == pytest.approx(expected, rel=0.1)


def test_r11_exp_and_the_product_overflow() -> None:
    f = facts("R11")
    assert f["by hand, float16, x = 11"] == pytest.approx(1.0)
    assert math.isnan(f["by hand, float16, x = 12"])
    assert f["by hand, float32, x = 88"] == pytest.approx(1.0)
    assert math.isnan(f["by hand, float32, x = 89"])
    assert f["torch.softmax, float16, x = 90"] == 1.0
    assert f["log(softmax), float16, x = -20"] == -math.inf
    assert f["log_softmax, float16, x = -20"] == -20.0
    assert f["q.k, then scaled"] == math.inf
    assert f["q scaled first"] == pytest.approx(33.94**2 * 64 / 8, rel=5e-3)


def test_r12_the_cuda_kernel_of_autocast_only_raises() -> None:
    f = facts("R12")
    assert f["AutocastCUDA kernel registered for it"] is True
    assert f["that kernel"].startswith("RuntimeError") and "unsafe to autocast" in f["that kernel"]
    assert f["under CPU autocast"].startswith("allowed")


def test_r13_mixed_dtypes_reach_the_kernel() -> None:
    f = facts("R13")
    assert f["an AutocastCUDA kernel is registered"] is False
    assert f["the kernel gets"] == "x float16, w float32"
    assert f["with register_autocast it gets"] == "x float32, w float32"
    assert "same dtype" in f["autograd.Function without custom_fwd"]


def test_r14_the_old_names_warn() -> None:
    f = facts("R14")
    assert f["torch.cuda.amp.autocast()"].startswith("FutureWarning")
    assert f["torch.cuda.amp.GradScaler()"].startswith("FutureWarning")
    assert f['torch.amp.GradScaler("cpu")'] == "none"


def test_r15_normalize_under_autocast_and_the_popular_fix() -> None:
    f = facts("R15")
    assert f["inside autocast: same bits"] is True
    assert f["flat mean on (3, 224, 224)"].startswith("RuntimeError")
    assert f["flat mean on (3, 224, 3), error against the right one"] > 0.1  # no error, wrong numbers
    assert 1e-4 < f["image made half first, largest error"] < 1e-2


def test_r16_alpha_dropout_after_relu() -> None:
    f = facts("R16")
    assert f["Dropout keeps, float16"] == pytest.approx(0.9, abs=1e-3)
    mean, variance = f["ReLU: mean, variance"]
    assert (mean, variance) == (
        pytest.approx(1 / math.sqrt(2 * math.pi), abs=5e-3),
        pytest.approx(0.5 - 1 / (2 * math.pi), abs=5e-3),
    )
    changed = f["AlphaDropout after ReLU: mean, variance, minimum"]
    assert changed[0] < 0.9 * mean and changed[1] > 1.5 * variance and changed[2] < -1
    kept = f["AlphaDropout after SELU: mean, variance"]
    assert kept == [pytest.approx(0.0, abs=0.01), pytest.approx(1.0, abs=0.02)]


@pytest.mark.slow
def test_r17_two_ranks() -> None:
    f = facts("R17")
    assert f["ddp: skipped per rank"] == [[3], [3]] and f["ddp: weights equal"] is True
    assert f["no ddp: skipped per rank"] == [[], [3]] and f["no ddp: weights equal"] is False
    assert f["no ddp, all_reduce(_scale): weights equal"] is False
    assert f["no ddp, all_reduce(found_inf): skipped per rank"] == [[3], [3]]
    assert f["no ddp, all_reduce(found_inf): weights equal"] is True


def test_r18_the_assert_breaks_export() -> None:
    f = facts("R18")
    assert f["torch.export without the assert"] == "exported"
    assert "data-dependent" in f["torch.export with the assert"]
    assert math.isfinite(f["an output that is finite"]) and f["its gradient"] == math.inf


@pytest.mark.slow
def test_r19_the_file_decides() -> None:
    pytest.importorskip("onnxscript", reason="the dynamo exporter needs it")
    f = facts("R19")
    assert f["dynamo, asked for 17: mean"] == "opset 18"
    assert "ValidationError" in f["dynamo, asked for 17: chunk"]
    assert f["TorchScript, asked for 17: mean"] == "opset 17, valid"


def test_r20_names_make_axes_dynamic() -> None:
    f = facts("R20")
    assert f["first dimension, dynamic_axes without names"] == "3"
    assert f["first dimension, with names"] == "batch"


def test_r21_the_chain_overflows_and_the_kernel_does_not() -> None:
    f = facts("R21")
    assert f["chain in float16 at std 300, share of zeros"] == 1.0
    assert f["kernel in float16 at std 300, std of the output"] == pytest.approx(1.0, abs=0.01)
    assert math.isnan(f["chain in float16, eps 1e-8, constant row"])
    assert f["ops at opset 13"][:6] == ["ReduceMean", "Sub", "Pow", "ReduceMean", "Add", "Sqrt"]
    assert f["ops at opset 17"] == ["LayerNormalization"]


def test_r22_the_edges_of_float16() -> None:
    f = facts("R22")
    assert (f["65519 in float16"], f["65520 in float16"]) == (65504.0, math.inf)
    assert (f["2^-24 in float16"], f["2^-25 in float16"]) == (2.0**-24, 0.0)
    assert "without overflow" in f["masked_fill(-1e9) on float16"]
    assert f["masked_fill(finfo.min) on float16"] == -65504.0


def test_r23_float16_coordinates() -> None:
    f = facts("R23")
    for width in (256, 1024, 1920):
        # half a unit in the last place just below 1 is 2^-12, times half the width
        assert f[f"coordinate error at width {width} (pixels)"] == pytest.approx(2.0**-12 * width / 2, rel=0.01)
    assert f["image error, float16 grid"] > 100 * f["image error, float16 image"]


def test_r24_a_default_layer_file_knows_no_precision() -> None:
    f = facts("R24")
    assert f["default verbosity: precision of each layer"] == ["None", "None"]
    assert f["detailed: precision of each layer"] == ["fp16"]


def test_r25_half_rounds_for_good() -> None:
    f = facts("R25")
    assert 1e-4 < f["relative error of the weights"] < 3e-4
    assert f["all representable in float16 before"] is False and f["all representable in float16 after"] is True
    assert f["running_var 1e5, 1e-9 become"] == [math.inf, 0.0]


def test_r26_the_statistics_overflow_and_eps_stays() -> None:
    f = facts("R26")
    assert f["running_var after half()"] == math.inf
    assert f["eps after half()"] is True
    assert f["output abs-max, half"] == 0.0 < f["output abs-max, float32"]


def test_r27_device_type_thread_and_dtype() -> None:
    f = facts("R27")
    assert f["in the region"] == "torch.bfloat16"
    in_float32 = (
        "in a thread started inside the region",
        "CPU tensors in a CUDA region",
        "dtype=torch.float32 on the CPU",
    )
    for other in in_float32:
        assert f[other] == "torch.float32"
    assert f["CUDA region on this machine is on"] == f["CUDA available"]


def test_r28_breaches_of_the_protocol_raise() -> None:
    f = facts("R28")
    assert "No inf checks were recorded prior to update" in f["update() without step"]
    assert "already been called" in f["step() twice"]
    assert "already been called" in f["unscale_() twice"]
    assert "after step()" in f["unscale_() after step()"]
    assert "No inf checks were recorded for this optimizer" in f["optimiser without gradients"]
    assert f["two optimisers, one update"] == "no error"
    assert (f["scale after a resume, state saved"], f["scale after a resume, state not saved"]) == (1024.0, 65536.0)


def test_every_rule_has_an_experiment_and_it_prints() -> None:
    from deploychain.backends.amp_demos import _all

    assert sorted(_all()) == list(load_rules())
    lines = explained("R08", demo=True)
    assert any("Attempting to unscale FP16 gradients" in line for line in lines[-8:])


def test_a_demo_leaves_the_random_state_alone() -> None:
    import torch

    torch.manual_seed(5)
    wanted = torch.randn(3)
    torch.manual_seed(5)
    run_demo("R11")
    assert torch.equal(torch.randn(3), wanted)
