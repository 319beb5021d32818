"""deploychain: from AMP training to a TensorRT engine, with proof of which precision ran and what it cost.

Importing this package imports no framework: public names are resolved when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deploychain.backends.amp_monitor import monitor
    from deploychain.engine.evidence import Evidence, read_evidence
    from deploychain.errors import DeploychainError
    from deploychain.task import Task

__all__ = ["DeploychainError", "Evidence", "Task", "monitor", "read_evidence"]

_HOMES = {
    "DeploychainError": "deploychain.errors",
    "Evidence": "deploychain.engine.evidence",
    "Task": "deploychain.task",
    "monitor": "deploychain.backends.amp_monitor",
    "read_evidence": "deploychain.engine.evidence",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'deploychain' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
