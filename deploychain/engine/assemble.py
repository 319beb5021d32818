"""From the readings of several files to one engine: which listing, which profile, what was asked, and the judgement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from deploychain.engine.blocks import best_listing
from deploychain.engine.classify import ARITHMETIC, QUANTISED, changed, float_types
from deploychain.engine.evidence import Evidence, Problem
from deploychain.engine.join import Joined, is_helper_row, join
from deploychain.engine.judge import judge_layers, summarise
from deploychain.engine.model import FileReading, Listing, Profile, Run
from deploychain.engine.nodes import nodes_from_model
from deploychain.engine.onnxfile import OnnxGraph
from deploychain.engine.origin import layer_module
from deploychain.errors import ConfigError
from deploychain.precision import Precision
from deploychain.records import LayerKind, LayerRecord


class Assembler:
    """Chooses, joins and judges; `assemble` is called once."""

    def __init__(
        self, inputs: tuple[FileReading, ...], asked: Precision | None, run: int | None, profile: int | None
    ) -> None:
        self.inputs = inputs
        self.asked = asked
        self.wanted_profile = profile
        self.problems: list[Problem] = []
        self.notes: list[str] = []
        self.runs = tuple(r for reading in inputs for r in reading.runs)
        if run is not None and not 1 <= run <= len(self.runs):
            raise ConfigError(f"there is no run {run}: the files hold {len(self.runs)}", where="--run")
        self.wanted_run = self.runs[run - 1] if run is not None else None

    def assemble(self, model: OnnxGraph | None, requested: Mapping[str, Precision] | None) -> Evidence:
        self._file_problems()
        listing, listing_path, run = self._listing()
        profile, profile_path, run = self._profile(run)
        layers = listing.layers if listing is not None else ()
        counts = Counter(layer.profile or 0 for layer in layers)
        shown = self._choose_profile(layers, counts, profile)
        if len(counts) > 1:
            layers = tuple(layer for layer in layers if (layer.profile or 0) == shown)
            self.notes.append(
                f"The engine has {len(counts)} optimisation profiles; only one runs. Shown: profile {shown}, "
                f"{len(layers)} of {sum(counts.values())} layers."
            )
        joined = self._join(layers, profile, listing_path, profile_path)
        layers = self._origins(layers, model, joined)
        asked, asked_from, source_run = self._asked(layers, run)
        strong = self._strongly_typed(listing, source_run)
        wanted, quantised = self._request(model, requested, strong, source_run)
        judged = judge_layers(
            layers,
            asked,
            wanted,
            pinned=source_run.pinned if source_run is not None else {},
            allowed=source_run.allowed if source_run is not None else (),
            quantised=quantised,
            op_types=model.op_types if model is not None else None,
            network_io=_network_io(listing),
        )
        return Evidence(
            inputs=self.inputs,
            runs=self.runs,
            layers=judged,
            summary=summarise(judged) if judged else None,
            asked=asked,
            asked_from=asked_from,
            listing=listing,
            listing_path=listing_path,
            profile=profile,
            profile_path=profile_path,
            joined=joined,
            run=run or source_run,
            profiles=dict(counts),
            shown_profile=shown,
            problems=tuple(self.problems),
            notes=tuple(dict.fromkeys(self.notes)),
            asked_by_node=wanted is not None,
        )

    def _problem(self, path: str, text: str, hides: bool = False) -> None:
        problem = Problem(path, text, hides)
        if problem not in self.problems:
            self.problems.append(problem)

    # -- files ------------------------------------------------------------------------------------------------

    def _file_problems(self) -> None:
        for reading in self.inputs:
            if reading.problem:
                self._problem(reading.path, reading.problem, hides=reading.kind == "other")
            self.notes.extend(reading.notes)
            for run in reading.runs:
                for text in run.problems:
                    self._problem(reading.path, text)
                if reading.kind == "log" and not run.stderr_seen and run.tool:
                    failed = " (the run failed, and no [E] line says why)" if run.status == "failed" else ""
                    self._problem(
                        reading.path,
                        "warnings not captured: the log has no [W] or [E] line, so standard error may be missing; "
                        f"absence of a warning proves nothing{failed}",
                    )
                self.notes.extend(run.notes)
        logs = [reading for reading in self.inputs if reading.kind == "log"]
        statuses = [run.status for log in logs for run in log.runs] + [s for log in logs for s in log.omitted]
        if len(statuses) > 1 and "passed" in statuses and any(s != "passed" for s in statuses):
            count = sum(s == "passed" for s in statuses)
            self._problem("", f"{count} of {len(statuses)} runs passed: taken together they are not a pass")

    # -- layers -----------------------------------------------------------------------------------------------

    def _listing(self) -> tuple[Listing | None, str, Run | None]:
        found: list[tuple[Listing, str, Run | None]] = [
            (reading.listing, reading.path, None) for reading in self.inputs if reading.listing is not None
        ]
        candidates = [self.wanted_run] if self.wanted_run is not None else list(self.runs)
        in_runs = [(best_listing(run.listings), run.path, run) for run in candidates]
        with_layers = [(listing, path, run) for listing, path, run in in_runs if listing is not None]
        if self.wanted_run is None:
            self._several_engines([listing for listing, _, _ in with_layers])
            if with_layers and not found:
                self._silent_builds()
        found.extend((listing, path, run) for listing, path, run in reversed(with_layers))
        if not found:
            return None, "", self.wanted_run
        # The most telling first: layer JSON, then a dump, then the build list, then names.
        order = {"json": 0, "inspector": 1, "builder": 1, "polygraphy": 2, "build list": 3, "names": 4}
        found.sort(key=lambda item: order[item[0].source] if item[0].layers else 5)
        chosen = found[0]
        for listing, path, _ in found[1:]:
            if path != chosen[1]:
                self._compare_listings(chosen[0], listing, path)
        return chosen

    def _several_engines(self, listings: list[Listing]) -> None:
        kinds = {tuple(layer.name for layer in listing.layers) for listing in listings}
        if len(kinds) > 1:
            what = f"of {len(kinds)} different engines"
        elif any(_unlike(a, b) for a, b in pairwise(listings)):
            what = "of the same names but in other precisions"
        else:
            return
        self.notes.append(f"{len(listings)} runs list layers, {what}; shown: the last. Use --run N.")

    def _silent_builds(self) -> None:
        """Runs that built an engine and list no layers, beside runs that do: those layers are of another engine."""
        for number, run in enumerate(self.runs, 1):
            if run.status == "passed" and not run.listings and "--onnx=" in run.command:
                self._problem(run.path, f"run {number} built an engine and lists no layers: use --run N", hides=True)

    def _compare_listings(self, chosen: Listing, other: Listing, path: str) -> None:
        if not other.layers or not chosen.layers:
            return
        a = {node for layer in chosen.layers for node in (layer.name, *layer.onnx_nodes)}
        b = [layer for layer in other.layers if layer.kind in ARITHMETIC] or list(other.layers)
        common = sum(layer.name in a or any(node in a for node in layer.onnx_nodes) for layer in b)
        unlike = _unlike(chosen, other)
        if unlike:
            self._problem(
                path,
                f"lists another engine: {unlike} layers of the same name are built in another precision; "
                "compare engines with `deploychain diff`",
                hides=True,
            )
        elif common * 2 < len(b):
            self._problem(
                path,
                f"lists another engine: {common} of {len(b)} layers are known; compare engines with `deploychain diff`",
                hides=True,
            )

    def _choose_profile(self, layers: tuple[LayerRecord, ...], counts: Counter[int], profile: Profile | None) -> int:
        if self.wanted_profile is not None:
            if layers and self.wanted_profile not in counts:
                have = ", ".join(str(p) for p in sorted(counts))
                raise ConfigError(
                    f"no layer of optimisation profile {self.wanted_profile}: there are {have}", where="--profile"
                )
            return self.wanted_profile
        if profile is not None and len(counts) > 1:
            rows = set(profile.names)
            matched = Counter(layer.profile or 0 for layer in layers if layer.name in rows)
            if matched:
                return matched.most_common(1)[0][0]
        return min(counts) if counts else 0

    # -- time -------------------------------------------------------------------------------------------------

    def _profile(self, run: Run | None) -> tuple[Profile | None, str, Run | None]:
        files = [(reading.profile, reading.path) for reading in self.inputs if reading.profile is not None]
        for _, path in files[1:]:
            self._problem(path, "a second layer profile: only the first is used")
        if files:
            return files[0][0], files[0][1], run
        own = [run] if run is not None and run.profile is not None else []
        wanted = [self.wanted_run] if self.wanted_run is not None else list(reversed(self.runs))
        for candidate in (*own, *wanted):
            if candidate is not None and candidate.profile is not None:
                return candidate.profile, candidate.path, run or candidate
        return None, "", run

    def _join(
        self, layers: tuple[LayerRecord, ...], profile: Profile | None, listing_path: str, profile_path: str
    ) -> Joined | None:
        if profile is None or not layers:
            return None
        joined = join(layers, profile)
        if joined.problem:
            self._problem(profile_path, joined.problem)
            return joined
        rows = [name for name in joined.unmatched_rows if not is_helper_row(name)]
        if rows:
            self._problem(profile_path, f"{len(rows)} profile rows belong to no listed layer: {_some(rows)}")
        arithmetic = {layer.name for layer in layers if layer.kind in ARITHMETIC}
        missing = [name for name in joined.unmatched_layers if name in arithmetic]
        if missing:
            self._problem(listing_path, f"{len(missing)} layers have no profile row: {_some(missing)}")
        if profile.iterations == 1:
            self.notes.append("The profile is a single sample (count 1): its times are rough.")
        return joined

    def _origins(
        self, layers: tuple[LayerRecord, ...], model: OnnxGraph | None, joined: Joined | None
    ) -> tuple[LayerRecord, ...]:
        if model is None and joined is None:
            return layers
        made = []
        unknown = 0
        for index, layer in enumerate(layers):
            changes: dict[str, Any] = {}
            if joined is not None and joined.how != "none":
                changes.update(time_ms=joined.times[index], share=joined.shares[index])
            if model is not None:
                if layer.nodes_from != "metadata" and layer.layer_type not in ("kgen", "Constant"):
                    nodes = nodes_from_model(layer.name, model.op_types)
                    if nodes or layer.nodes_from == "name":
                        layer = changed(layer, onnx_nodes=nodes, nodes_from="model" if nodes else "")
                if layer.onnx_nodes and layer.kind in ARITHMETIC:
                    unknown += not any(node in model.op_types for node in layer.onnx_nodes)
                changes["module"] = layer_module(layer, model.modules)
            made.append(changed(layer, **changes))
        if model is not None:
            counted = sum(bool(layer.onnx_nodes) and layer.kind in ARITHMETIC for layer in made)
            if counted and unknown * 2 > counted:
                self._problem(
                    "",
                    f"{unknown} of {counted} layers name no node of the model: the engine was built from another",
                    hides=True,
                )
        return tuple(made)

    # -- what was asked ---------------------------------------------------------------------------------------

    def _asked(self, layers: tuple[LayerRecord, ...], run: Run | None) -> tuple[Precision | None, str, Run | None]:
        # The run that the layers are from says it best; else the last that does.
        pool = [self.wanted_run] if self.wanted_run is not None else [run, *reversed(self.runs)]
        source = next((r for r in pool if r is not None and r.asked is not None), None)
        typed = next((r for r in pool if r is not None and r.strongly_typed), None)
        if self.asked is not None:
            return self.asked, "given", source or typed
        if source is not None:
            return source.asked, source.asked_from, source
        inferred = _infer(layers)
        return inferred, "assumed: the engine uses it" if inferred is not None else "", typed

    def _strongly_typed(self, listing: Listing | None, run: Run | None) -> bool:
        if run is not None and run.strongly_typed:
            return True
        return listing is not None and listing.source == "builder"

    def _request(
        self, model: OnnxGraph | None, requested: Mapping[str, Precision] | None, strong: bool, run: Run | None
    ) -> tuple[Mapping[str, Precision] | None, frozenset[str]]:
        if requested is not None:
            return requested, model.quantised if model is not None else frozenset()
        if run is not None and run.requested is not None:
            return run.requested, run.quantised
        if model is None or not strong:
            return None, frozenset()
        return model.requested, model.quantised


def _infer(layers: tuple[LayerRecord, ...]) -> Precision | None:
    """The reduced precision that an engine uses, where nothing says what was asked; None if it uses none.

    A quantised one before FP16 and BF16, and of these the more frequent.
    """
    counts: Counter[Precision] = Counter(
        layer.compute for layer in layers if layer.kind is LayerKind.COMPUTE and layer.compute is not None
    )
    reduced = [p for p in counts if p in QUANTISED or (p.is_float and p.rank < Precision.TF32.rank)]
    if not reduced:
        for layer in layers:
            if layer.kind in ARITHMETIC:
                counts.update(float_types((*layer.inputs, *layer.outputs)))
        reduced = [p for p in counts if p in QUANTISED or p in (Precision.FP16, Precision.BF16)]
    quantised = [p for p in reduced if p in QUANTISED]
    return max(quantised or reduced, key=lambda p: (counts[p], -p.rank), default=None)


def _network_io(listing: Listing | None) -> frozenset[str] | None:
    """The tensors of the network. Of a cut listing only the inputs are known: what it does not consume may go on."""
    if listing is None or listing.complete or listing.network_io is not None:
        return listing.network_io if listing is not None else None
    produced = {tensor.name for layer in listing.layers for tensor in layer.outputs}
    return frozenset(t.name for layer in listing.layers for t in layer.inputs if t.name not in produced)


def _unlike(one: Listing, two: Listing) -> int:
    """Layers of one name and place whose precision differs; 0 where the listings are of unlike kinds."""
    if one.source != two.source or len(one.layers) != len(two.layers):
        return 0
    pairs = zip(one.layers, two.layers, strict=True)
    return sum(
        a.name == b.name and a.compute is not b.compute and a.compute is not None and b.compute is not None
        for a, b in pairs
    )


def _some(names: list[str], limit: int = 3) -> str:
    shown = ", ".join(f"`{name[:80]}`" for name in names[:limit])
    return f"{shown}, ..." if len(names) > limit else shown
