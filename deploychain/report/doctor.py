"""The doctor's table for people."""

from __future__ import annotations

from deploychain import console
from deploychain.doctor import Diagnosis, Status

_STYLES = {Status.UNUSABLE: "bold red", Status.MISSING: "yellow"}


def print_diagnosis(diagnosis: Diagnosis) -> None:
    """Print what was found, what can be done here, and one line per thing that can be fixed."""
    # What is absent and costs nothing is not worth a colour.
    styles = {
        i: _STYLES[c.status]
        for i, c in enumerate(diagnosis.checks)
        if c.status is Status.UNUSABLE or (c.status is Status.MISSING and c.consequence)
    }
    console.table(
        ("check", "status", "found"),
        [(c.name, c.status.value, f"{c.found}\n{c.consequence}".strip()) for c in diagnosis.checks],
        styles=styles,
        ratio="found",
    )
    console.table(
        ("on this machine", "", "how"),
        [(a.name, "yes" if a.possible else "no", a.how) for a in diagnosis.abilities],
        styles={i: "yellow" for i, a in enumerate(diagnosis.abilities) if not a.possible},
        ratio="how",
    )
    fixes = [c for c in diagnosis.checks if c.fix]
    for check in fixes:
        console.out(f"{check.name}: {check.fix}")
    if not fixes:
        console.out("Nothing to fix.")
