"""One static finding per rule, at the right line, with a message that names the objects and a fix in the user's names."""

# ruff: noqa: E501
from __future__ import annotations

import re
from pathlib import Path

import pytest

from deploychain.audit.context import mentioned
from deploychain.audit.finding import Severity
from deploychain.audit.rules import load_rules
from deploychain.audit.runner import audit_paths, audit_text

PLANTED = Path(__file__).parents[2] / "audit_set" / "planted"

# file, severity, what the line holds, what the fix holds
CASES = [
    ("r01_loss_after_block", "warning", "loss = criterion(logits, targets)", "criterion(logits.float(), targets)"),
    ("r01_label_smoothing", "warning", "label_smoothing=0.1", "pred.float()"),
    ("r01_reduction_sum_alias", "warning", "total = loss_layer(", ".float()"),
    ("r01_bf16_label_smoothing", "warning", "label_smoothing=0.1", "logits.float()"),
    ("r02_plain_backward", "error", "loss.backward()", "scaler.scale(loss).backward()"),
    ("r02_method_attribute", "error", "objective.backward()", "self.scaler.scale(objective).backward()"),
    ("r02_accelerate", "error", "loss.backward()", "accelerator.backward(loss)"),
    ("r02_lightning_manual", "error", "loss.backward()", "self.manual_backward(loss)"),
    ("r03_missing", "error", "scaler.step(optimizer)", "optimizer.zero_grad(set_to_none=True)"),
    ("r03_two_optimizers", "error", "scaler.step(optG)", "optG.zero_grad"),
    ("r04_is_none", "warning", "if scaler.step(optimizer) is None", "scaler.get_scale() < before"),
    ("r04_variable", "warning", "if not result", "self" if False else "before = scaler.get_scale()"),
    ("r05_band", "note", "scaler.get_scale() < 2**14", "deploychain.monitor"),
    ("r05_tiny_init", "warning", "init_scale=0.125", "GradScaler()"),
    ("r06_batch_formula", "note", "growth_interval=interval", "growth_interval=2000"),
    ("r06_too_short", "note", "growth_interval=20", "GradScaler()"),
    ("r06_longer_than_training", "note", "growth_interval=2000", "GradScaler()"),
    ("r07_plain", "error", "clip_grad_norm_(", "scaler.unscale_(optimizer)"),
    ("r07_norm_logging", "warning", "p.grad.norm()", "scaler.unscale_(optimizer)"),
    ("r08_half_model_scaler", "error", "torch.optim.SGD(net", "float32"),
    ("r08_hf_trainer", "error", "from_pretrained", "FP32 weights"),
    ("r09_std_under_autocast", "warning", "+ 1e-8", "1e-6"),
    ("r10_finfo_tiny", "warning", "eps=FP16_EPS", "leave eps"),
    ("r10_subnormal", "error", "smallest_subnormal", "nn.LayerNorm(dim)"),
    ("r11_softmax", "note", "torch.exp(scores) / torch.exp(scores)", "torch.softmax(scores"),  # no half precision
    ("r11_logsumexp", "note", "torch.log(torch.sum", "torch.logsumexp(sim"),
    ("r11_gated_attention", "warning", "a = e / e.sum", "torch.softmax(s"),
    ("r11_one_minus_exp", "warning", "torch.log(1 - torch.exp(logps))", "torch.log(-torch.expm1(logps))"),
    ("r11_sigmoid_by_hand", "warning", "e / (1 + e)", "torch.sigmoid("),
    ("r11_sum_of_log_probabilities", "warning", "torch.log((weights * torch.exp", "torch.logsumexp("),
    ("r11_float32_logits", "note", "e / e.sum", "torch.softmax(s"),
    ("r11_two_logits", "warning", "torch.log(torch.exp(a) + torch.exp(b))", "torch.logaddexp(a, b)"),
    ("r12_module_attribute", "error", "self.criterion(self.model(x), y)", "binary_cross_entropy_with_logits"),
    ("r13_function", "note", "class LinearFn", "custom_fwd"),
    ("r13_custom_op", "note", "custom_op(", 'register_autocast("mylib::scaled_add"'),
    ("r14_import", "note", "from torch.cuda.amp import", "from torch.amp import GradScaler, autocast"),
    ("r15_flat_mean", "error", "(img - self.mean) / self.std", "self.mean.view(-1, 1, 1)"),
    ("r16_sequential", "warning", "nn.AlphaDropout", "nn.Dropout"),
    ("r17_all_reduce_scale", "warning", "dist.all_reduce(scaler._scale", "_found_inf_per_device"),
    ("r17_fsdp_plain", "error", "GradScaler(", "ShardedGradScaler"),
    ("r18_assert", "error", "assert not torch.isnan", "register_forward_hook"),
    ("r19_dynamo_17", "warning", "torch.onnx.export(", "opset_version=18"),
    ("r20_wrong_key", "error", "AXES = {", "'image'"),
    ("r21_half_opset13", "warning", "opset_version=13", "opset_version=17"),
    ("r22_masked_fill", "error", "masked_fill(mask == 0, -1e9)", "torch.finfo"),
    ("r23_half_grid", "warning", "F.grid_sample", "enabled=False"),
    ("r24_dump_profile", "warning", "trtexec", "deploychain layers"),
    ("r25_chain", "warning", "model.half().float()", "deepcopy"),
    ("r26_local_class", "warning", "net.to(torch.float16)", "_BatchNorm"),
    ("r27_statement", "error", 'torch.autocast("cuda", dtype=torch.float16)', "with torch.autocast"),
    ("r28_update_every_micro_batch", "error", "scaler.update()", "same condition"),
    ("r28_scheduler", "note", "scheduler.step()", "if scaler.get_scale() >= before"),
    ("r28_checkpoint", "warning", '"optimizer": optimizer.state_dict()', "scaler.state_dict()"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "severity", "line", "fix"), CASES, ids=[c[0] for c in CASES])
def test_place_severity_and_fix(name: str, severity: str, line: str, fix: str) -> None:
    file = PLANTED / f"{name}.py"
    lines = file.read_text(encoding="utf-8").splitlines()
    found = audit_paths([file]).findings
    hits = [f for f in found if line in lines[f.line - 1] or line in " ".join(lines[f.line - 1 : f.line + 3])]
    assert hits, [(f.line, lines[f.line - 1]) for f in found]
    assert hits[0].severity is Severity(severity)
    assert fix in hits[0].fix
    assert hits[0].rule == name[:3].upper()


def test_every_rule_has_a_static_case() -> None:
    assert {c[0][:3].upper() for c in CASES} == set(load_rules())


def test_every_rule_explains_itself() -> None:
    for rule in load_rules().values():
        assert rule.check is not None
        assert min(len(rule.belief), len(rule.truth), len(rule.experiment)) > 20, rule.id
        assert rule.bad != rule.good


TEMPLATE = """
import torch

def train(model, loader, optimizer, scheduler, k, clip, use_amp):
    scaler = torch.amp.GradScaler("cuda")
    for i, batch in enumerate(loader):
{body}
"""


def rules_of(*body: str) -> set[str]:
    text = TEMPLATE.format(body="\n".join("        " + line for line in body))
    report = audit_text(text)
    assert report.problems == ()
    return {f.rule for f in report.findings}


FORWARD = ('with torch.autocast("cuda"):', "    loss = model(batch)")


def test_zero_grad_under_the_condition_of_the_step_is_enough() -> None:
    assert rules_of(
        *FORWARD, "scaler.scale(loss / k).backward()", "if (i + 1) % k == 0:", "    scaler.step(optimizer)",
        "    scaler.update()", "    optimizer.zero_grad()",
    ) == set()  # fmt: skip


def test_zero_grad_in_the_first_iteration_only_is_not_enough() -> None:
    assert "R03" in rules_of(
        "if i == 0:",
        "    optimizer.zero_grad()",
        *FORWARD,
        "scaler.scale(loss).backward()",
        "scaler.step(optimizer)",
        "scaler.update()",
    )


def test_the_fp32_branch_of_an_optional_amp_loop_is_no_finding() -> None:
    assert rules_of(
        "optimizer.zero_grad()", *FORWARD, "if use_amp:", "    scaler.scale(loss).backward()", "    scaler.step(optimizer)",
        "    scaler.update()", "else:", "    loss.backward()", "    torch.nn.utils.clip_grad_norm_(model.parameters(), clip)",
        "    optimizer.step()",
    ) == set()  # fmt: skip


def test_clipping_in_the_wrong_branch_is_found() -> None:
    # the unscale_ is made only without AMP: the condition is the wrong way round
    assert "R07" in rules_of(
        "optimizer.zero_grad()", *FORWARD, "if use_amp:", "    scaler.scale(loss).backward()", "if not use_amp:",
        "    scaler.unscale_(optimizer)", "torch.nn.utils.clip_grad_norm_(model.parameters(), clip)", "if use_amp:",
        "    scaler.step(optimizer)", "    scaler.update()",
    )  # fmt: skip


def test_gradient_averaging_is_linear_and_clipping_is_not() -> None:
    loop = ("optimizer.zero_grad()", *FORWARD, "scaler.scale(loss).backward()", "for p in model.parameters():")
    end = ("scaler.step(optimizer)", "scaler.update()")
    assert rules_of(*loop, "    p.grad.mul_(0.5)", *end) == set()
    assert rules_of(*loop, "    p.grad = p.grad / k", *end) == set()
    assert rules_of(*loop, "    p.grad.clamp_(-1, 1)", *end) == {"R07"}


def test_update_once_after_two_optimisers_is_right() -> None:
    body = (
        "optimizer.zero_grad()",
        "other.zero_grad()",
        *FORWARD,
        "scaler.scale(loss).backward()",
        "scaler.step(optimizer)",
    )
    assert rules_of(*body, "scaler.step(other)", "scaler.update()") == set()


def test_ignore_comment_needs_the_rule() -> None:
    clip = "torch.nn.utils.clip_grad_norm_(model.parameters(), clip)"
    body = ("optimizer.zero_grad()", *FORWARD, "scaler.scale(loss).backward()")
    end = ("scaler.step(optimizer)", "scaler.update()")
    assert rules_of(*body, f"{clip}  # deploychain: ignore[R07] on purpose", *end) == set()
    assert rules_of(*body, "# deploychain: ignore[R01, R07] on purpose", clip, *end) == set()
    assert rules_of(*body, f"{clip}  # deploychain: ignore[R01] another rule", *end) == {"R07"}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_eps_vanishes_in_float16_only(dtype: str) -> None:
    text = f"""
import torch
def f(model, x):
    with torch.autocast("cuda", dtype=torch.{dtype}):
        h = torch.nn.functional.linear(x, model.weight)
        return h / (h.std() + 1e-8)
"""
    assert {f.rule for f in audit_text(text).findings} == ({"R09"} if dtype == "float16" else set())


@pytest.mark.parametrize(
    ("eps", "found"), [("1e-5", False), ("1e-6", False), ("1e-7", False), ("2.98e-8", True), ("1e-12", True)]
)
def test_eps_limit_is_2_to_the_minus_25(eps: str, found: bool) -> None:
    text = f"import torch\ndef f(x):\n    h = x.half()\n    return h / (h.abs().max() + {eps})\n"
    assert bool([f for f in audit_text(text).findings if f.rule == "R09"]) is found


def test_a_trigger_asked_word_by_word_answers_as_the_whole_expression() -> None:
    texts = [file.read_text(encoding="utf-8") for file in sorted(PLANTED.parent.rglob("*.py"))[::5]]
    for rule in load_rules().values():
        if isinstance(rule.trigger, str) and rule.check is not None:
            said = [mentioned(rule.trigger)(text) for text in texts]
            assert said == [re.search(rule.trigger, text) is not None for text in texts], rule.id
            assert any(said) and not mentioned(rule.trigger)("x = 1\n"), rule.id
