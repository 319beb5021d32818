"""[tool.deploychain.audit] in pyproject.toml."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploychain.audit.finding import Severity
from deploychain.errors import ConfigError

_KEYS = frozenset({"select", "ignore", "fail-on", "exclude"})


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """Which rules run, which files are passed over, and what fails."""

    select: frozenset[str] = frozenset()  # empty: all
    ignore: frozenset[str] = frozenset()
    fail_on: Severity = Severity.ERROR
    exclude: tuple[str, ...] = ()

    def active(self, rules: Iterable[str]) -> tuple[str, ...]:
        return tuple(r for r in rules if (not self.select or r in self.select) and r not in self.ignore)


def load_settings(
    start: Path, *, select: str | None = None, ignore: str | None = None, fail_on: str | None = None
) -> AuditSettings:
    """Settings of the nearest pyproject.toml at or above `start`, overridden by the command line.

    Raises:
        ConfigError: an unknown rule, key, severity, or a pyproject.toml that is not TOML.
    """
    found, where = _table(start)
    unknown = sorted(set(found) - _KEYS)
    if unknown:
        raise ConfigError(f"unknown key {unknown[0]!r}", where=where, remedy=f"known keys: {', '.join(sorted(_KEYS))}")
    return AuditSettings(
        select=_rules(
            _split(select) if select is not None else _list(found, "select", where), "--select" if select else where
        ),
        ignore=_rules(
            _split(ignore) if ignore is not None else _list(found, "ignore", where), "--ignore" if ignore else where
        ),
        fail_on=_severity(fail_on or found.get("fail-on", "error"), "--fail-on" if fail_on else where),
        exclude=tuple(_list(found, "exclude", where)),
    )


def _table(start: Path) -> tuple[dict[str, Any], str]:
    folder = (start if start.is_dir() else start.parent).absolute()
    for candidate in (folder, *folder.parents):
        file = candidate / "pyproject.toml"
        if not file.is_file():
            continue
        where = f"{file} [tool.deploychain.audit]"
        try:
            text = file.read_text(encoding="utf-8")
            document = _parse(text)
        except (OSError, ValueError) as error:
            if "deploychain" not in str(error) and "tool.deploychain" not in _safe_text(file):
                return {}, where  # somebody else's broken file
            raise ConfigError(f"not valid TOML: {error}", where=str(file), remedy="correct the file") from None
        table: Any = document
        for key in ("tool", "deploychain", "audit"):
            table = table.get(key, {})
            if not isinstance(table, dict):
                raise ConfigError(f"{key} must be a table", where=where, remedy="write [tool.deploychain.audit]")
        return table, where
    return {}, "pyproject.toml"


def _safe_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _parse(text: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads(text)


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _list(table: dict[str, Any], key: str, where: str) -> list[str]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(v, str) and v for v in value):
        example = "third_party" if key == "exclude" else "R14"
        raise ConfigError(f"{key} must be a list of strings", where=where, remedy=f'{key} = ["{example}"]')
    return value


def _rules(names: Iterable[str], where: str) -> frozenset[str]:
    from deploychain.audit.rules import load_rules

    known = load_rules()
    wanted = {name.upper() for name in names}
    unknown = sorted(wanted - known.keys())
    if unknown:
        raise ConfigError(
            f"unknown rule {unknown[0]!r}",
            where=where,
            remedy="rules are R01 to R28; see `deploychain audit --list-rules`",
        )
    return frozenset(wanted)


def _severity(value: Any, where: str) -> Severity:
    try:
        return Severity(value)
    except ValueError:
        raise ConfigError(f"unknown severity {value!r}", where=where, remedy="error, warning or note") from None
