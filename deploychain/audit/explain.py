"""`deploychain audit --explain R08`: rule, popular belief, truth, experiment."""

from __future__ import annotations

from deploychain.audit.context import Rule
from deploychain.audit.rules import load_rules
from deploychain.errors import ConfigError


def find_rule(name: str) -> Rule:
    """A rule by id ("R08", "r8") or name ("half-params-in-training").

    Raises:
        ConfigError: there is no such rule.
    """
    rules = load_rules()
    wanted = name.strip().upper()
    if wanted.startswith("R") and wanted[1:].isdigit():
        wanted = f"R{int(wanted[1:]):02d}"
    rule = rules.get(wanted) or next((r for r in rules.values() if r.name == name.strip().lower()), None)
    if rule is None:
        raise ConfigError(f"there is no rule {name!r}", where="--explain", remedy="rules are R01 to R28")
    return rule


def explain(rule: Rule) -> list[str]:
    """The explanation of one rule, as lines."""
    return [
        f"{rule.id} {rule.name}: {rule.title}",
        "",
        *_section("Looked for in", rule.how),
        *_section("Often said", rule.belief),
        *_section("Measured", rule.truth),
        *_section("Experiment", f"{rule.experiment} Run it: deploychain audit --explain {rule.id} --demo"),
        "Wrong:",
        *(f"    {line}" for line in rule.bad.splitlines()),
        "Right:",
        *(f"    {line}" for line in rule.good.splitlines()),
    ]


def _section(title: str, text: str) -> list[str]:
    import textwrap

    return [f"{title}:", *textwrap.wrap(text, 96, initial_indent="    ", subsequent_indent="    "), ""]
