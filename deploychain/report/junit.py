"""JUnit XML of a gate: one test case a check, so that any CI shows what was judged and what fell.

The dialect is the common ground of the readers: one suite, counts on both levels, `type` and `message` on each outcome.
"""

from __future__ import annotations

from xml.etree import ElementTree

from deploychain.report.text import shorten, visible
from deploychain.verdicts import Check, GateResult, Status

_MESSAGE = 2000


def outcome(check: Check) -> str:
    """passed, failure, error or skipped. What was not measured is an error; what decides nothing is skipped."""
    if check.status is Status.PASS:
        return "passed"
    if check.severity == "warning" or check.status in (Status.WAIVED, Status.NOTE):
        return "skipped"
    return "error" if check.status in (Status.INCOMPLETE, Status.NOT_COMPARABLE) else "failure"


def render(result: GateResult) -> str:
    """The XML document. An inconclusive check counts as a failure, or is skipped where the policy only warns."""
    cases = [(check, _outcome(check, result)) for check in result.checks]
    count = {kind: str(sum(found == kind for _, found in cases)) for kind in ("failure", "error", "skipped")}
    totals = {"tests": str(len(cases)), "failures": count["failure"], "errors": count["error"], "disabled": "0"}
    root = ElementTree.Element("testsuites", {**totals, "time": "0"})
    attributes = {"name": "deploychain gate", **totals, "skipped": count["skipped"], "time": "0"}
    suite = ElementTree.SubElement(root, "testsuite", attributes)
    used: dict[str, int] = {}
    for check, found in cases:
        name = shorten(visible(" ".join(filter(None, (check.kind, check.metric, check.node)))), 200)
        group = f"gate.{shorten(visible(check.stage), 100) or 'run'}"
        key = f"{group} {name}"
        used[key] = used.get(key, 0) + 1
        if used[key] > 1:
            name = f"{name} ({used[key]})"
        case = ElementTree.SubElement(suite, "testcase", {"classname": group, "name": name, "time": "0"})
        message = shorten(visible(check.message), _MESSAGE)
        if found == "passed":
            ElementTree.SubElement(case, "system-out").text = message
            continue
        made = ElementTree.SubElement(case, found, {"type": check.status.value, "message": message})
        made.text = visible(check.look) or None
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _outcome(check: Check, result: GateResult) -> str:
    if check.status is Status.INCONCLUSIVE and result.on_inconclusive == "warn":
        return "skipped"
    return outcome(check)
