"""When evidence is to fail a script: ``--fail-on``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

from deploychain.engine.evidence import Evidence
from deploychain.errors import ConfigError
from deploychain.records import LayerSummary

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


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether a limit is reached; None where the evidence cannot show that it is not, and why."""

    met: bool | None
    why: str = ""


def answer(engines: Sequence[Evidence], limit: Limit) -> Answer:
    """Whether any of the engines reaches the limit (of `read_engines`: every run and profile that lists layers).

    Each limit includes the ones before it. ``fallback``: a certain fallback or a demoted layer, or a run that failed
    or is incomplete. ``possible``: also a possible one. ``unknown``: also a layer that cannot be judged, no listing of
    layers, or a cut one. Where none is reached, the evidence must show it: missing evidence is never a pass.
    """
    if any(_met(engine, limit) for engine in engines):
        return Answer(True)
    for engine in engines:
        why = _unanswered(engine, limit)
        if why:
            return Answer(None, f"--fail-on {limit} cannot be answered: {why}")
    return Answer(False)


def _met(evidence: Evidence, limit: Limit) -> bool:
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


_DETAILED = "add --exportLayerInfo of an engine that was built with --profilingVerbosity=detailed"


def _unanswered(evidence: Evidence, limit: Limit) -> str:
    """Why nothing can be said, and what to do about it; empty where the layers answer."""
    hidden = next((problem for problem in evidence.problems if problem.hides), None)
    if hidden is not None:
        return f"{hidden.path + ': ' if hidden.path else ''}{hidden.text}"
    summary = evidence.summary
    if summary is None or not evidence.layers:
        return f"no layers are listed ({_DETAILED})"
    if evidence.listing is not None and evidence.listing.names_only:
        return f"the layers are listed by name only ({_DETAILED})"
    if not evidence.complete:
        return "the listing of layers is cut"
    if evidence.asked_from.startswith("assumed") and not evidence.asked_by_node:
        return "nothing says which precision was asked (use --asked, or --model where the network is strongly typed)"
    if _blind(summary, limit):
        return f"of {summary.compute_layers} layers that compute none could be judged ({_DETAILED})"
    return ""


def _blind(summary: LayerSummary, limit: Limit) -> bool:
    """Whether no layer was judged: then no fallback was looked for. Inside opaque ones nobody looks."""
    open_ends = summary.unknown + (summary.possible if limit == "fallback" else 0)
    return open_ends == summary.compute_layers
