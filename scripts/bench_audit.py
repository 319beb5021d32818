"""The static audit, measured: the table of the labelled set, and the time for 1,000 files.

    PYTHONPATH=. python scripts/bench_audit.py [--files 1000] [--json] [PATH...]

Without PATH the 1,000 files are made from the labelled set: each snippet together with enough plain Python to reach the
size of an average source file (12 kB), so the time is that of real files and not of snippets. With PATH those files are
audited and the findings counted by rule.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from deploychain.audit.runner import audit_paths

SET = Path(__file__).parents[1] / "tests" / "audit_set"
LIBRARY = Path(__file__).parents[1] / "deploychain"


def labelled() -> list[dict[str, Any]]:
    """Per rule: planted, found; and the findings on sound snippets."""
    planted: Counter[str] = Counter()
    found: Counter[str] = Counter()
    false: Counter[str] = Counter()
    for file in sorted((SET / "planted").glob("*.py")):
        label = re.search(r"# expect: ([R\d, ]+)", file.read_text(encoding="utf-8"))
        wanted = set(label[1].replace(" ", "").split(",")) if label else set()
        got = {f.rule for f in audit_paths([file]).findings}
        planted.update(wanted)
        found.update(wanted & got)
        false.update(got - wanted)
    for file in sorted((SET / "sound").glob("*.py")):
        false.update(f.rule for f in audit_paths([file]).findings)
    return [{"rule": r, "planted": planted[r], "found": found[r], "false": false[r]} for r in sorted(planted | false)]


def make_files(folder: Path, count: int) -> None:
    snippets = [f.read_text(encoding="utf-8") for f in sorted(SET.rglob("*.py"))]
    filler = [f.read_text(encoding="utf-8") for f in sorted(LIBRARY.rglob("*.py"))]
    filler = [t for t in filler if 4_000 < len(t) < 20_000 and "from __future__" in t]
    for index in range(count):
        other = filler[index % len(filler)].replace("from __future__ import annotations\n", "", 1)
        text = snippets[index % len(snippets)] + "\n\n" + other
        (folder / f"m{index:05}.py").write_text(text, encoding="utf-8")


def timed(paths: list[Path]) -> dict[str, Any]:
    size = sum(f.stat().st_size for p in paths for f in ([p] if p.is_file() else p.rglob("*.py")))
    start = time.perf_counter()
    report = audit_paths(paths)
    seconds = time.perf_counter() - start
    rules = Counter(f"{f.rule} {f.severity.value}" for f in report.findings)
    return {
        "files": report.files,
        "megabytes": round(size / 1e6, 1),
        "seconds": round(seconds, 2),
        "findings": dict(sorted(rules.items())),
        "problems": len(report.problems),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    table = labelled()
    if args.paths:
        result = timed(args.paths)
    else:
        with tempfile.TemporaryDirectory() as name:
            make_files(Path(name), args.files)
            result = timed([Path(name)])
    if args.json:
        print(json.dumps({"set": table, "timed": result}, indent=2))
        return
    print("rule  planted  found  false")
    for row in table:
        print(f"{row['rule']}   {row['planted']:7} {row['found']:6} {row['false']:6}")
    total, hits = sum(r["planted"] for r in table), sum(r["found"] for r in table)
    sound = len(list((SET / "sound").glob("*.py")))
    wrong = sum(r["false"] for r in table)
    print(f"recall {hits}/{total} = {100 * hits / total:.1f} %, {wrong} false, {sound} sound snippets")
    print(f"{result['files']} files, {result['megabytes']} MB: {result['seconds']} s")


if __name__ == "__main__":
    main()
