"""Start-up and no-change re-run, as ratios to an empty Python process: machines differ, ratios travel.

Prints one JSON object. CPU seconds are user + system time of the whole process, from the operating system.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def measure(command: list[str]) -> tuple[float, float]:
    """(CPU seconds, wall seconds) of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime), wall


def paired(commands: dict[str, list[str]], runs: int = 11) -> dict[str, dict[str, float]]:
    """Run the commands in turn, so that a busy moment hits all of them; medians, and CPU ratio to the first."""
    cpu: dict[str, list[float]] = {name: [] for name in commands}
    wall: dict[str, list[float]] = {name: [] for name in commands}
    for index in range(runs + 1):
        for name, command in commands.items():
            c, w = measure(command)
            if index:  # the first round warms the file cache
                cpu[name].append(c)
                wall[name].append(w)
    base = next(iter(commands))
    return {
        name: {
            "cpu_s": round(statistics.median(cpu[name]), 4),
            "wall_s": round(statistics.median(wall[name]), 4),
            "cpu_ratio": round(statistics.median(a / b for a, b in zip(cpu[name], cpu[base], strict=True)), 2),
        }
        for name in commands
    }


def main() -> None:
    deploychain = [sys.executable, "-m", "deploychain"]
    pipeline = str(ROOT / "pipelines" / "digits" / "pipeline.yaml")
    with tempfile.TemporaryDirectory() as folder:
        run = [*deploychain, "run", pipeline, "--run-dir", folder]
        print("running the digits chain once ...", file=sys.stderr)
        subprocess.run(run, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "2"})
        result = paired(
            {
                "python -c pass": [sys.executable, "-c", "pass"],
                "import typer, rich, pydantic, yaml": [
                    sys.executable, "-c", "import typer, rich.table, pydantic, yaml",
                ],
                "deploychain --help": [*deploychain, "--help"],
                "deploychain run (no change)": run,
                "deploychain run (no change) --json": [*run, "--json"],
                "deploychain run --dry-run": [*run, "--dry-run"],
            }
        )  # fmt: skip
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
