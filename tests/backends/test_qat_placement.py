"""Where quantisers go, and where they do not."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="QAT needs torch")

import qat_models
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from deploychain.backends.qat_quantizer import FakeQuantizer, channel_range
from deploychain.backends.torch_qat import Quantised, prepare
from deploychain.errors import StageError

pytestmark = pytest.mark.chain
IMAGE = torch.randn(2, 1, 8, 8, generator=torch.Generator().manual_seed(0))


def resnet(*exclude: str) -> Quantised:
    return prepare(qat_models.trained(qat_models.ResNet, 1, 8, 8), IMAGE, exclude)


def test_every_layer_and_both_skips_are_quantised() -> None:
    made = resnet()
    convs = [n for n, m in made.model.named_modules() if isinstance(m, (nn.Conv2d, nn.Linear))]
    assert sorted(made.placement.layers) == sorted(convs)
    assert {(s.body, s.kind) for s in made.placement.sites} == {("layer1.0", "skip"), ("layer1.1", "skip")}
    assert not made.placement.skipped and not made.notes()


def test_readers_of_one_tensor_share_one_quantiser() -> None:
    made = resnet()
    model, layers = made.model, made.placement.layers
    # The input of the first block feeds its first convolution and its skip.
    assert model.get_submodule("layer1.0.conv1").input_quantizer is model.get_submodule("layer1.0").skip_quantizer
    # That of the second feeds two convolutions; its skip is the output of one of them, another tensor.
    assert layers["layer1.1.conv1"] == layers["layer1.1.down"]
    second = model.get_submodule("layer1.1")
    assert second.skip_quantizer is not second.conv1.input_quantizer
    assert len(made.activations) == len(set(layers.values())) + 1


def test_the_skip_is_quantised_where_it_enters_the_addition() -> None:
    made = resnet()
    block = made.model.get_submodule("layer1.1")
    for quantizer in made.activations.values():
        quantizer.set_range(1e6)  # scale 7874: everything below half of it rounds to 0
    block.down.register_forward_hook(lambda *_: torch.full((2, 16, 8, 8), 3.0))
    block.conv2.register_forward_hook(lambda *_: torch.full((2, 16, 8, 8), 5.0))
    out = block(torch.randn(2, 8, 8, 8))
    assert torch.equal(out, torch.full_like(out, 5.0))  # 5 + round(3 / 7874) * 7874: only the skip was quantised


def test_scales_are_0d_symmetric_and_weights_per_channel() -> None:
    made = resnet()
    for module in made.model.modules():
        if isinstance(module, FakeQuantizer):
            assert module.scale.shape == (() if module.axis is None else (module.scale.numel(),))
            assert module.scale.dtype is torch.float32 and module.zero_point.dtype is torch.int32
            assert not module.zero_point.any()
    conv = made.model.get_submodule("layer1.1.conv1")
    assert torch.equal(conv.weight_quantizer.scale, conv.weight.detach().abs().amax((1, 2, 3)) / 127)


def test_a_concatenation_and_its_consumer_share_one_scale() -> None:
    made = prepare(qat_models.UNet(), IMAGE)
    model = made.model
    assert [s.kind for s in made.placement.sites] == ["concat", "concat"]
    assert model.concat_quantizer is model.mix.input_quantizer
    # `second` reads a max pool of the first operand: another tensor, with a range of its own.
    assert model.second.input_quantizer is not model.mix.input_quantizer
    assert any("up: TensorRT-RTX builds a quantised ConvTranspose in FP32" in note for note in made.notes())
    assert model.up.weight_quantizer.axis == 1
    assert torch.equal(model.up.weight_quantizer.scale, model.up.weight.detach().abs().amax((0, 2, 3)) / 127)


def test_excluded_modules_stay_as_they_were() -> None:
    made = resnet("head", "layer1.0*")
    assert set(made.placement.layers) == {"stem.0", "layer1.1.conv1", "layer1.1.conv2", "layer1.1.down"}
    assert type(made.model.get_submodule("head")) is nn.Linear
    assert type(made.model.get_submodule("layer1.0.conv1")) is nn.Conv2d
    assert {s.body for s in made.placement.sites} == {"layer1.1"}
    assert made.placement.skipped["head"] == "excluded by the user"


def test_a_pattern_that_matches_nothing_is_an_error_with_names() -> None:
    with pytest.raises(StageError, match=r"'heads' matches no module.*stem"):
        resnet("heads")


def test_excluding_everything_is_an_error() -> None:
    with pytest.raises(StageError, match="no layer is left to quantise"):
        resnet("*")


def test_an_untraceable_forward_keeps_its_addition_and_is_named() -> None:
    made = prepare(qat_models.trained(qat_models.Untraceable, 1, 8, 8), IMAGE)
    assert {s.body for s in made.placement.sites} == {"block"}
    assert set(made.placement.layers) == {"stem", "block.conv1", "block.conv2", "last"}
    assert any("the model: additions in its forward stay unquantised" in note for note in made.notes())


def test_attention_stays_unquantised_and_says_so() -> None:
    made = prepare(qat_models.Attention().eval(), torch.randn(2, 5, 16))
    assert set(made.placement.layers) == {"mlp.0", "mlp.2"}
    assert not made.placement.sites  # pre-norm: LayerNorm reads the residual stream in floating point
    assert "was not called" in made.placement.skipped["attention.out_proj"]
    assert any("products of two activations (attention) stay unquantised" in note for note in made.notes())


class _MlpResidual(nn.Module):
    """The skip tensor feeds a linear layer too, so that its INT8 copy exists anyway."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.b(F.relu(self.a(x)))


def test_a_linear_residual_shares_the_quantiser_of_its_reader() -> None:
    made = prepare(_MlpResidual(), torch.randn(3, 6))
    assert [(s.kind, s.operand) for s in made.placement.sites] == [("skip", "x")]
    assert made.model.skip_quantizer is made.model.a.input_quantizer


class _Constants(nn.Module):
    """Additions that are no residuals: a number, a parameter, a broadcast."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.shift = nn.Parameter(torch.ones(1, 4, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(x)
        return y + 1 + self.shift + y.mean((2, 3), keepdim=True)


def test_other_additions_are_left_alone() -> None:
    made = prepare(_Constants(), IMAGE)
    assert set(made.placement.layers) == {"conv"} and not made.placement.sites


def test_a_rewritten_module_keeps_its_class_and_attributes() -> None:
    made = resnet()
    block = made.model.get_submodule("layer1.0")
    assert type(block) is qat_models.Block
    assert set(dict(block.named_children())) >= {"conv1", "bn1", "conv2", "relu", "down"}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_values_under_autocast_keep_their_type(dtype: torch.dtype) -> None:
    quantizer = FakeQuantizer()
    quantizer.set_range(12.7)
    out = quantizer(torch.tensor([0.14, 1.26, 99.0], dtype=dtype))
    assert out.dtype is dtype
    assert out.tolist() == torch.tensor([0.1, 1.3, 12.7]).to(dtype).tolist()


def test_values_round_to_the_grid_and_clip_at_its_ends() -> None:
    quantizer = FakeQuantizer()
    quantizer.set_range(127.0)
    x = torch.tensor([0.4, 0.6, -1.4, 126.6, 500.0, -500.0])
    assert quantizer(x).tolist() == [0.0, 1.0, -1.0, 127.0, 127.0, -128.0]


def test_channel_range_and_dead_channels() -> None:
    weight = torch.zeros(3, 2, 1, 1)
    weight[0, 1], weight[2, 0] = -4.0, 0.5
    assert channel_range(weight, 0).tolist() == [4.0, 0.0, 0.5]
    quantizer = FakeQuantizer(0, 3)
    quantizer.set_range(channel_range(weight, 0))
    assert bool((quantizer.scale > 0).all()) and torch.equal(quantizer(weight)[1], torch.zeros(2, 1, 1))
