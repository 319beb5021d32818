"""train: one AMP loop, in one process or several."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from deploychain.errors import StageError
from deploychain.job import Job, Stage, StageResult
from deploychain.records import to_json
from deploychain.settings import TrainSettings
from deploychain.stages.train_job import dump_job, restore_job

LOG_SCHEMA = "deploychain.train-log/1"
TIMES_SCHEMA = "deploychain.train-times/1"


def run(job: Job[TrainSettings]) -> StageResult:
    """Train the task's model and publish checkpoint, log and monitor.

    Under torchrun (WORLD_SIZE > 1) this is rank 0 of the processes that `announce` has gathered; else
    ``processes: N`` starts torchrun itself.

    Raises:
        StageError: the loss is not finite, the data has the wrong form, or a process failed.
        CapabilityError: the device is not there.
    """
    from deploychain.backends import torch_ddp

    _audit(job)
    ranks = torch_ddp.current()
    if ranks.world > 1:
        if job.settings.processes not in (1, ranks.world):
            job.note(f"torchrun started {ranks.world} processes; `processes: {job.settings.processes}` is not used")
        try:
            log = train(job)
            torch_ddp.wait_for_all()
            return _result(log, job.out)
        finally:
            torch_ddp.leave()
    if job.settings.processes > 1:
        from deploychain.backends.torch_launch import launch

        with job.progress("train") as progress:
            launch(
                job.settings.processes,
                "deploychain.stages.train_worker",
                dump_job(job),
                job.scratch,
                progress,
                job.note,
            )
        return _result(json.loads((job.out / "train-log.json").read_text(encoding="utf-8")), job.out)
    return _result(train(job), job.out)


def announce(job: Job[Any] | None) -> None:
    """Rank 0 under torchrun: tell the other processes which training will run, or that none will."""
    from deploychain.backends import torch_ddp

    torch_ddp.join()
    torch_ddp.broadcast_text(None if job is None else json.dumps(dump_job(job)))
    if job is None:
        torch_ddp.wait_for_all()
        torch_ddp.leave()


def follow() -> None:
    """Ranks above 0 under torchrun: take part in the training that rank 0 announces, if any; write nothing."""
    from deploychain.backends import torch_ddp

    torch_ddp.join()
    try:
        text = torch_ddp.broadcast_text(None)
        if text is not None:
            train(restore_job(json.loads(text)))
        torch_ddp.wait_for_all()
    finally:
        torch_ddp.leave()


def train(job: Job[TrainSettings]) -> dict[str, Any]:
    """Train in this process, as one of its group; rank 0 writes into ``job.out``. Returns the training log."""
    from deploychain.backends import torch_checkpoint, torch_data, torch_ddp, torch_device, torch_model, torch_train
    from deploychain.backends.torch_observe import Observer

    settings = job.settings
    ranks = torch_ddp.current()
    device = torch_device.resolve_device(settings.device, ranks.local_rank)
    precision, remark = torch_device.resolve_precision(settings.precision, device)
    if remark and ranks.writes:
        job.note(remark)
    task = job.need_task().load()
    torch_data.seed_everything(job.seed)
    model = torch_model.trainable_model(task)
    plan = torch_train.FitPlan.of(settings, precision=precision, seed=job.seed)
    store = torch_checkpoint.ResumeStore(job.scratch, job.note)
    observer = None
    if settings.monitor_every and ranks.writes:
        observer = Observer(job.scratch / "monitor", settings.monitor_every, job.note)
        if not (job.scratch / torch_checkpoint.INDEX).is_file():
            observer.forget()
    with job.progress("train") as progress:
        result = torch_train.fit(
            model,
            task,
            plan,
            device,
            progress=progress,
            note=job.note,
            store=store,
            ranks=ranks,
            watcher=observer,
        )
    log: dict[str, Any] = {
        "schema": LOG_SCHEMA,
        "precision": precision,
        "mixed_epochs": settings.mixed_epochs,
        "device": torch_device.describe_device(device, settings.threads),
        "tf32": torch_device.tf32_state(device),
        "processes": ranks.world,
        "seed": job.seed,
        "deterministic": settings.deterministic,
        "published": "weight average (EMA)" if settings.ema is not None else "last weights",
        "monitor": observer.findings() if observer is not None else [],
        **to_json(asdict(result.log)),
    }
    if ranks.world > 1:
        log["identical_weights"] = torch_ddp.identical(model)
        if not log["identical_weights"]:
            raise StageError(
                "the processes ended with different weights",
                remedy="train through the model that is given: parameters outside forward() are not synchronised",
            )
    if ranks.writes:
        torch_checkpoint.save_state(job.out / "checkpoint.pt", result.state)
        if observer is not None:
            observer.publish(job.out / "train-monitor.jsonl")
            for finding in log["monitor"]:
                job.note(f"monitor {finding['rule']} {finding['severity']}: {finding['where']}: {finding['message']}")
        (job.out / "train-log.json").write_text(json.dumps(log, indent=1), encoding="utf-8")
        # Apart from the log, which later stages read: a training repeated to the same bits leaves them up to date.
        times = {"schema": TIMES_SCHEMA, "resumed_from": result.resumed_from, "epochs": to_json(result.times)}
        (job.out / "train-times.json").write_text(json.dumps(times, indent=1), encoding="utf-8")
    return log


def _result(log: dict[str, Any], out: Path) -> StageResult:
    last = log["epochs"][-1]
    times = json.loads((out / "train-times.json").read_text(encoding="utf-8"))
    made = {"checkpoint": "checkpoint.pt", "train-log": "train-log.json", "train-times": "train-times.json"}
    if (out / "train-monitor.jsonl").is_file():
        made["train-monitor"] = "train-monitor.jsonl"
    summary = {
        "precision": log["precision"],
        "mixed_epochs": sum(e["precision"] != "fp32" for e in log["epochs"]),
        "device": log["device"],
        "processes": log["processes"],
        "epochs": len(log["epochs"]),
        "loss": last["loss"],
        "metrics": last["metrics"],
        "skipped_steps": len(log["skipped"]),
        "steps": log["step"],
        "scale": last["scale"],
        "images_per_second": times["epochs"][-1]["images_per_second"] if times["epochs"] else None,
        "resumed_from": times["resumed_from"],
    }
    return StageResult(made, summary)


def _audit(job: Job[TrainSettings]) -> None:
    """Tell what the static audit finds in the task's file. It never stops a training."""
    file = job.need_task().file
    if file is None:
        return
    try:
        from deploychain.audit.runner import audit_paths
        from deploychain.audit.settings import load_settings

        findings = audit_paths([file], load_settings(file)).findings
    except Exception as error:
        job.note(f"the audit of the task did not run: {type(error).__name__}: {error}")
        return
    for finding in findings:
        if finding.severity.value != "note":
            place = f"{Path(finding.path).name}:{finding.line}"
            job.note(f"audit {finding.rule} {finding.severity.value}: {place}: {finding.message} ({finding.fix})")


STAGE = Stage(
    name="train",
    version=1,
    requires=(),
    accepts=(),
    produces=("checkpoint", "train-log", "train-times", "train-monitor"),
    facts=("torch", "machine", "gpu"),
    uses_task=True,
    run=run,
    needs=("torch",),
)
