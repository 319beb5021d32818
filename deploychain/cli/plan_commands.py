"""Commands: plan, and its relatives."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from deploychain import console
from deploychain.cli.app import app


class _DefaultToMake(typer.core.TyperGroup):
    """``plan model.onnx`` is ``plan make model.onnx``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["make", *args]
        return super().parse_args(ctx, args)


plan_app = typer.Typer(
    cls=_DefaultToMake,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Decide which nodes of an ONNX model may run in FP16, BF16 or INT8, and convert it.",
)
app.add_typer(plan_app, name="plan", short_help="Decide which nodes may run in FP16 or INT8.")

_MODEL = typer.Argument(..., metavar="MODEL", help="ONNX model in FP32; for int8 also with Q/DQ.")
_DATA = typer.Option(..., "--data", help="npz: one array per input, named after it; optional `targets`.")
_SAMPLES = typer.Option(None, "--samples", min=1, help="Only the first N samples of the data.")
_JSON = typer.Option(False, "--json", help="Print one JSON object.")


@plan_app.command("make")
def make_command(
    model: Path = _MODEL,
    data: Path = _DATA,
    output: Path = typer.Option(None, "-o", "--output", help="Default: MODEL.<precision>.onnx."),
    precision: str = typer.Option("fp16", "--precision", help="fp16, bf16 or int8."),
    target: str = typer.Option("tensorrt-rtx", "--target", help="tensorrt-10, tensorrt-11 or tensorrt-rtx."),
    max_drop: float = typer.Option(None, "--max-drop", min=0.0, help="Search: points of top-1, or % output error."),
    saved: Path = typer.Option(None, "--plan", help="Apply this plan file instead of deciding."),
    pin: list[str] = typer.Option([], "--pin", help="PATTERN=PRECISION for node names; repeat."),
    data_max: float = typer.Option(512.0, "--data-max", help="Nodes whose values exceed it stay FP32."),
    samples: int = _SAMPLES,
    budget: int = typer.Option(200, "--budget", min=2, help="Model evaluations of a search at most."),
    prove: bool = typer.Option(True, "--prove/--no-prove", help="Prove FP32 nodes by building (tensorrt-rtx)."),
    calibration: str = typer.Option("percentile", "--calibration", help="int8 of an FP32 model: max, percentile, mse."),
    exclude: list[str] = typer.Option([], "--exclude", help="Node name pattern that int8 leaves out; repeat."),
    plan_to: Path = typer.Option(None, "--save-plan", help="Plan file; default OUTPUT.plan.yaml."),
    json_: bool = _JSON,
) -> None:
    """Plan and convert MODEL (`deploychain plan MODEL` for short).

    Exit 1: no plan keeps --max-drop, or the converted model has errors left (of kind qdq or guard).
    """
    from deploychain.report.plan import print_plan
    from deploychain.stages.plan_file import FileRequest, parse_method, parse_pins, parse_target, plan_file

    request = FileRequest(
        model=model,
        data=data,
        precision=precision,
        output=output,
        target=parse_target(target),
        max_drop=max_drop,
        saved=saved,
        pins=parse_pins(pin),
        data_max=data_max,
        samples=samples,
        budget=budget,
        prove_guards=prove,
        plan_file=plan_to,
        calibration=parse_method(calibration),
        exclude=tuple(exclude),
    )
    with console.progress("plan") as progress:
        result = plan_file(request, lambda step, done, total: progress.update(done, total, step=step))
    if json_:
        console.print_json(result.document())
    else:
        print_plan(result.plan, result.notes, [str(p) for p in (result.output, result.plan_file, *result.texts)])
    if not result.ok:
        raise typer.Exit(1)


@plan_app.command("sensitivity")
def sensitivity_command(
    model: Path = _MODEL,
    data: Path = _DATA,
    precision: str = typer.Option("fp16", "--precision", help="fp16, bf16 or int8."),
    by: str = typer.Option("node", "--by", help="node or module."),
    budget: int = typer.Option(401, "--budget", min=1, help="Model evaluations at most."),
    samples: int = _SAMPLES,
    json_: bool = _JSON,
) -> None:
    """What each node or module costs: alone in low precision, and as the only one spared from it."""
    from deploychain.records import to_json
    from deploychain.report.plan import print_sensitivity
    from deploychain.stages.plan_file import sensitivity_of

    with console.progress("sensitivity") as progress:
        table, of = sensitivity_of(
            model,
            data,
            precision,
            by,
            budget,
            samples,
            lambda step, done, total: progress.update(done, total, step=step),
        )
    if json_:
        console.print_json({"of": of, **to_json(table)})
    else:
        print_sensitivity(table, of)


@plan_app.command("check")
def check_command(
    model: Path = typer.Argument(..., metavar="MODEL", help="ONNX model with Q/DQ, whoever made it."),
    fix: bool = typer.Option(False, "--fix", help="Repair what is mechanical, into --output."),
    output: Path | None = typer.Option(None, "-o", "--output", help="Default: MODEL.fixed.onnx."),
    json_: bool = _JSON,
) -> None:
    """Check a Q/DQ model against TensorRT's contract. Exit 1: an error is left."""
    from deploychain.records import to_json
    from deploychain.report.plan import print_findings
    from deploychain.stages.plan_file import check_model

    if output is not None and not fix:
        raise typer.BadParameter("it is written by --fix only", param_hint="-o")
    target = (output or model.with_suffix(".fixed.onnx")) if fix else None
    findings, repaired = check_model(model, target)
    left = [f for f in findings if f.severity == "error" and f not in repaired]
    if json_:
        console.print_json(
            {"findings": to_json(findings), "repaired": to_json(repaired), "output": str(target) if target else None}
        )
    else:
        print_findings(findings)
        if target is not None:
            console.out(f"repaired: {len(repaired)}, written: {target}")
    if left:
        raise typer.Exit(1)


@plan_app.command("diff")
def diff_command(
    before: Path = typer.Argument(..., help="A plan file."),
    after: Path = typer.Argument(..., help="Another plan file."),
    json_: bool = _JSON,
) -> None:
    """The nodes that two plans treat differently. Exit 1 when there are any."""
    from deploychain.plan import diff, read_plan
    from deploychain.records import to_json
    from deploychain.report.plan import print_changes

    changes: Sequence[Any] = diff(read_plan(before), read_plan(after))
    if json_:
        console.print_json({"changes": to_json(changes)})
    else:
        print_changes(changes)
    if changes:
        raise typer.Exit(1)


@plan_app.command("attribute")
def attribute_command(
    run: Path = typer.Argument(..., help="The folder of a finished run."),
    pipeline: Path | None = typer.Option(None, "--pipeline", help="pipeline.yaml: its task's data are used."),
    data: Path | None = typer.Option(None, "--data", help="npz of inputs, instead of a pipeline."),
    stage: str = typer.Option("", "--stage", help="Look into this step instead of the worst one."),
    budget: int = typer.Option(201, "--budget", min=1, help="Model evaluations at most."),
    samples: int = typer.Option(64, "--samples", min=1, help="Samples of the data."),
    json_: bool = _JSON,
) -> None:
    """Where accuracy went: the step of the chain that lost most, and in it the nodes that lost most."""
    from deploychain.records import to_json
    from deploychain.report.plan import print_attribution
    from deploychain.stages.attribution import attribute, data_of

    with console.progress("attribute") as progress:

        def tell(step: str, done: int, total: int) -> None:
            progress.update(done, total, step=step)

        found = attribute(run, data_of(pipeline, data, samples), stage=stage, budget=budget, progress=tell)
    if json_:
        console.print_json(to_json(found))
    else:
        print_attribution(found)
