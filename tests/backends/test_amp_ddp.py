"""Two gloo processes, a non-finite gradient on rank 1: DDP stays in step, a loop outside of it does not, and the monitor
names the rank."""

# ruff: noqa: E402, E501  (imports come after importorskip)
from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="runs torch.distributed")

from deploychain.audit.monitor_log import guilty_rank, read_log
from deploychain.backends.amp_demos_ddp import BAD_STEP, run_two_ranks

pytestmark = [
    pytest.mark.chain,
    pytest.mark.slow,
    pytest.mark.skipif(not torch.distributed.is_gloo_available(), reason="torch without gloo"),
]


def test_ddp_stays_in_step_and_the_monitor_names_the_rank(tmp_path: Path) -> None:
    log = tmp_path / "m.jsonl"
    first, second = run_two_ranks(["ddp"], where="gradient", log=log)["ddp"]
    assert first["skipped"] == second["skipped"] == [BAD_STEP]
    assert first["scale"] == second["scale"] == 2.0**9
    assert first["weights"] == second["weights"]
    logs = [tmp_path / f"m.rank{rank}.jsonl" for rank in (0, 1)]
    assert [read_log(path)[0]["rank"] for path in logs] == [0, 1]
    # Both ranks hold inf after the average; only rank 1 made it.
    assert guilty_rank(logs) == {"rank": 1, "step": BAD_STEP, "kind": "gradient", "where": "2.weight"}
    assert (
        first["summary"]["skips"][0]["cause"].endswith("another rank may have sent them)")
        or "level" in first["summary"]["skips"][0]["cause"]
    )


def test_outside_ddp_one_rank_steps_and_the_weights_part(tmp_path: Path) -> None:
    log = tmp_path / "m.jsonl"
    first, second = run_two_ranks(["no ddp"], where="gradient", log=log)["no ddp"]
    assert (first["skipped"], second["skipped"]) == ([], [BAD_STEP])
    assert first["scale"] == 2 * second["scale"]
    assert first["weights"] != second["weights"]
    found = guilty_rank([tmp_path / "m.rank0.jsonl", tmp_path / "m.rank1.jsonl"])
    assert found is not None and found["rank"] == 1
