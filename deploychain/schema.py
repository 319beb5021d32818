"""JSON Schemas of the files that people write or other tools exchange with us."""

from __future__ import annotations

from typing import Any

from deploychain.errors import ConfigError

NAMES = ("pipeline", "comparison", "gate")


def schema_of(name: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of one kind of file.

    Raises:
        ConfigError: there is no schema of that name.
    """
    from pydantic import TypeAdapter

    made: dict[str, Any]
    if name == "pipeline":
        from deploychain.settings import PipelineSettings

        made = PipelineSettings.model_json_schema()
    elif name == "comparison":
        from deploychain.records import Comparison

        made = TypeAdapter(Comparison).json_schema()
    elif name == "gate":
        from deploychain.gate.limits import GateLimits

        made = TypeAdapter(GateLimits).json_schema()
    else:
        from deploychain.config import nearest

        raise ConfigError(f"there is no schema {name!r}", where="command line", remedy=nearest(name, NAMES))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}
