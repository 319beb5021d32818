"""BatchNorm folding: the same outputs, and a reason for every BatchNorm that stays."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="QAT needs torch")

import qat_models
import torch
from torch import Tensor, nn

from deploychain.backends.qat_fold import fold_batchnorms

pytestmark = pytest.mark.chain


def fold(model: nn.Module, x: Tensor):  # type: ignore[no-untyped-def]
    return fold_batchnorms(model, lambda m: [m(x)])


@pytest.mark.parametrize(
    "model, shape, pairs",
    [
        (qat_models.ResNet(), (1, 8, 8), 5),
        (nn.Sequential(nn.ConvTranspose2d(3, 5, 2, 2), nn.BatchNorm2d(5)), (3, 6, 6), 1),
        (nn.Sequential(nn.Conv1d(3, 5, 3, bias=False), nn.BatchNorm1d(5), nn.ReLU()), (3, 9), 1),
        (nn.Sequential(nn.Conv2d(4, 4, 3, groups=4), nn.BatchNorm2d(4, affine=False)), (4, 6, 6), 1),
        (nn.Sequential(nn.Linear(6, 7), nn.BatchNorm1d(7)), (6,), 1),
    ],
    ids=["resnet", "transposed", "conv1d", "depthwise-without-affine", "linear"],
)
def test_folded_model_computes_the_same(model: nn.Module, shape: tuple[int, ...], pairs: int) -> None:
    qat_models.trained(model, *shape)
    x = torch.randn(4, *shape)
    with torch.no_grad():
        before = model(x)
        folding = fold(model, x)
        after = model(x)
    assert len(folding.pairs) == pairs and not folding.kept
    assert not any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in model.modules())
    assert torch.allclose(after, before, rtol=1e-5, atol=1e-5)


def test_folded_weight_is_gamma_over_sigma_times_weight() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 1, bias=False), nn.BatchNorm2d(2, eps=0.0)).eval()
    with torch.no_grad():
        model[0].weight.copy_(torch.tensor([3.0, 5.0]).reshape(2, 1, 1, 1))
        model[1].running_mean.copy_(torch.tensor([1.0, 2.0]))
        model[1].running_var.copy_(torch.tensor([4.0, 16.0]))
        model[1].weight.copy_(torch.tensor([2.0, 8.0]))
        model[1].bias.copy_(torch.tensor([0.5, -1.0]))
    fold(model, torch.ones(1, 1, 2, 2))
    assert model[0].weight.flatten().tolist() == [3.0, 10.0]  # 3 * 2/2, 5 * 8/4
    assert model[0].bias.tolist() == [-0.5, -5.0]  # 0.5 - 1*2/2, -1 - 2*8/4


class _ReadTwice(nn.Module):
    """The convolution's output is read beside the norm: folding that pair would change the sum."""

    def __init__(self) -> None:
        super().__init__()
        self.good = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4))
        self.conv, self.bn = nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(self.good(x))
        return self.bn(y) + y


def test_a_convolution_that_is_read_twice_is_not_folded() -> None:
    model = qat_models.trained(_ReadTwice(), 1, 8, 8)
    x = torch.randn(4, 1, 8, 8)
    with torch.no_grad():
        before = model(x)
        folding = fold(model, x)
        assert torch.allclose(model(x), before, rtol=1e-5, atol=1e-5)
    assert folding.pairs == (("good.0", "good.1"),)
    assert "conv is read by something else" in folding.kept["bn"]


class _InPlaceBetween(nn.Module):
    """A convolution, an in-place activation, a norm: the tensor object is the same, its values are not."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.act, self.bn = nn.Conv2d(1, 4, 3), nn.ReLU(inplace=True), nn.BatchNorm2d(4)

    def forward(self, x: Tensor) -> Tensor:
        return self.bn(self.act(self.conv(x)))


class _FusedNorm(nn.BatchNorm2d):
    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(super().forward(x))


@pytest.mark.parametrize(
    "model, reason",
    [
        (_InPlaceBetween(), "does not follow"),
        (nn.Sequential(nn.Conv2d(1, 4, 3), _FusedNorm(4)), "does more than normalise"),
        (nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4, track_running_stats=False)), "running statistics"),
        (nn.Sequential(nn.ConvTranspose2d(2, 4, 2, groups=2), nn.BatchNorm2d(4)), "grouped"),
    ],
    ids=["in-place", "subclass", "no-statistics", "grouped-transposed"],
)
def test_what_cannot_be_folded_says_why(model: nn.Module, reason: str) -> None:
    channels = next(m.in_channels for m in model.modules() if hasattr(m, "in_channels"))
    qat_models.trained(model, channels, 8, 8)
    x = torch.randn(4, channels, 8, 8)
    with torch.no_grad():
        before = model(x)
        folding = fold(model, x)
        assert torch.equal(model(x), before)
    assert not folding.pairs
    (why,) = folding.kept.values()
    assert reason in why
