"""Commands of the gate: gate (check, accept, history) and report."""

from __future__ import annotations

import os
from pathlib import Path

import typer
from typer.core import TyperGroup

from deploychain import console
from deploychain.cli.app import app


class _CheckByDefault(TyperGroup):
    """``gate RUN`` is ``gate check RUN``: what does not name a command names a run."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["check", *args]
        return super().parse_args(ctx, args)


gate = typer.Typer(
    cls=_CheckByDefault,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Judge a run against limits and the accepted baseline. `gate RUN` is short for `gate check RUN`.",
)
app.add_typer(gate, name="gate")

RUN = typer.Argument(..., help="Run folder, or a comparison.json.")
BASELINE = typer.Option(None, "--baseline", help="Baseline file. Default: as the limits name it.")
LIMITS = typer.Option(
    None, "--limits", help="gate.yaml or pipeline.yaml. Default: here, in the run, then beside its pipeline."
)


@gate.command("check")
def check_command(
    run: Path = RUN,
    baseline: Path | None = BASELINE,
    no_baseline: bool = typer.Option(False, "--no-baseline", help="Judge this run alone."),
    limits: Path | None = LIMITS,
    expect: list[str] = typer.Option(
        [], "--expect-change", metavar="FACT", help="tensorrt, device, flags or pipeline: the change under test."
    ),
    inconclusive: str | None = typer.Option(None, "--on-inconclusive", metavar="fail|warn", help="Exit code 5, or 0."),
    out: Path | None = typer.Option(None, "--out", help="Write JSON, JUnit, SARIF, Markdown, metrics and HTML here."),
    github: bool = typer.Option(False, "--github", help="Annotations, and the job summary of this step."),
    json_: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Exit code 0 pass, 1 regression, 2 configuration, 3 baseline, 4 not measured, 5 inconclusive."""
    from deploychain.gate.session import judge_run
    from deploychain.report.files import append_summary, write_outputs
    from deploychain.report.gate_table import print_gate
    from deploychain.report.machine import workflow_commands

    if json_:
        console.set_quiet(True)
    session = judge_run(
        run,
        baseline=baseline,
        without_baseline=no_baseline,
        limits=limits,
        expect_change=tuple(expect),
        on_inconclusive=inconclusive,
    )
    name, lines = session.source.name, session.source.lines
    if out is not None:
        for path in write_outputs(out, session.result, session.comparison, limits_file=name, lines=lines):
            console.note(f"wrote {path}")
    if json_:
        console.print_json(session.result.to_dict())
    else:
        print_gate(session.result)
        for line in workflow_commands(session.result, limits_file=name, lines=lines) if github else ():
            console.out(line)
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if github and summary:
        append_summary(Path(summary), session.result)
    raise typer.Exit(session.result.exit_code)


@gate.command("accept")
def accept_command(
    run: Path = RUN,
    reason: str = typer.Option(..., "--reason", help="Why the new values are right; kept in the baseline."),
    baseline: Path | None = BASELINE,
    limits: Path | None = LIMITS,
    author: str | None = typer.Option(None, "--author", help="Default: git's user."),
    json_: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Make a run the baseline, and record who decided so, when and why."""
    from deploychain.gate.session import accept_run
    from deploychain.records import to_json
    from deploychain.report.gate_table import print_accepted

    entry, path = accept_run(run, reason=reason, baseline=baseline, limits=limits, author=author)
    if json_:
        console.print_json({"baseline": str(path), "entry": to_json(entry)})
    else:
        print_accepted(entry, str(path))


@gate.command("verify")
def verify_command(files: list[Path] = typer.Argument(..., help="Baseline files.")) -> None:
    """Exit with 3 if a baseline is damaged or was edited by hand (for pre-commit)."""
    from deploychain.gate.baseline import load

    for file in files:
        history = load(file).history
        console.out(f"{file}: as accepted on {history[-1].date[:10]} by {history[-1].author}")


@gate.command("history")
def history_command(
    baseline: Path | None = BASELINE,
    limits: Path | None = LIMITS,
    values: list[str] = typer.Option([], "--value", metavar="PATTERN", help="Only these: engine-int8/*."),
    json_: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Metrics over the accepted baselines."""
    from deploychain.gate.session import read_baseline
    from deploychain.records import to_json
    from deploychain.report.gate_table import print_history

    history = read_baseline(baseline, limits).history
    if json_:
        console.print_json({"history": to_json(history)})
    else:
        print_history(history, values)


@app.command("report", short_help="Write one HTML page about a run.")
def report_command(
    run: Path = RUN,
    out: Path | None = typer.Option(None, "-o", "--out", help="The HTML file. Default: report.html in the run folder."),
    baseline: Path | None = BASELINE,
    limits: Path | None = LIMITS,
    no_gate: bool = typer.Option(False, "--no-gate", help="Measurements only, no judgement."),
) -> None:
    """One self-contained HTML page: stages, errors, layers, the gate and its history."""
    from deploychain.gate.session import comparison_path, judge_for_report
    from deploychain.records import load_comparison
    from deploychain.report.files import write_text
    from deploychain.report.html import render

    comparison = load_comparison(comparison_path(run))
    result = None if no_gate else judge_for_report(run, baseline=baseline, limits=limits)
    target = out or comparison_path(run).with_name("report.html")
    console.out(f"wrote {write_text(target, render(comparison, result))}")
