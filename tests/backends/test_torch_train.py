"""The training loop against values worked out by hand, and planted faults."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils.data import TensorDataset  # noqa: E402

from deploychain.backends.torch_optim import Ema, lr_factor, make_optimizer  # noqa: E402
from deploychain.backends.torch_train import FitPlan, fit  # noqa: E402
from deploychain.errors import StageError  # noqa: E402

pytestmark = pytest.mark.chain
CPU = torch.device("cpu")


class Regression:
    """y = W x by mean squared error; deterministic data."""

    def __init__(self, samples: int = 10, model: nn.Module | None = None) -> None:
        generator = torch.Generator().manual_seed(0)
        self.x = torch.randn(samples, 3, generator=generator)
        self.y = torch.randn(samples, 2, generator=generator)
        self.made = model or nn.Linear(3, 2, bias=False)
        with torch.no_grad():
            for p in self.made.parameters():
                p.copy_(torch.linspace(-1, 1, p.numel()).reshape(p.shape))
        self.seen: list[Any] = []

    def model(self) -> nn.Module:
        return self.made

    def train_data(self) -> TensorDataset:
        return TensorDataset(self.x, self.y)

    test_data = train_data

    def loss(self, outputs: Any, targets: Any) -> Any:
        self.seen.append(outputs.dtype)
        return F.mse_loss(outputs, targets)

    def metrics(self, outputs: Any, targets: Any) -> Any:
        return {"error": ((outputs["output"] - targets) ** 2).mean(1)}


def plan(**more: Any) -> FitPlan:
    made: dict[str, Any] = {
        "epochs": 1, "batch_size": 100, "optimizer": "sgd", "momentum": 0.0, "lr": 0.1, "schedule": "constant", **more,
    }  # fmt: skip
    return FitPlan(**made)


def mse_gradient(w: Any, x: Any, y: Any) -> Any:
    """d/dW mean((xW' - y)^2), by hand."""
    return 2 * (x @ w.T - y).T @ x / y.size


# -- one step --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("batch", "accumulate"), [(10, 1), (4, 3), (3, 4), (1, 16)])
def test_an_accumulated_step_is_the_step_of_the_whole_batch(batch: int, accumulate: int) -> None:
    """10 samples as 4+4+2, 3+3+3+1, ...: the last window is partial, and the loss is the mean over all samples."""
    task = Regression()
    w0 = task.made.weight.detach().double().numpy().copy()
    result = fit(task.model(), task, plan(batch_size=batch, accumulate=accumulate), CPU)
    expected = w0 - 0.1 * mse_gradient(w0, task.x.double().numpy(), task.y.double().numpy())
    np.testing.assert_allclose(result.model.weight.detach().numpy(), expected, atol=1e-6)
    assert result.log.step == 1


def test_a_partial_last_window_is_its_own_step() -> None:
    """10 samples, batch 2, 4 micro-batches a step: a step over 8 samples, then one over 2."""
    task = Regression()
    result = fit(task.model(), task, plan(batch_size=2, accumulate=4), CPU)
    from deploychain.backends.torch_data import ShardSampler

    order = list(ShardSampler(10, 0, shuffle=True))
    w = np.linspace(-1, 1, 6).reshape(2, 3)
    x, y = task.x.double().numpy(), task.y.double().numpy()
    for part in (order[:8], order[8:]):
        w = w - 0.1 * mse_gradient(w, x[part], y[part])
    assert result.log.step == 2
    np.testing.assert_allclose(result.model.weight.detach().numpy(), w, atol=1e-6)


@pytest.mark.parametrize("precision", ["fp32", "fp16-mixed"])
def test_clipping_sees_unscaled_gradients(precision: str) -> None:
    """SGD with lr 1: the weights move by exactly the clip norm. Clipped while scaled, they would move by norm/256."""
    task = Regression()
    before = task.made.weight.detach().clone()
    fit(task.model(), task, plan(precision=precision, lr=1.0, clip_norm=0.01, init_scale=256.0), CPU)
    moved = float((task.made.weight.detach() - before).norm())
    assert moved == pytest.approx(0.01, rel=1e-3)


def test_biases_and_norms_are_not_decayed() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Linear(2, 2))
    groups = make_optimizer(model, "adamw", lr=1e-3, weight_decay=0.1).param_groups
    decayed = {id(p) for g in groups if g["weight_decay"] > 0 for p in g["params"]}
    names = {n for n, p in model.named_parameters() if id(p) in decayed}
    assert names == {"0.weight", "2.weight"}
    assert sum(len(g["params"]) for g in groups) == 6


def test_schedule_values() -> None:
    factor = lr_factor("cosine", warmup=4, total=14)
    assert [factor(n) for n in range(4)] == pytest.approx([0.2, 0.4, 0.6, 0.8])
    assert factor(4) == 1.0
    assert factor(9) == pytest.approx(0.5)
    assert factor(14) == pytest.approx(0.0)
    constant = lr_factor("constant", warmup=0, total=3)
    assert [constant(n) for n in range(4)] == [1.0] * 4


def test_average_follows_its_recurrence_in_parameters_and_buffers() -> None:
    model = nn.BatchNorm1d(1)
    ema = Ema(model, decay=0.5)
    expected_w, expected_v = 1.0, 1.0
    for n, (w, v) in enumerate([(2.0, 3.0), (4.0, 5.0), (6.0, 7.0)] * 4, start=1):
        with torch.no_grad():
            model.weight.fill_(w)
            model.running_var.fill_(v)
            model.num_batches_tracked.fill_(n)
        ema.update(model)
        decay = min(0.5, (1 + n) / (10 + n))
        expected_w = decay * expected_w + (1 - decay) * w
        expected_v = decay * expected_v + (1 - decay) * v
    assert float(ema.module.weight) == pytest.approx(expected_w, rel=1e-6)
    assert float(ema.module.running_var) == pytest.approx(expected_v, rel=1e-6)
    assert int(ema.module.num_batches_tracked) == 12  # counted, not averaged


# -- mixed precision -------------------------------------------------------------------------------------------


def test_skipped_steps_are_counted_and_do_not_move_the_schedule() -> None:
    """From a scale of 2^40 the FP16 gradients overflow until enough halvings have happened."""
    task = Regression(samples=40)
    result = fit(
        task.model(),
        task,
        plan(precision="fp16-mixed", batch_size=1, schedule="cosine", init_scale=2.0**40, ema=0.9),
        CPU,
    )
    skipped = len(result.log.skipped)
    assert 5 < skipped < 35
    assert result.log.skipped[:5] == [1, 2, 3, 4, 5]
    final = result.log.scale_history[-1][1]
    assert final == 2.0 ** (40 - skipped)  # every skip halves, nothing else changes the scale
    assert len(result.log.scale_history) == skipped
    assert result.log.step == 40
    epoch = result.log.epochs[0]
    assert (epoch.steps, epoch.skipped_steps, epoch.scale) == (40 - skipped, skipped, final)
    assert result.state["schedule"]["last_epoch"] == 40 - skipped
    assert result.state["ema_updates"] == 40 - skipped
    assert all(torch.isfinite(p).all() for p in result.model.parameters())


def test_the_scale_grows_after_the_interval() -> None:
    task = Regression(samples=10)
    result = fit(task.model(), task, plan(precision="fp16-mixed", batch_size=1, growth_interval=4, init_scale=8.0), CPU)
    assert result.log.scale_history == [(1, 8.0), (4, 16.0), (8, 32.0)]
    assert result.state["scaler"]["scale"] == 32.0


def test_only_the_last_epochs_are_mixed() -> None:
    task = Regression()
    result = fit(task.model(), task, plan(precision="bf16-mixed", epochs=3, mixed_epochs=1), CPU)
    assert task.seen == [torch.float32, torch.float32, torch.bfloat16]
    assert [e.precision for e in result.log.epochs] == ["fp32", "fp32", "bf16-mixed"]
    assert task.made.weight.dtype == torch.float32
    assert [e.scale for e in result.log.epochs] == [None] * 3


def test_a_loss_in_half_precision_is_computed_again_in_fp32() -> None:
    class HalfLoss(Regression):
        def loss(self, outputs: Any, targets: Any) -> Any:
            self.seen.append(outputs.dtype)
            return (outputs - targets.to(outputs.dtype)).abs().sum() * 1000  # beyond 65504 in FP16

    task = HalfLoss()
    notes: list[str] = []
    fit(task.model(), task, plan(precision="fp16-mixed", batch_size=5, lr=1e-6, init_scale=4.0), CPU, note=notes.append)
    assert task.seen == [torch.float16, torch.float32, torch.float32]
    assert len(notes) == 1 and "float16" in notes[0]


def test_metrics_are_means_of_scores_in_eval_mode() -> None:
    task = Regression()
    result = fit(task.model(), task, plan(), CPU)
    w = result.model.weight.detach().double().numpy()
    expected = ((task.x.double().numpy() @ w.T - task.y.double().numpy()) ** 2).mean()
    assert result.log.epochs[0].metrics["error"] == pytest.approx(expected, rel=1e-5)
    assert not result.model.training


# -- settings --------------------------------------------------------------------------------------------------


def test_channels_last_reaches_weights_and_inputs() -> None:
    layouts = []

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 2, 3)

        def forward(self, x: Any) -> Any:
            layouts.append(x.is_contiguous(memory_format=torch.channels_last))
            return self.conv(x).mean((2, 3))

    task = Regression(model=Net())
    task.x = torch.randn(10, 3, 5, 5)
    result = fit(task.model(), task, plan(channels_last=True, evaluate=False), CPU)
    assert layouts == [True]
    assert result.model.conv.weight.is_contiguous(memory_format=torch.channels_last)


def test_deterministic_mode_holds_inside_and_ends_outside() -> None:
    inside = []

    class Look(Regression):
        def loss(self, outputs: Any, targets: Any) -> Any:
            inside.append(torch.are_deterministic_algorithms_enabled())
            return super().loss(outputs, targets)

    task = Look()
    fit(task.model(), task, plan(deterministic=True), CPU)
    assert inside == [True]
    assert not torch.are_deterministic_algorithms_enabled()


def test_the_same_seed_gives_the_same_weights_and_another_does_not() -> None:
    def weights(seed: int) -> Any:
        task = Regression(samples=32)
        return fit(task.model(), task, plan(batch_size=4, epochs=2, seed=seed), CPU).model.weight.detach().clone()

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))


def test_every_epoch_has_an_order_of_its_own_over_the_same_samples() -> None:
    losses: list[float] = []

    class Note(Regression):
        def loss(self, outputs: Any, targets: Any) -> Any:
            made = super().loss(outputs, targets)
            losses.append(float(made.detach()))
            return made

    task = Note()
    fit(task.model(), task, plan(batch_size=1, epochs=2, lr=1e-30), CPU)
    first, second = losses[:10], losses[10:]
    assert first != second
    assert sorted(first) == pytest.approx(sorted(second))


def test_after_step_is_told_every_step() -> None:
    task = Regression()
    told: list[tuple[int, int]] = []
    fit(
        task.model(), task, plan(batch_size=4, epochs=2), CPU, after_step=lambda done, total: told.append((done, total))
    )
    assert told == [(n, 6) for n in range(1, 7)]


# -- failures --------------------------------------------------------------------------------------------------


def failure(task: Any, **more: Any) -> StageError:
    with pytest.raises(StageError) as caught:
        fit(task.model(), task, plan(**more), CPU)
    assert caught.value.remedy
    return caught.value


def test_nan_in_the_data_is_named() -> None:
    task = Regression()
    task.x[3, 1] = math.nan
    error = failure(task)
    assert "at step 1, from the first step on: the data holds NaN" in error.message
    assert torch.isfinite(task.made.weight).all()  # no step was taken with it


def test_the_module_that_makes_nan_is_named() -> None:
    class Log(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.log(x - 1e9)

    task = Regression(model=nn.Sequential(nn.Linear(3, 2), Log()))
    assert "module 1 gives non-finite values" in failure(task).message


def test_a_loss_that_is_nan_of_finite_outputs_is_named() -> None:
    class Bad(Regression):
        def loss(self, outputs: Any, targets: Any) -> Any:
            return (outputs - targets).mean() * math.inf

    assert "the task's loss of them is not" in failure(Bad()).message


def test_a_learning_rate_that_explodes_is_told_with_its_step() -> None:
    error = failure(Regression(), lr=1e30, epochs=5)
    assert "from the first step on" not in error.message
    assert "step 2" in error.message or "step 3" in error.message


def test_overflow_of_the_forward_pass_in_fp16_is_told_apart() -> None:
    class Wide(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(3, 2)

        def forward(self, x: Any) -> Any:
            return (self.first(x) * 1e5) * 1e-5  # fine in FP32, infinite in FP16

    task = Regression(samples=64, model=Wide())
    with torch.no_grad():
        task.made.first.weight.fill_(10.0)
    error = failure(task, precision="fp16-mixed", batch_size=1, lr=1e-3)
    assert "fp16-mixed overflows in the forward pass" in error.message
    fine = Regression(samples=64, model=Wide())
    fit(fine.model(), fine, plan(batch_size=1, lr=1e-4), CPU)  # the same in FP32 trains


class InfiniteGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:  # type: ignore[override]
        return grad * math.inf


class Broken(Regression):
    def loss(self, outputs: Any, targets: Any) -> Any:
        return F.mse_loss(InfiniteGradient.apply(outputs.float()), targets)


def test_gradients_that_are_never_finite_exhaust_the_scale() -> None:
    error = failure(Broken(samples=64), precision="fp16-mixed", batch_size=1)
    # 65536 = 2^16 halved 17 times is 0.5, the first value below 1.
    assert "fell to 0.5 at step 17, after 17 skipped steps" in error.message


def test_a_training_without_a_single_step_is_no_training() -> None:
    assert (
        "no optimizer step was applied: all 3"
        in failure(Broken(samples=3), precision="fp16-mixed", batch_size=1).message
    )


@pytest.mark.parametrize("bad", [lambda o, t: (o - t) ** 2, lambda o, t: 1.0])
def test_a_loss_of_the_wrong_form_is_named(bad: Any) -> None:
    task = Regression()
    task.loss = bad  # type: ignore[method-assign]
    assert "expected one number as a tensor" in failure(task).message


def test_metrics_of_the_wrong_form_are_named() -> None:
    task = Regression()
    task.metrics = lambda outputs, targets: 0.5  # type: ignore[method-assign]
    assert "expected a mapping" in failure(task).message
