"""The engine evidence that the build stage of a run writes: builder text and network of each engine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from deploychain.engine.built import EVIDENCE_SCHEMA, requested_precisions
from deploychain.engine.layertext import network_tensors, parse_layers_text
from deploychain.engine.model import Listing, Run
from deploychain.precision import parse_precision


def parse_engine_evidence(text: str, path: str) -> tuple[tuple[Run, ...], str | None]:
    """One run per engine, with what its network asked of each node; and a problem in words."""
    try:
        document = json.loads(text)
        if document.get("schema") != EVIDENCE_SCHEMA:
            return (), f"schema {document.get('schema')!r}: this version reads {EVIDENCE_SCHEMA!r}"
        return tuple(_engine(row, path) for row in document["engines"]), None
    except RecursionError:
        return (), "damaged engine evidence: nested too deeply"
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return (), f"damaged engine evidence: {type(error).__name__} {error}"


def _engine(row: Mapping[str, Any], path: str) -> Run:
    listing = str(row.get("text") or "")
    layers = parse_layers_text(listing)
    inputs, outputs = network_tensors(listing)
    found = requested_precisions(row.get("network") or ())
    built = bool(row["built"])
    whole = sum(line.startswith("Name: ") for line in listing.partition("I/O Tensors:")[0].splitlines())
    return Run(
        path=path,
        status="passed" if built else "failed",
        tool=f"deploychain build, engine {row['name']}",
        tensorrt=str(row["version"]) if row.get("version") else None,
        compute_capability=str(row.get("compute_capability") or "") or None,
        asked=parse_precision(str(row["asked"])),
        asked_from="build stage",
        strongly_typed=True,
        listings=(Listing(layers, "builder", inputs, outputs, complete=whole == len(layers)),) if layers else (),
        stderr_seen=True,
        problems=() if built else (f"engine {row['name']} was not built: {row.get('reason') or 'no reason is given'}",),
        requested=found.precision or None,
        quantised=found.quantised,
    )
