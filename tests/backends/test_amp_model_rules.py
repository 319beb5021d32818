"""Module and graph rules on models with planted faults, and the dtype map against the measured table."""

# ruff: noqa: E402, E501  (imports come after importorskip)
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="inspects PyTorch models")

from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F

from deploychain.audit.command import Request, run
from deploychain.backends.amp_dtype_map import dtype_map, policy_lists
from deploychain.backends.amp_model_rules import audit_model
from deploychain.cli.app import main
from deploychain.errors import ConfigError

pytestmark = pytest.mark.chain


def rules(model: nn.Module, *args: Any, **settings: Any) -> set[str]:
    report = audit_model(model, args or None, **settings)
    assert not [p for p in report.problems if "export" not in p.text], report.problems
    return {f.rule for f in report.findings}


class One(nn.Module):
    """A module around a function, with optional layers."""

    def __init__(self, function: Any, **layers: nn.Module) -> None:
        super().__init__()
        self.function = function
        for name, layer in layers.items():
            self.add_module(name, layer)

    def forward(self, *inputs: Any) -> Any:
        return self.function(self, *inputs)


# -- the dtype map -----------------------------------------------------------------------------------------------------


def test_the_policy_lists_come_from_the_installed_torch_and_match_its_dispatcher() -> None:
    lists = policy_lists()
    assert 90 < len(lists) < 200
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    missing = [name for name in lists if not has(name, "AutocastCUDA")]
    # header entries for cudnn aliases that this build does not have
    assert len(missing) <= 3, missing
    assert (
        lists["aten::linear"] == "low"
        and lists["aten::layer_norm"] == "fp32"
        and lists["aten::grid_sampler"] == "promote"
    )


def dtype_of(function: Any, *inputs: Any, **layers: nn.Module) -> str:
    """The dtype of the last op with a floating output."""
    table = dtype_map(One(function, **layers).eval(), inputs or (torch.randn(2, 8, 8, 8),))
    return next(op.dtype for op in reversed(table.ops) if op.dtype)


CONV = {"conv": nn.Conv2d(8, 8, 1)}
AFTER_CONV = {
    # from the measured table of CUDA autocast, input float16
    "softmax": (lambda m, x: F.softmax(m.conv(x), 1), "float32"),
    "log_softmax": (lambda m, x: F.log_softmax(m.conv(x), 1), "float32"),
    "exp": (lambda m, x: m.conv(x).exp(), "float32"),
    "log": (lambda m, x: m.conv(x).log(), "float32"),
    "pow": (lambda m, x: m.conv(x) ** 2, "float32"),
    "reciprocal": (lambda m, x: 1 / m.conv(x), "float32"),
    "rsqrt": (lambda m, x: m.conv(x).rsqrt(), "float32"),
    "sum": (lambda m, x: m.conv(x).sum(1), "float32"),
    "cumsum": (lambda m, x: m.conv(x).cumsum(1), "float32"),
    "norm": (lambda m, x: torch.linalg.vector_norm(m.conv(x), dim=1), "float32"),
    "softplus": (lambda m, x: F.softplus(m.conv(x)), "float32"),
    "layer_norm": (lambda m, x: F.layer_norm(m.conv(x), (8,)), "float32"),
    "group_norm": (lambda m, x: F.group_norm(m.conv(x), 2), "float32"),
    "batch_norm": (lambda m, x: m.bn(m.conv(x)), "float16"),
    "nearest": (lambda m, x: F.interpolate(m.conv(x), scale_factor=2), "float32"),
    "bilinear": (lambda m, x: F.interpolate(m.conv(x), scale_factor=2, mode="bilinear"), "float32"),
    "bicubic": (lambda m, x: F.interpolate(m.conv(x), scale_factor=2, mode="bicubic"), "float32"),
    "area": (lambda m, x: F.interpolate(m.conv(x), size=(4, 4), mode="area"), "float16"),
    "adaptive": (lambda m, x: F.adaptive_avg_pool2d(m.conv(x), 1), "float16"),
    "cat": (lambda m, x: torch.cat([m.conv(x), x], 1), "float32"),
    "mul": (lambda m, x: m.conv(x) * 2, "float16"),
    "sqrt": (lambda m, x: m.conv(x).sqrt(), "float16"),
    "mean": (lambda m, x: m.conv(x).mean(1), "float16"),
    "var": (lambda m, x: m.conv(x).var(1), "float16"),
    "gelu": (lambda m, x: F.gelu(m.conv(x)), "float16"),
    "sigmoid": (lambda m, x: m.conv(x).sigmoid(), "float16"),
    "prelu": (lambda m, x: m.act(m.conv(x)), "float16"),
    "sdpa": (lambda m, x: F.scaled_dot_product_attention(x, x, x), "float16"),
    "matmul": (lambda m, x: x @ x, "float16"),
    "grid_sample": (lambda m, x: F.grid_sample(m.conv(x), x[..., :2]), "float32"),
    "cross_entropy": (lambda m, x: F.cross_entropy(m.conv(x), x.softmax(1)), "float32"),
    "float64": (lambda m, x: m.conv(x).double() + 1, "float64"),
    "explicit": (lambda m, x: m.conv(x).to(torch.bfloat16), "bfloat16"),
}


@pytest.mark.parametrize("name", AFTER_CONV)
def test_dtype_map_against_the_measured_table(name: str) -> None:
    function, dtype = AFTER_CONV[name]
    assert dtype_of(function, conv=nn.Conv2d(8, 8, 1), bn=nn.BatchNorm2d(8), act=nn.PReLU()) == dtype


def dispatched(function: Any) -> str:
    """The dtype that torch's own dispatcher gives under CUDA autocast, with tensors that only claim to be on CUDA."""
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        module = One(function, conv=nn.Conv2d(8, 8, 1)).eval()
        for inner in module.modules():
            for name, parameter in list(inner._parameters.items()):
                if parameter is not None:
                    made = torch.empty(parameter.shape, device="cuda")
                    inner._parameters[name] = nn.Parameter(made, requires_grad=False)
        torch.set_autocast_enabled("cuda", True)
        torch.set_autocast_dtype("cuda", torch.float16)
        try:
            result = module(torch.empty(2, 8, 8, 8, device="cuda"))
        finally:
            torch.set_autocast_enabled("cuda", False)
            torch.clear_autocast_cache()
    return str(result.dtype).removeprefix("torch.")


def classes(x: Any) -> Any:
    return torch.zeros(2, 8, 8, dtype=torch.long, device=x.device)


AGAINST_THE_DISPATCHER = {
    "cross_entropy": lambda m, x: F.cross_entropy(m.conv(x), classes(x)),
    "label_smoothing": lambda m, x: F.cross_entropy(m.conv(x), classes(x), label_smoothing=0.1),
    "nll_loss": lambda m, x: F.nll_loss(m.conv(x), classes(x)),
    "conv_same": lambda m, x: F.conv2d(x, m.conv.weight, padding="same"),
    "linalg_norm": lambda m, x: torch.linalg.norm(m.conv(x), dim=-1),
    "trapezoid": lambda m, x: torch.trapezoid(m.conv(x)),
    "softmax_to_half": lambda m, x: m.conv(x).softmax(1, dtype=torch.float16),
    "softmax_to_float": lambda m, x: m.conv(x).softmax(1, dtype=torch.float32),
    "type_as": lambda m, x: x.type_as(m.conv(x)),
    "einsum": lambda m, x: torch.einsum("bchw,bdhw->bcd", x, x),
    "sdpa": lambda m, x: F.scaled_dot_product_attention(x, x, x),
    "var": lambda m, x: m.conv(x).var(1),
    "logsumexp": lambda m, x: m.conv(x).logsumexp(1),
    "add_in_place": lambda m, x: m.conv(x).add_(x),
    "where": lambda m, x: torch.where(x > 0, m.conv(x), x),
    "softmin": lambda m, x: F.softmin(m.conv(x), 1),
    "triplet": lambda m, x: F.triplet_margin_loss(m.conv(x), x, x),
    "pairwise_distance": lambda m, x: F.pairwise_distance(m.conv(x), x),
    "local_response_norm": lambda m, x: F.local_response_norm(m.conv(x), 2),
    "layer_norm": lambda m, x: F.layer_norm(m.conv(x), (8,)),
}


@pytest.mark.parametrize("name", AGAINST_THE_DISPATCHER)
def test_dtype_map_against_the_dispatcher(name: str) -> None:
    function = AGAINST_THE_DISPATCHER[name]
    assert dtype_of(function, conv=nn.Conv2d(8, 8, 1)) == dispatched(function)


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_are_cast_by_their_cudnn_wrapper(layer: Any) -> None:
    # AutocastRNN.cpp is part of CUDA builds only, so the dispatcher of a CPU build cannot say it
    assert dtype_of(lambda m, x: m.rnn(x)[0], torch.randn(2, 5, 8), rnn=layer(8, 8, batch_first=True)) == "float16"


def test_dtype_map_names_modules_and_policies() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 2))
    table = dtype_map(model, (torch.randn(2, 4),), dtype=torch.bfloat16)
    assert [(op.module, op.dtype, op.policy) for op in table.ops] == [
        ("0", "bfloat16", "low"), ("1", "float32", "fp32"), ("2", "bfloat16", "low"),
    ]  # fmt: skip
    assert table.counts() == {"bfloat16": 2, "float32": 1}
    assert table.by_module()["1"] == ("float32",)


# -- the rules --------------------------------------------------------------------------------------------------------


def test_a_sound_model_has_no_finding() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(8), nn.Dropout(0.1),
        nn.Linear(8, 4),
    )  # fmt: skip
    y = torch.randint(0, 4, (2,))
    report = audit_model(
        model, (torch.randn(2, 3, 8, 8),), loss=lambda out: F.cross_entropy(out, y, label_smoothing=0.1)
    )
    assert report.findings == () and report.problems == ()
    assert "117 policies" in report.notes[0] or "policies" in report.notes[0]
    assert model.training  # untouched


def test_r08_half_parameters_and_frozen_ones() -> None:
    assert rules(nn.Linear(4, 4).half()) == {"R08"}
    assert rules(nn.Linear(4, 4).half(), scaler=None) == set()
    assert rules(nn.Linear(4, 4).half().requires_grad_(False)) == set()


def test_r25_all_weights_rounded_but_not_one_constant_layer() -> None:
    torch.manual_seed(0)
    assert rules(nn.Linear(32, 32).half().float()) == {"R25"}
    assert rules(nn.Linear(32, 32)) == set()
    assert rules(nn.LayerNorm(256)) == set()  # ones and zeros


@pytest.mark.parametrize(("value", "found"), [(1e5, True), (1e-9, True), (6e4, False), (1e-4, False), (0.0, False)])
def test_r26_statistics_that_half_would_break(value: float, found: bool) -> None:
    norm = nn.BatchNorm2d(4)
    norm.running_var[2] = value
    assert (rules(nn.Sequential(norm)) == {"R26"}) is found


def test_r26_half_statistics_and_bn_free_nets() -> None:
    model = nn.Sequential(nn.BatchNorm1d(4)).half()
    assert "R26" in rules(model, scaler=None)
    assert rules(nn.Sequential(nn.Linear(4, 4)).half(), scaler=None) == set()


def test_r09_and_r10_in_modules() -> None:
    assert "R09" in rules(nn.GroupNorm(2, 4, eps=1e-8).half(), scaler=None)
    assert rules(nn.GroupNorm(2, 4, eps=1e-8)) == set()
    assert rules(nn.LayerNorm(4, eps=1e-12)) == set()
    assert rules(nn.LayerNorm(4, eps=torch.finfo(torch.float16).tiny)) == {"R10"}


def test_r09_in_the_graph_only_where_the_op_is_float16() -> None:
    x = torch.randn(2, 8)
    half = One(lambda m, x: m.fc(x) / (m.fc(x).abs().amax(-1, keepdim=True) + 1e-8), fc=nn.Linear(8, 8))
    full = One(lambda m, x: m.fc(x).float() / (m.fc(x).norm(dim=-1, keepdim=True) + 1e-8), fc=nn.Linear(8, 8))
    assert rules(half, x) == {"R09"}
    assert rules(full, x) == set()


def test_r12_in_the_model_and_in_the_loss() -> None:
    x, y = torch.randn(2, 4), torch.rand(2, 4)
    assert rules(nn.Linear(4, 4), x, loss=lambda out: F.binary_cross_entropy(out.sigmoid(), y)) == {"R12"}
    assert rules(nn.Linear(4, 4), x, loss=lambda out: nn.BCELoss()(out.sigmoid(), y)) == {"R12"}
    assert rules(nn.Linear(4, 4), x, loss=lambda out: F.binary_cross_entropy_with_logits(out, y)) == set()


def test_r01_a_loss_that_stays_half_under_autocast() -> None:
    x = torch.randn(2, 4)
    assert rules(nn.Linear(4, 4), x, loss=lambda out: out.abs().mean()) == {"R01"}
    assert rules(nn.Linear(4, 4), x, loss=lambda out: out.float().abs().mean()) == set()


def test_r13_custom_operator_with_mixed_inputs() -> None:
    library = torch.library.Library("amp_rules_test", "FRAGMENT")
    try:
        library.define("join(Tensor x, Tensor w) -> Tensor")
        library.impl("join", lambda x, w: x.float() * w.float(), "CPU")
        torch.library.register_fake("amp_rules_test::join", lambda x, w: torch.empty_like(w + x.float()), lib=library)
        model = One(
            lambda m, x: torch.ops.amp_rules_test.join(m.fc(x), m.w.weight.mean(0)),
            fc=nn.Linear(4, 4),
            w=nn.Linear(4, 4),
        )
        assert rules(model, torch.randn(2, 4)) == {"R13"}
        torch.library.register_autocast("amp_rules_test::join", "cuda", torch.float32, lib=library)
        assert rules(model, torch.randn(2, 4)) == set()
    finally:
        library._destroy()


def test_r16_by_what_really_feeds_it() -> None:
    x = torch.randn(2, 4)
    assert rules(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.AlphaDropout()), x) == {"R16"}
    assert rules(nn.Sequential(nn.Linear(4, 4), nn.SELU(), nn.AlphaDropout()), x) == set()
    assert rules(One(lambda m, x: m.drop(F.selu(m.fc(x))), fc=nn.Linear(4, 4), drop=nn.AlphaDropout()), x) == set()


def test_r18_data_dependent_forward() -> None:
    def forward(m: Any, x: Any) -> Any:
        assert not torch.isnan(x).any()
        return m.fc(x)

    report = audit_model(One(forward, fc=nn.Linear(4, 4)), (torch.randn(2, 4),))
    assert {f.rule for f in report.findings} == {"R18"}
    assert "torch.export failed" in report.problems[0].text


def test_r23_float16_grid_on_a_large_map() -> None:
    def forward(m: Any, image: Any, feature: Any) -> Any:
        grid = m.fc(feature).view(2, 4, 4, 2)
        return F.grid_sample(image, grid, align_corners=False)

    model = One(forward, fc=nn.Linear(8, 32))
    feature = torch.randn(2, 8)
    assert rules(model, torch.randn(2, 1, 4, 512), feature) == {"R23"}
    assert rules(model, torch.randn(2, 1, 4, 64), feature) == set()


class FullyShardedDataParallel(nn.Module):
    """Named like FSDP1's wrapper, which cannot be made without processes."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner


def test_r17_fsdp1_with_a_plain_scaler() -> None:
    model = FullyShardedDataParallel(nn.Linear(4, 4))
    assert rules(model) == {"R17"}
    assert rules(model, scaler=None) == set()


TASK = """
import torch
from torch import nn

class Task:
    def model(self):
        return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.AlphaDropout(0.1), nn.Linear(4, 1))
    def train_data(self):
        return torch.utils.data.TensorDataset(torch.randn(8, 4), torch.rand(8, 1))
    def test_data(self):
        return self.train_data()
    def loss(self, outputs, targets):
        return nn.functional.binary_cross_entropy(outputs.sigmoid(), targets)
    def metrics(self, outputs, targets):
        return {}
"""


def test_the_command_audits_a_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "task.py").write_text(TASK)
    monkeypatch.chdir(tmp_path)
    result = run(Request(model="task.py:Task"))
    assert {f.rule for f in result.report.findings} == {"R12", "R16"}
    assert result.failed
    assert isinstance(result.output, list) and any("dtype map under CUDA autocast" in line for line in result.output)
    (tmp_path / "other.py").write_text(
        TASK.replace("def model(self):", "def model(self):\n        raise RuntimeError('no')")
    )
    broken = run(Request(model="other.py:Task")).report
    assert "model() failed: RuntimeError: no" in broken.problems[0].text


def test_the_command_prints_the_dtype_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mapped.py").write_text(TASK)
    monkeypatch.chdir(tmp_path)
    text = run(Request(model="mapped.py:Task", dtype_map=True)).output
    assert isinstance(text, list) and "policies of torch" in text[0]
    assert [line.split()[:3] for line in text[1:3]] == [
        ["float16", "low", "aten.linear.default"],
        ["float16", "follows", "input"],
    ]
    document = run(Request(model="mapped.py:Task", dtype_map=True, format="json")).output
    assert isinstance(document, dict)
    assert document["dtype_map"]["ops"][0]["module"] == "0"
    with pytest.raises(ConfigError, match="no model"):
        run(Request(paths=(tmp_path,), dtype_map=True))


def test_what_a_task_prints_is_no_part_of_the_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "loud.py").write_text(TASK.replace("def model(self):", "def model(self):\n        print('hello')"))
    monkeypatch.chdir(tmp_path)
    run(Request(model="loud.py:Task", dtype_map=True, format="json"))
    out, err = capfd.readouterr()
    assert out == ""
    assert "hello" in err


def test_a_model_that_was_not_examined_is_no_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "unbuilt.py").write_text(
        TASK.replace("def model(self):", "def model(self):\n        raise RuntimeError('no')")
    )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        main(["audit", "--model", "unbuilt.py:Task", "--dtype-map"])
    assert stopped.value.code == 2
    out, err = capsys.readouterr()
    assert "not audited: model() failed: RuntimeError: no" in out
    assert "the model was not examined: model() failed: RuntimeError: no" in " ".join(err.split())


@pytest.mark.parametrize(
    ("body", "said"),
    [("return 3", "model() gave a int, not a module"), ("raise SystemExit(3)", "model() failed: SystemExit: 3")],
)
def test_a_task_without_a_model_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, said: str
) -> None:
    name = f"odd{len(body)}"
    (tmp_path / f"{name}.py").write_text(TASK.replace("def model(self):", f"def model(self):\n        {body}"))
    monkeypatch.chdir(tmp_path)
    assert [p.text for p in run(Request(model=f"{name}.py:Task")).report.problems] == [said]


def test_r26_statistics_that_are_nan() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4))
    net[1].running_var.fill_(float("nan"))  # type: ignore[union-attr,operator]
    assert "R26" in rules(net)
