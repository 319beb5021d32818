"""Whether a run may be compared with a baseline: what both were measured with."""

from __future__ import annotations

from deploychain.gate.baseline import Baseline
from deploychain.records import Comparison


def differences(comparison: Comparison, baseline: Baseline) -> dict[str, str]:
    """Facts that decide whether two measurements may be compared, and differ: fact -> sentence.

    An unknown data hash equals nothing, not even another unknown one.
    """
    now, then = comparison.provenance, baseline.provenance
    found: dict[str, str] = {}
    if now.data_sha256 is None or then.data_sha256 is None:
        which = "run" if now.data_sha256 is None else "baseline"
        found["data"] = f"the {which} does not say which test data it was measured on"
    elif now.data_sha256 != then.data_sha256:
        found["data"] = f"other test data ({then.data_sha256[:12]} in the baseline, {now.data_sha256[:12]} now)"
    if now.samples != then.samples:
        found["samples"] = f"{then.samples} test samples in the baseline, {now.samples} now"
    for name in ("device", "tensorrt", "pipeline"):
        a, b = getattr(then, name), getattr(now, name)
        if a != b:
            found[name] = f"{name} {a or 'unknown'} in the baseline, {b or 'unknown'} now"
    flags = [
        f"{key}={then.flags.get(key, 'absent')} -> {now.flags.get(key, 'absent')}"
        for key in sorted({*then.flags, *now.flags})
        if then.flags.get(key) != now.flags.get(key)
    ]
    if flags:
        found["flags"] = "flags differ: " + ", ".join(flags)
    turned = [m for m, way in comparison.directions.items() if baseline.directions.get(m, way) != way]
    if turned:
        found["directions"] = f"the better direction of {', '.join(turned)} was turned round"
    return found


def version_changes(comparison: Comparison, baseline: Baseline) -> list[str]:
    """Versions that differ: said, never refused."""
    now, then = comparison.provenance.versions, baseline.provenance.versions
    return [
        f"{name} {then.get(name, 'absent')} -> {now.get(name, 'absent')}"
        for name in sorted({*now, *then})
        if now.get(name) != then.get(name)
    ]
