"""What a run did: a row per stage, and the tables that compare published."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from deploychain.artifact import sha256_of
from deploychain.records import RUN_SCHEMA, to_json
from deploychain.workspace import Record, Workspace

NOT_SELECTED = "not selected"
Status = Literal["ran", "cached", "not-run", "failed", "stale", "waiting"]


@dataclass
class StageRow:
    """What happened, or would happen, to one stage."""

    name: str
    status: Status
    reason: str = ""
    seconds: float | None = None
    record: Record | None = None

    def to_dict(self) -> dict[str, Any]:
        artifacts = self.record.artifacts if self.record and self.status in ("ran", "cached") else ()
        return {
            "name": self.name,
            "status": self.status,
            "seconds": self.seconds,
            "reason": self.reason,
            "artefacts": [{"path": str(a.path), "kind": a.kind, "sha256": a.sha256} for a in artifacts],
            "summary": dict(self.record.summary) if artifacts and self.record else {},
            "notes": list(self.record.notes) if artifacts and self.record else [],
        }


@dataclass
class RunResult:
    """Outcome of one `run`."""

    run_dir: Path
    stages: list[StageRow]
    table: list[dict[str, Any]] = field(default_factory=list)
    layers: dict[str, dict[str, Any]] = field(default_factory=dict)
    pipeline: Path | None = None  # the file that was run

    @property
    def ok(self) -> bool:
        """Everything that was asked for is up to date: a stage that was not selected was not asked for."""
        return all(row.status in ("ran", "cached") or row.reason == NOT_SELECTED for row in self.stages)

    def to_dict(self) -> dict[str, Any]:
        made: dict[str, Any] = to_json(
            {
                "schema": RUN_SCHEMA,
                "run_dir": str(self.run_dir),
                "pipeline": str(self.pipeline.resolve()) if self.pipeline else None,
                "ok": self.ok,
                "stages": [row.to_dict() for row in self.stages],
                "table": self.table,
                "layers": self.layers,
            }
        )
        return made


def collect(workspace: Workspace, rows: list[StageRow], pipeline: Path) -> RunResult:
    """Assemble the tables from what compare (else evaluate) published."""
    by_stage = {row.name: row.record for row in rows if row.record and row.status in ("ran", "cached")}
    result = RunResult(workspace.root, rows, pipeline=pipeline)
    compared = by_stage.get("compare")
    source = compared or by_stage.get("evaluate")
    if source is None:
        return result
    kind = "comparison" if compared else "eval-reports"
    artifact = source.by_kind().get(kind)
    if artifact is None:
        return result
    content = json.loads(artifact.open().read_text(encoding="utf-8"))  # verified: these numbers are shown
    hidden = {"per_sample", "sample_classes"}  # long; they stay in the file
    result.table = [{k: v for k, v in row.items() if k not in hidden} for row in content.get("evals", [])]
    for engine in content.get("engines", []):
        if engine.get("summary"):
            result.layers[engine["name"]] = {"total": engine["summary"]["compute_layers"], **engine["summary"]}
    if compared:
        # By content: after a change of settings and back, the copy is newer than the result and still another one.
        copy = workspace.root / "comparison.json"
        if not copy.is_file() or sha256_of(copy) != artifact.sha256:
            part = workspace.root / ".comparison.json.part"
            shutil.copyfile(artifact.path, part)
            part.replace(copy)
    return result
