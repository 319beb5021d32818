"""Calibration, fine-tuning, files: what is stored rebuilds the same model, and the table tells its scales."""

from __future__ import annotations

import contextlib
import json
import resource
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="QAT needs torch")
pytest.importorskip("safetensors", reason="the state is stored as safetensors")

import qat_models
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from deploychain.artifact import Artifact
from deploychain.backends import torch_qat
from deploychain.backends.torch_train import FitPlan, fit
from deploychain.console import NoProgress
from deploychain.errors import ArtifactError, StageError
from deploychain.job import Job, StageResult
from deploychain.settings import QatSettings
from deploychain.stages import qat
from deploychain.task import TaskRef

pytestmark = pytest.mark.chain
IMAGES = torch.randn(64, 1, 8, 8, generator=torch.Generator().manual_seed(0))


def quantised(method: str = "max") -> torch_qat.Quantised:
    made = torch_qat.prepare(qat_models.trained(qat_models.ResNet, 1, 8, 8), IMAGES[:2])
    torch_qat.calibrate(made, IMAGES.split(16), method)
    return made


def test_max_calibration_sets_each_scale_to_the_largest_value_over_127() -> None:
    made = quantised("max")
    assert float(made.model.stem[0].input_quantizer.scale) == pytest.approx(float(IMAGES.abs().max()) / 127, rel=1e-6)
    seen: list[float] = []
    made.model.head.register_forward_pre_hook(lambda _, args: seen.append(float(args[0].abs().max())))
    for quantizer in made.activations.values():
        quantizer.enabled = False
    with torch.no_grad():
        made.model(IMAGES)
    assert float(made.model.head.input_quantizer.scale) == pytest.approx(seen[0] / 127, rel=1e-5)
    assert set(made.clipped.values()) == {0.0}


def test_calibration_data_that_is_not_finite_names_the_quantiser() -> None:
    made = torch_qat.prepare(qat_models.trained(qat_models.ResNet, 1, 8, 8), IMAGES[:2])
    bad = IMAGES[:16].clone()
    bad[3, 0, 2, 2] = float("nan")
    with pytest.raises(StageError, match=r"stem\.0\.input_quantizer: NaN or infinity"):
        torch_qat.calibrate(made, [bad])


@pytest.mark.parametrize("model", [qat_models.ResNet, qat_models.UNet, qat_models.Untraceable, qat_models.Attention])
def test_the_files_rebuild_the_same_model_bit_by_bit(model: type[nn.Module], tmp_path: Path) -> None:
    x = torch.randn(16, 5, 16) if model is qat_models.Attention else IMAGES[:16]
    made = torch_qat.prepare(qat_models.trained(model, *x.shape[1:]), x[:2])
    torch_qat.calibrate(made, [x])
    torch_qat.save(made, tmp_path / "q.safetensors", tmp_path / "q.json")

    class Task(qat_models.Task):
        def model(self) -> nn.Module:
            return model()  # other random weights: all of them come from the file

    again = torch_qat.load_quantised(Task(), tmp_path / "q.safetensors", tmp_path / "q.json")
    with torch.no_grad():
        assert torch.equal(again(x), made.model(x))
    assert not again.training


def test_the_table_has_the_scales_of_the_model(tmp_path: Path) -> None:
    made = quantised("percentile")
    torch_qat.save(made, tmp_path / "q.safetensors", tmp_path / "q.json")
    rows = {r["name"]: r for r in json.loads((tmp_path / "q.json").read_text())["quantizers"]}
    state = load_file(tmp_path / "q.safetensors")
    assert len(rows) == len(made.activations) + len(made.placement.layers)
    for name, row in rows.items():
        stored = state["layer1.1.skip_quantizer.scale" if "skip" in name else f"{name}.scale"]
        assert row["scale"] == stored.reshape(-1).tolist()
        assert row["zero_point"] == 0
        assert row["axis"] == (None if row["kind"] == "activation" else 0)
    row = rows["layer1.0.conv1.input_quantizer"]
    assert row["feeds"] == ["layer1.0.conv1", "skip of layer1.0 (add)"]
    assert row["calibration"] == "percentile 99.99"
    assert row["range"] == [pytest.approx(-128 * row["scale"][0]), pytest.approx(127 * row["scale"][0])]


def test_clipped_share_of_a_planted_range() -> None:
    made = quantised("max")
    largest = float(IMAGES.abs().max())
    made.model.stem[0].input_quantizer.set_range(largest / 2)
    torch_qat.measure_clipping(made, [IMAGES])
    beyond = float((IMAGES.abs() > largest / 2).double().mean())
    assert beyond > 0 and made.clipped["stem.0.input_quantizer"] == pytest.approx(beyond, rel=0.1)


def test_activation_ranges_follow_until_frozen_and_weight_ranges_to_the_end() -> None:
    made = quantised("max")
    after_step, end = torch_qat.follow_until(made, dict.fromkeys(made.activations, 1.0), 0.5)
    conv = made.model.stem[0]
    start = float(conv.input_quantizer.scale)
    made.model.train()
    made.model(IMAGES * 3)
    moved = float(conv.input_quantizer.scale)
    assert moved == pytest.approx(0.98 * start + 0.02 * 3 * start, rel=1e-4)
    after_step(4, 10)
    made.model(IMAGES * 3)
    assert float(conv.input_quantizer.scale) > moved  # 40 % of the steps: still following
    after_step(5, 10)
    frozen = float(conv.input_quantizer.scale)
    with torch.no_grad():
        conv.weight.mul_(2)
    made.model(IMAGES * 3)
    assert float(conv.input_quantizer.scale) == frozen
    end()
    assert torch.allclose(conv.weight_quantizer.scale, conv.weight.detach().abs().amax((1, 2, 3)) / 127)
    assert not any(getattr(m, "follows", False) for m in made.model.modules())


def test_a_changed_task_is_refused(tmp_path: Path) -> None:
    torch_qat.save(quantised(), tmp_path / "q.safetensors", tmp_path / "q.json")

    class Other(qat_models.Task):
        def model(self) -> nn.Module:
            return qat_models.UNet()

    with pytest.raises(ArtifactError, match=r"q\.safetensors.*not the one that was quantised"):
        torch_qat.load_quantised(Other(), tmp_path / "q.safetensors", tmp_path / "q.json")


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    weights, table = tmp_path / "q.safetensors", tmp_path / "q.json"
    torch_qat.save(quantised(), weights, table)
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ArtifactError, match=r"q\.safetensors.*not readable safetensors"):
        torch_qat.load_quantised(qat_models.Task(), weights, table)
    weights.write_bytes(whole)
    table.write_text('{"schema": "other"}')
    with pytest.raises(ArtifactError, match=r"q\.json"):
        torch_qat.load_quantised(qat_models.Task(), weights, table)


def test_a_weight_that_is_not_finite_is_never_stored(tmp_path: Path) -> None:
    made = quantised()
    with torch.no_grad():
        made.model.head.bias[3] = float("inf")
    with pytest.raises(StageError, match=r"head\.bias: not finite"):
        torch_qat.save(made, tmp_path / "q.safetensors", tmp_path / "q.json")
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_told_in_one_line(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
    try:
        with pytest.raises(StageError, match="cannot write the quantised model") as caught:
            torch_qat.save(quantised(), tmp_path / "q.safetensors", tmp_path / "q.json")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "\n" not in str(caught.value)


def run_stage(tmp_path: Path, **settings: object) -> tuple[StageResult, Path, list[str]]:
    (tmp_path / "task.py").write_text("from qat_models import Task\n")
    torch.manual_seed(0)
    model = qat_models.ResNet()
    fit(model, qat_models.Task(), FitPlan(epochs=3, batch_size=32, lr=1e-2, evaluate=False), torch.device("cpu"))
    save_file(model.state_dict(), tmp_path / "weights.safetensors")
    out, scratch = tmp_path / "out", tmp_path / "scratch"
    out.mkdir(exist_ok=True)
    scratch.mkdir(exist_ok=True)
    notes: list[str] = []
    job = Job(
        stage="qat",
        settings=QatSettings(batch_size=32, calibration_samples=128, lr=1e-3, **settings),  # type: ignore[arg-type]
        task=TaskRef.parse("task.py:Task", tmp_path, {}),
        seed=0,
        inputs={"weights": Artifact.of("weights", tmp_path / "weights.safetensors")},
        out=out,
        scratch=scratch,
        progress=lambda _label: contextlib.nullcontext(NoProgress()),
        note=notes.append,
    )
    return qat.STAGE.run(job), out, notes


def test_the_stage_fine_tunes_and_its_files_load(tmp_path: Path) -> None:
    result, out, _ = run_stage(tmp_path, epochs=2)
    assert result.summary["quantised_layers"] == 7 and result.summary["skips"] == 2
    model = torch_qat.load_quantised(
        qat_models.Task(), *(out / result.artifacts[k] for k in ("qat-weights", "quantizers"))
    )
    images, targets = qat_models.Task().test_data().tensors
    with torch.no_grad():
        assert float((model(images).argmax(1) == targets).float().mean()) >= 0.95


def test_zero_epochs_is_calibration_only_and_the_stage_is_repeatable(tmp_path: Path) -> None:
    digests = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        result, out, _ = run_stage(tmp_path / name, epochs=0)
        assert result.summary["loss"] is None
        digests.append([Artifact.of("x", out / f).sha256 for f in result.artifacts.values()])
    assert digests[0] == digests[1]


def test_the_stage_tells_what_it_left_out(tmp_path: Path) -> None:
    result, _, notes = run_stage(tmp_path, epochs=0, exclude=("head",))
    assert result.summary["unquantised"] == ["head"]
    assert "head: not quantised: excluded by the user" in notes


def test_an_interrupted_fine_tuning_goes_on_bit_by_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    whole.mkdir()
    cut.mkdir()
    _, out, _ = run_stage(whole, epochs=2)
    calls = 0
    metrics = qat_models.Task.metrics

    def interrupted(self: qat_models.Task, outputs: object, targets: object) -> object:
        nonlocal calls
        calls += 1
        if calls == 2:  # after the second epoch's training, before its state is kept
            raise KeyboardInterrupt
        return metrics(self, outputs, targets)  # type: ignore[arg-type]

    monkeypatch.setattr(qat_models.Task, "metrics", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_stage(cut, epochs=2)
    assert not list((cut / "out").iterdir())
    monkeypatch.setattr(qat_models.Task, "metrics", metrics)
    _, again, notes = run_stage(cut, epochs=2)
    assert any("resumed after epoch 1 of 2" in note for note in notes)
    for name in ("qat.safetensors", "quantizers.json"):
        assert (again / name).read_bytes() == (out / name).read_bytes()


@pytest.mark.gpu
@pytest.mark.parametrize("backend", ["native", "modelopt"])
def test_on_a_gpu_the_same_placement_and_close_scales(backend: str, tmp_path: Path) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no NVIDIA GPU")
    tables = []
    for device in ("cpu", "cuda"):
        (tmp_path / device).mkdir()
        _, out, _ = run_stage(tmp_path / device, epochs=0, backend=backend, device=device)
        tables.append(json.loads((out / "quantizers.json").read_text()))
    assert tables[0]["placement"] == tables[1]["placement"]
    for ours, theirs in zip(tables[0]["quantizers"], tables[1]["quantizers"], strict=True):
        assert theirs["scale"] == pytest.approx(ours["scale"], rel=1e-2)
