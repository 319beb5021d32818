"""What cannot be exported or proved stops with its tensor, axis or operator, a remedy, and no file."""

from __future__ import annotations

import contextlib
import resource
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="export needs torch")
pytest.importorskip("onnxruntime", reason="the file is proved with onnxruntime")

import numpy as np
import onnx
import qat_models
import torch
from onnx import helper, numpy_helper
from torch import Tensor, nn
from torch.nn import functional as F

from deploychain.backends import onnx_export, onnx_graph, torch_qat
from deploychain.backends.onnx_export import export
from deploychain.errors import ConfigError, StageError

pytestmark = pytest.mark.chain
IMAGES = torch.randn(4, 1, 8, 8, generator=torch.Generator().manual_seed(0))


class Lambda(nn.Module):
    def __init__(self, function) -> None:  # type: ignore[no-untyped-def]
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)  # type: ignore[no-any-return]


def refused(tmp_path: Path, model: nn.Module, example: Tensor = IMAGES[:2], **options: object) -> StageError:
    with pytest.raises(StageError) as caught:
        export(model.eval(), example, tmp_path / "m.onnx", **options)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
    assert caught.value.remedy
    return caught.value


def test_a_batch_that_view_fixes_is_refused_with_torchs_words(tmp_path: Path) -> None:
    error = refused(tmp_path, Lambda(lambda x: x.view(2, 1, 64) * 2))
    assert "the model fixes the axis 'batch' at 2" in error.message and "invalid for input" in error.message


def test_an_output_axis_that_the_model_fixes_is_named(tmp_path: Path) -> None:
    error = refused(tmp_path, Lambda(lambda x: x.reshape(2, -1)))
    assert "output 'output', axis 0 is named 'batch', but it is 2 when batch is" in error.message


def test_a_name_that_belongs_to_no_input_must_still_vary(tmp_path: Path) -> None:
    axes = {"x": {0: "batch"}, "output": {0: "batch", 1: "classes"}}
    error = refused(tmp_path, Lambda(lambda x: x.flatten(1)), dynamic_axes=axes)
    assert "axis 1 is named 'classes', but the model fixes it: it was 64 at all" in error.message


def test_a_size_that_tracing_bakes_in_is_refused_at_the_other_size(tmp_path: Path) -> None:
    error = refused(tmp_path, Lambda(lambda x: x.reshape(int(x.shape[0]), -1) + torch.zeros(int(x.shape[0]), 64)))
    assert "fixes the axis 'batch'" in error.message and "batch=1" in error.message


def test_a_value_that_tracing_bakes_in_shows_in_the_outputs(tmp_path: Path) -> None:
    error = refused(tmp_path, Lambda(lambda x: x.flatten(1) * float(x.shape[0])))
    assert "output 'output' differs from torch at batch=" in error.message
    assert "sizes or values of the example" in error.remedy


def test_multihead_attention_is_named_in_the_remedy(tmp_path: Path) -> None:
    axes = {"tokens": {0: "batch", 1: "length"}, "output": {0: "batch", 1: "length"}}
    with pytest.raises(StageError) as caught:
        export(qat_models.Attention().eval(), torch.randn(2, 6, 16), tmp_path / "m.onnx", dynamic_axes=axes)
    assert "nn.MultiheadAttention (attention)" in caught.value.remedy
    assert "fixes the axis" in caught.value.message


@pytest.mark.parametrize(
    "function, remedy",
    [
        (lambda x: F.rms_norm(x, (8,)), "torch.rsqrt"),
        (lambda x: F.interpolate(x, scale_factor=0.5, mode="bilinear", antialias=True), "antialias=False"),
        (lambda x: F.affine_grid(torch.eye(2, 3).repeat(2, 1, 1) * x.sum(), x.shape, False), "opset 20"),
        (lambda x: F.fold(x.reshape(2, 4, 16), (5, 5), (2, 2)), "pixel_shuffle"),
        (lambda x: x.int() & 3, "logical_and"),
    ],
    ids=["rms_norm", "antialias", "affine_grid", "fold", "bitwise"],
)
def test_what_the_exporter_cannot_do_at_17_has_a_remedy(function, remedy: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    error = refused(tmp_path, Lambda(function))
    assert "the exporter failed at opset 17" in error.message
    assert remedy in error.remedy


@pytest.mark.parametrize(
    "options, words",
    [
        ({"dynamic_axes": {"images": {0: "batch"}}}, r"no tensor 'images'.*inputs: x; outputs: output"),
        ({"dynamic_axes": {"x": {4: "batch"}}}, "'x' has 4 axes, there is no axis 4"),
        ({"names": ("a", "b")}, r"2 input names for 1 inputs \(x\)"),
        ({"output_names": ("a", "b")}, r"2 output names for 1 outputs \(output\)"),
        ({"output_names": ("x",)}, "input and output share the name 'x'"),
    ],
)
def test_wrong_names_are_configuration_errors(options: dict[str, object], words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        export(Lambda(torch.relu).eval(), IMAGES[:2], tmp_path / "m.onnx", **options)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_axes_of_one_name_need_one_size(tmp_path: Path) -> None:
    axes = {"x": {0: "n", 2: "n"}}
    error = refused(tmp_path, Lambda(torch.relu), dynamic_axes=axes)
    assert "the axis 'n' has sizes 2 and 8" in error.message


def test_an_exporter_that_writes_wrong_numbers_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is valid, has the right shapes, and holds one changed weight."""
    load = onnx_graph.load

    def corrupted(path: Path) -> onnx.ModelProto:
        model = load(path)
        weight = next(t for t in model.graph.initializer if len(t.dims) == 4)
        values = numpy_helper.to_array(weight).copy()
        values.flat[0] += 0.5
        weight.CopyFrom(numpy_helper.from_array(values, weight.name))
        return model

    monkeypatch.setattr(onnx_export.onnx_graph, "load", corrupted)
    error = refused(tmp_path, nn.Conv2d(1, 4, 3))
    assert "differs from torch at batch=2" in error.message


class Steep(nn.Module):
    """Amplifies the rounding differences of its layer, as a deep quantised model does."""

    def __init__(self, slope: float) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.slope = nn.Linear(64, 64), slope

    def forward(self, x: Tensor) -> Tensor:
        return torch.sin(self.slope * self.layer(x.flatten(1)))


def test_differences_that_rounding_explains_pass_and_are_told(tmp_path: Path) -> None:
    done = export(Steep(5e4).eval(), IMAGES[:2], tmp_path / "m.onnx", tolerance=1e-5)
    assert 1e-5 < done.proof.worst < 0.1
    assert any("no more than FP32 rounding noise" in note for note in done.proof.notes)


def test_what_rounding_noise_drowns_cannot_be_proved(tmp_path: Path) -> None:
    error = refused(tmp_path, Steep(1e9))
    assert "differs from torch at batch=2" in error.message and "allowed 0.1" in error.message


def test_a_wrong_weight_in_a_quantised_model_is_no_rounding_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = onnx_graph.load

    def corrupted(path: Path) -> onnx.ModelProto:
        model = load(path)
        weight = next(t for t in model.graph.initializer if t.name == "layer1.0.conv1.weight_quantizer.scale")
        values = numpy_helper.to_array(weight).copy() * 1.05
        weight.CopyFrom(numpy_helper.from_array(values, weight.name))
        return model

    made = torch_qat.prepare(qat_models.trained(qat_models.ResNet, 1, 8, 8), IMAGES)
    torch_qat.calibrate(made, [IMAGES])
    monkeypatch.setattr(onnx_export.onnx_graph, "load", corrupted)
    assert "differs from torch at batch=2" in refused(tmp_path, made.model).message


def test_an_exporter_that_writes_another_opset_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = onnx_graph.load

    def raised(path: Path) -> onnx.ModelProto:
        model = load(path)
        del model.opset_import[:]
        model.opset_import.append(helper.make_opsetid("", 18))
        return model

    monkeypatch.setattr(onnx_export.onnx_graph, "load", raised)
    with pytest.raises(StageError, match="opset 18 instead of 17"):
        export(nn.Conv2d(1, 4, 3).eval(), IMAGES[:2], tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


@contextlib.contextmanager
def small_disk(limit: int) -> Iterator[None]:
    """No file may grow beyond a limit: writes fail as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("limit", [4096, 1 << 20])
def test_a_full_disk_is_told_in_one_line_and_leaves_nothing(limit: int, tmp_path: Path) -> None:
    with small_disk(limit):
        error = refused(tmp_path, nn.Linear(8, 100_000))
    assert "cannot write the model: File too large" in error.message


def test_nan_where_torch_has_none_is_caught() -> None:
    from deploychain.backends.onnx_proof import _errors

    good = np.array([1.0, np.nan, np.inf], np.float32)
    assert _errors(good, good) == (0.0, 0.0)
    assert _errors(np.array([1.0, np.nan], np.float32), np.array([1.0, 2.0], np.float32))[0] == np.inf
    assert _errors(np.array([3.0, 4.5]), np.array([3.0, 4.0]))[0] == pytest.approx(0.5 / 5)
    assert _errors(np.array([1, 2, 3, 4]), np.array([1, 2, 4, 3])) == (0.5, 1.0)


def test_warnings_of_the_exporter_reach_nobody_but_the_report(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = export(Lambda(lambda x: x * 2 if bool(x.sum() < 1e9) else x).eval(), IMAGES[:2], tmp_path / "m.onnx")
    (note,) = done.warnings
    assert "test_export_refusals.py:" in note and "becomes a constant of the graph" in note


def test_a_model_that_raises_on_its_example(tmp_path: Path) -> None:
    error = refused(tmp_path, nn.Linear(5, 2))
    assert "the model fails on its example: RuntimeError: mat1 and mat2" in error.message


def test_an_input_that_the_model_ignores_is_told(tmp_path: Path) -> None:
    class Ignores(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return x * 2

    done = export(Ignores(), (IMAGES[:2], IMAGES[:2]), tmp_path / "m.onnx")
    assert done.inputs == ("x",)
    assert done.warnings == ("input 'y' is not used by the model: the file does not have it",)


def test_a_model_with_an_input_that_is_no_tensor(tmp_path: Path) -> None:
    class Two(nn.Module):
        def forward(self, x: Tensor, scale: float) -> Tensor:
            return x * scale

    with pytest.raises(StageError, match="input 'scale' is a float, not a tensor"):
        export(Two(), (IMAGES[:2], 2.0), tmp_path / "m.onnx")


def test_the_models_own_chance_does_not_pass_for_rounding(tmp_path: Path) -> None:
    # 0.5 % of noise is more than the tolerance and less than four times the noise that would be measured.
    class Noisy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(64, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(x.flatten(1) * (1 + 5e-3 * torch.randn_like(x.flatten(1))))

    error = refused(tmp_path, Noisy())
    assert "not deterministic in eval mode" in error.message and "'output'" in error.message
