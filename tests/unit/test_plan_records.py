"""The plan file: written, read, compared, applied; and the options for weakly typed builders."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploychain.errors import ArtifactError, ConfigError
from deploychain.plan import Finding, ModelPlan, NodePlan, Plan, apply_plan, diff, read_plan, write_plan
from deploychain.plan_flags import polygraphy_script, trtexec_options


def node(name: str, precision: str = "fp16", **more: object) -> NodePlan:
    return NodePlan(name, "Conv", "layer", precision, "because", **more)  # type: ignore[arg-type]


def plan(*nodes: NodePlan, pins: dict[str, str] | None = None) -> Plan:
    finding = Finding("/a", None, "overflow", "error", "too large", "scale")
    return Plan({"fp16": ModelPlan("fp16", nodes, (finding,), drop=0.25, drop_of="top1, points")}, pins or {})


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_what_is_written_is_read(tmp_path: Path, suffix: str) -> None:
    made = plan(node("/a", "fp32", abs_max=7e4, guard="held"), node("/b: c # d"), pins={"/head/*": "fp32"})
    path = tmp_path / f"plan.{suffix}"
    write_plan(made, path)
    assert read_plan(path) == made
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("schema: other/1\nmodels: {}\n", "other/1"),
        ("- a list\n", "list"),
        ("schema: [unclosed\n", "cannot be read"),
        ("schema: deploychain.plan/1\npin: {'/a': fp7}\nmodels: {}\n", "fp7"),
        ("schema: deploychain.plan/1\nmodels: {fp16: {precision: fp16, nodes: [{name: 3}]}}\n", "models.fp16.nodes.0"),
        ("schema: !!python/object/apply:os.system ['true']\n", "cannot be read"),
    ],
)
def test_a_wrong_file_is_told_with_its_key(tmp_path: Path, text: str, word: str) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    with pytest.raises(ArtifactError) as caught:
        read_plan(path)
    assert word in str(caught.value)
    assert str(path) in str(caught.value)


def test_difference_of_two_plans() -> None:
    changes = diff(plan(node("/a", "fp32"), node("/b"), node("/gone")), plan(node("/a"), node("/b"), node("/new")))
    assert [(c.node, c.before, c.after) for c in changes] == [
        ("/a", "fp32", "fp16"),
        ("/new", None, "fp16"),
        ("/gone", "fp16", None),
    ]


def test_saved_precisions_win_and_pins_win_over_them() -> None:
    saved = plan(node("/a", "fp32"), node("/b"), node("/c", "int8")).models["fp16"]
    here = (node("/a"), node("/b"), node("/c", "int8"))
    kept = apply_plan(here, saved, {})
    assert [n.precision for n in kept] == ["fp32", "fp16", "int8"]
    pinned = apply_plan(here, saved, {"/*": "fp32", "/a": "fp16"})
    assert [n.precision for n in pinned] == ["fp16", "fp32", "int8"]
    assert pinned[0].reason == "pinned by '/a'"
    # A pin takes the quantisers out of the model before the saved plan is applied.
    unquantised = apply_plan((*here[:2], node("/c")), saved, {"/c": "fp16"})
    assert [n.precision for n in unquantised] == ["fp32", "fp16", "fp16"]
    with pytest.raises(ConfigError, match="the plan says int8 for '/c'"):
        apply_plan((*here[:2], node("/c")), saved, {})


@pytest.mark.parametrize("names", [("/a", "/b", "/new"), ("/a",)])
def test_a_plan_of_another_model_is_refused(names: tuple[str, ...]) -> None:
    saved = plan(node("/a"), node("/b")).models["fp16"]
    with pytest.raises(ConfigError):
        apply_plan([node(n) for n in names], saved, {})


def test_options_name_every_fp32_node_that_can_be_written() -> None:
    made = plan(
        node("/a", "fp32", rule="overflow"),
        node("/b"),
        node("/odd,name", "fp32", rule="overflow"),
        node("/shape", "int64", rule="integer"),
    ).models["fp16"]
    command, unwritten = trtexec_options(made, "model.onnx")
    assert "--layerPrecisions=/a:fp32" in command
    assert "odd" not in command
    assert unwritten == ("/odd,name",)
    script = polygraphy_script(made)
    assert "'/odd,name'" in script
    compile(script, "script.py", "exec")


def test_a_hostile_node_name_stays_a_string_in_the_script() -> None:
    made = plan(node('x"""\nimport os\nos.abort()\n"""', "fp32", rule="overflow")).models["fp16"]
    tree = compile(polygraphy_script(made), "script.py", "exec")
    assert "os" not in tree.co_names


def test_no_fp32_node_needs_no_constraint() -> None:
    command, _ = trtexec_options(plan(node("/a")).models["fp16"], "m.onnx")
    assert "precisionConstraints" not in command
    assert "--fp16" in command
