"""When evidence is to fail a script: ``--fail-on``."""

from __future__ import annotations

from typing import Literal, cast

from deploychain.engine.evidence import Evidence
from deploychain.errors import ConfigError

Limit = Literal["fallback", "possible", "unknown"]
_LIMITS = ("fallback", "possible", "unknown")


def parse_fail_on(text: str | None) -> Limit | None:
    """The limit in words.

    Raises:
        ConfigError: another word.
    """
    if text is None:
        return None
    if text not in _LIMITS:
        raise ConfigError(f"{text!r} is no limit", where="--fail-on", remedy="use fallback, possible or unknown")
    return cast(Limit, text)


def met(evidence: Evidence, limit: Limit) -> bool:
    """Whether the evidence reaches the limit. Each limit includes the ones before it.

    ``fallback``: a certain fallback or a demoted layer, or a run that failed or is incomplete. ``possible``: also a
    possible one. ``unknown``: also a layer that cannot be judged, no listing of layers, or a cut one: missing evidence
    is never a pass.
    """
    summary = evidence.summary
    if evidence.passed is False or (summary is not None and (summary.fallback or summary.demoted)):
        return True
    if limit == "fallback":
        return False
    if summary is not None and summary.possible:
        return True
    if limit == "possible":
        return False
    return summary is None or not evidence.layers or not evidence.complete or summary.unknown > 0
