"""Stage `qat`: from FP32 weights to a fake-quantised model by TensorRT's Q/DQ rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from deploychain.console import Progress
from deploychain.job import Job, Stage, StageResult
from deploychain.settings import QatSettings

if TYPE_CHECKING:
    from deploychain.backends.torch_qat import Quantised
    from deploychain.task import Task

WEIGHTS_FILE = "qat.safetensors"
TABLE_FILE = "quantizers.json"


def run(job: Job[QatSettings]) -> StageResult:
    """Fold, place quantisers, calibrate, fine-tune, write state and table.

    Raises:
        StageError: nothing to quantise, an exclusion pattern matches nothing, or values are not finite.
        CapabilityError: modelopt or a GPU is asked for and not there.
    """
    from deploychain.backends import torch_qat
    from deploychain.backends.torch_checkpoint import ResumeStore
    from deploychain.backends.torch_data import seed_everything
    from deploychain.backends.torch_device import resolve_device
    from deploychain.backends.torch_model import build_model, require_fp32
    from deploychain.backends.torch_train import FitPlan, fit

    settings = job.settings
    task = job.need_task().load()
    seed_everything(job.seed)
    device = resolve_device(settings.device)
    model = build_model(task, require_fp32(job.input("weights")))
    example = next(_inputs(task, job.seed, settings, torch_qat.EXAMPLE_SAMPLES))
    quantised = torch_qat.prepare(model, example, settings.exclude, torch_qat.quantisers_of(settings.backend))
    for line in quantised.notes():
        job.note(line)
    model.to(device)
    with job.progress("qat: calibrate") as progress:
        batches = _inputs(task, job.seed, settings, settings.calibration_samples, progress)
        ratios = torch_qat.calibrate(quantised, batches, settings.calibration, settings.percentile, device)
    loss = None
    if settings.epochs:
        after_step, end = torch_qat.follow_until(quantised, ratios, settings.freeze_ranges_after)
        plan = FitPlan(
            epochs=settings.epochs,
            batch_size=settings.batch_size,
            optimizer=settings.optimizer,
            lr=settings.lr,
            weight_decay=settings.weight_decay,
            threads=settings.threads,
            seed=job.seed,
        )
        with job.progress("qat: fine-tune") as progress:
            result = fit(
                model,
                task,
                plan,
                device,
                progress=progress,
                note=job.note,
                store=ResumeStore(job.scratch, job.note),
                after_step=after_step,
            )
        end()
        loss = result.log.epochs[-1].loss
        check = min(settings.calibration_samples, torch_qat.CHECK_SAMPLES)
        torch_qat.measure_clipping(quantised, _inputs(task, job.seed, settings, check), device)
    torch_qat.save(quantised, job.out / WEIGHTS_FILE, job.out / TABLE_FILE)
    return StageResult({"qat-weights": WEIGHTS_FILE, "quantizers": TABLE_FILE}, _summary(quantised, loss))


def _inputs(
    task: Task, seed: int, settings: QatSettings, samples: int, progress: Progress | None = None
) -> Iterator[Any]:
    """Batches of calibration inputs, in the order of the dataset."""
    from deploychain.backends.torch_data import make_loader, split_batch

    loader = make_loader(task, "calibration", min(settings.batch_size, samples), seed, limit=samples)
    for done, batch in enumerate(loader):
        yield split_batch(batch)[0]
        if progress is not None:
            progress.update(done + 1, len(loader))


def _summary(quantised: Quantised, loss: float | None) -> dict[str, Any]:
    placement = quantised.placement
    return {
        "backend": quantised.quantisers.name,
        "calibration": quantised.method,
        "quantised_layers": len(placement.layers),
        "activation_quantisers": len(quantised.activations),
        "skips": sum(s.kind == "skip" for s in placement.sites),
        "concats": len({(s.body, s.node) for s in placement.sites if s.kind == "concat"}),
        "folded": len(placement.folded),
        "unquantised": sorted(placement.skipped),
        "largest_clipped_share": max(quantised.clipped.values(), default=0.0),
        "loss": loss,
    }


STAGE = Stage(
    name="qat",
    version=1,
    requires=("weights",),
    accepts=(),
    produces=("qat-weights", "quantizers"),
    facts=("torch", "modelopt"),
    uses_task=True,
    run=run,
    needs=("torch", "safetensors"),
)
