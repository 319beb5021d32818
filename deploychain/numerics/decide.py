"""Which precision each node should compute in, and why: ranges, operator rules, the user's pins.

Rules are tried in order and the first that applies decides. Every decision carries the number that it rests on.
Thresholds: 65504 is the largest FP16 number, 2^-25 the largest magnitude that rounds to zero; ``data_max`` and
``init_max`` are those of ModelOpt AutoCast (512: FP16 values are 0.5 apart there; 65504).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from deploychain.numerics.islands import quantised_nodes, settle
from deploychain.numerics.masks import mask_nodes
from deploychain.numerics.nodes import DATA_MOVEMENT, Constant, NodeInfo, Wiring
from deploychain.numerics.range import FP16_MAX, FP16_TO_ZERO, TensorRange
from deploychain.numerics.rules import (
    EXP_MAX,
    GRID_OPS,
    GRID_SIDE,
    LOCAL_SNR_ERROR_DB,
    LOCAL_SNR_WARNING_DB,
    LONG_SUM,
    NEAR_MAX,
    SMOOTH_GRID_DB,
    SUMS,
    Rules,
)
from deploychain.plan import Finding, NodePlan


def decide(
    infos: Sequence[NodeInfo],
    ranges: Mapping[str, TensorRange],
    rules: Rules,
    local_snr: Mapping[str, float] | None = None,
    first_non_finite: str = "",
) -> tuple[tuple[NodePlan, ...], tuple[Finding, ...]]:
    """Decide every node of a prepared FP32 (or Q/DQ) graph.

    Args:
        infos: facts of the nodes, in topological order.
        ranges: tensor name -> range over the calibration data.
        rules: limits and pins.
        local_snr: node name -> signal over the error that the low precision causes in this node alone, dB.
        first_non_finite: node that makes the first NaN or inf in FP32 already.

    Returns:
        One plan per node, in the same order, and the findings.
    """
    return _Decision(infos, ranges, rules, local_snr or {}, first_non_finite).run()


class _Decision:
    def __init__(
        self,
        infos: Sequence[NodeInfo],
        ranges: Mapping[str, TensorRange],
        rules: Rules,
        local_snr: Mapping[str, float],
        first_non_finite: str,
    ) -> None:
        self.infos = infos
        self.ranges = ranges
        self.rules = rules
        self.low = rules.low
        self.local_snr = local_snr
        self.first_non_finite = first_non_finite
        self.wiring = Wiring.of(infos)
        self.findings: list[Finding] = []
        self.grid = {name: f"{sampler} samples a map over {GRID_SIDE} wide" for name, sampler in self._grid_chains()}
        self.quantised = quantised_nodes(infos)
        self.masks = mask_nodes(infos, ranges, self.wiring)

    def run(self) -> tuple[tuple[NodePlan, ...], tuple[Finding, ...]]:
        plans = {info.name: self._plan(info) for info in self.infos}
        self._sensitive_inputs(plans)
        settle(plans, self.wiring, self.low)
        return tuple(plans.values()), tuple(self.findings)

    # --- one node -----------------------------------------------------------------------------------------------

    def _plan(self, info: NodeInfo) -> NodePlan:
        precision, rule, reason = self._choose(info)
        facts = [self.ranges[n] for n in (*info.float_outputs, *info.float_inputs) if n in self.ranges]
        local = self.local_snr.get(info.name)
        return NodePlan(
            name=info.name,
            op=info.op,
            module=info.module,
            precision=precision,
            rule=rule,
            reason=reason,
            abs_max=max((f.abs_max for f in facts), default=None),
            overflow_share=max((f.overflow_share for f in facts), default=None),
            underflow_share=max((f.underflow_share for f in facts), default=None),
            local_snr_db=local,
        )

    def _choose(self, info: NodeInfo) -> tuple[str, str, str]:
        self._report_non_finite(info)
        if info.op in ("QuantizeLinear", "DequantizeLinear"):
            return "int8", "quantised", "quantiser: FP32 scale, as opset 17 wants it"
        if info.name in self.quantised:  # a pin to another precision has removed its quantisers before
            return "int8", "quantised", f"quantised: its inputs come from DequantizeLinear{self._quantiser_snr(info)}"
        if not info.is_float:
            return info.output_type or "int64", "integer", "carries shapes, indices or masks"
        # Findings are made for pinned nodes too: the user shall know what a pin does.
        rules = (
            self._by_operator,
            self._by_weights,
            self._by_range,
            self._by_divisor,
            self._by_local,
            self._by_data_max,
        )
        by_data = next((found for found in [rule(info) for rule in rules] if found is not None), None)
        pinned = self.rules.pinned(info.name)
        if pinned is not None and pinned[1] != "int8":  # only quantisers make a node INT8
            pattern, precision = pinned
            if precision != "fp32" and info.not_lowerable:
                return "fp32", "operator", f"pinned to {precision} by {pattern!r}, but {info.not_lowerable}"
            was = f"; the data alone say fp32: {by_data[1]}" if by_data and precision != "fp32" else ""
            return precision, "pin", f"pinned by {pattern!r}{was}"
        if by_data is not None:
            return "fp32", by_data[0], by_data[1]
        return self.low, "in-range", self._in_range(info)

    def _quantiser_snr(self, info: NodeInfo) -> str:
        known = [self.local_snr[n] for n in self.wiring.quantisers(info) if n in self.local_snr]
        return f", quantiser SNR {min(known):.0f} dB" if known else ""

    def _in_range(self, info: NodeInfo) -> str:
        largest = self._largest(info)
        local = self.local_snr.get(info.name)
        snr = f", local SNR {local:.0f} dB" if local is not None and local < 1e3 else ""
        if largest is None:
            return "no calibration data reached it; operator allows it" + snr
        return f"abs max {largest.abs_max:.4g} <= data_max {self.rules.data_max:g}{snr}"

    # --- the rules, in order ------------------------------------------------------------------------------------

    def _by_operator(self, info: NodeInfo) -> tuple[str, str] | None:
        if info.not_lowerable:
            return "operator", info.not_lowerable
        if info.name in self.grid:
            why = self.grid[info.name]
            if info.op == "GridSample":
                local = self.local_snr.get(info.name)
                smooth = local is not None and local >= SMOOTH_GRID_DB
                seen = "" if local is None else f"; on these data it is {_db(local)} from FP32"
                self._finding(
                    info,
                    "grid",
                    "note" if smooth else "warning",
                    f"grid coordinates in {self.low.upper()} are 2^-11 apart near the border: {why}{seen}",
                    "kept in FP32 with the nodes that compute the grid",
                )
            return "grid", f"grid coordinates stay FP32: {why}"
        if self.low == "fp16" and info.op in SUMS:
            return self._by_long_sum(info)
        return None

    def _by_long_sum(self, info: NodeInfo) -> tuple[str, str] | None:
        source = self.ranges.get(info.float_inputs[0]) if info.float_inputs else None
        result = self.ranges.get(info.float_outputs[0]) if info.float_outputs else None
        if source is None or result is None or source.count == 0 or result.count == 0:
            return None
        depth = max(source.shape, default=1) if info.op == "CumSum" else source.count // max(result.count, 1)
        typical = source.percentile(50)
        # Half the spacing of FP16 at the size of the sum: smaller addends vanish in a running FP16 sum.
        stalls = result.abs_max * 2.0**-11
        needed = 256 if info.op == "CumSum" else LONG_SUM
        if depth < needed or not 0 < typical < stalls:
            return None
        detail = (
            f"sums {depth} addends of about {typical:.3g} up to {result.abs_max:.4g}: "
            f"a running FP16 sum of this size moves in steps of {2 * stalls:.3g}"
        )
        self._finding(info, "sensitive", "warning", detail, "kept in FP32; or sum in blocks")
        return "long-sum", detail

    def _by_weights(self, info: NodeInfo) -> tuple[str, str] | None:
        if self.low != "fp16":
            return None
        for constant in info.constants:
            found = constant.range
            if found.abs_max > self.rules.init_max or found.positive_inf:
                detail = f"weight {constant.name} reaches {found.abs_max:.4g}, over init_max {self.rules.init_max:g}"
                masked = info.name in self.masks
                severity = "note" if masked else "error" if found.abs_max > FP16_MAX else "warning"
                self._finding(info, "weight-overflow", severity, detail, "kept in FP32")
                return "weight-overflow", detail
            vanishing = self._vanishing(info, constant)
            if vanishing:
                return vanishing
        return None

    def _vanishing(self, info: NodeInfo, constant: Constant) -> tuple[str, str] | None:
        found = constant.range
        if found.abs_max == 0.0 or found.non_finite:
            return None
        if found.abs_max <= FP16_TO_ZERO:
            kind = "vanishing-constant" if constant.scalar else "underflow"
            detail = (
                f"{'constant' if constant.scalar else 'weight'} {constant.name} = {found.abs_max:.3g} is zero in FP16"
            )
            beside = self._least_beside(info) if constant.scalar else 0.0
            idle = found.abs_max <= beside * 2.0**-12  # half of FP16's last digit: it changes nothing where it is kept
            seen = f"; beside values of {beside:.3g} and more, as on these data, it changes nothing" if idle else ""
            remedy = "kept in FP32; or use at least 1e-7 (2^-24 is the smallest)"
            self._finding(info, kind, "note" if idle else "error", detail + seen, remedy)
            return "vanishing-constant", detail
        snr = found.storage_snr_db
        if found.count > 1 and info.op not in ("QuantizeLinear", "DequantizeLinear") and snr < 40.0:
            detail = (
                f"weight {constant.name} is at most {found.abs_max:.3g}: {found.underflow_share:.1%} of it is zero in "
                f"FP16, {found.subnormal_share:.1%} subnormal, storage SNR {snr:.0f} dB"
            )
            self._finding(
                info, "underflow", "error" if snr < 20 else "warning", detail, "kept in FP32; or scale the weight"
            )
            return "weight-underflow", detail
        return None

    def _least_beside(self, info: NodeInfo) -> float:
        """The smallest value that a constant is added to or compared with; 0 where that may be zero or negative."""
        others = [self.ranges.get(n) for n in info.float_inputs]
        if info.op not in ("Add", "Max", "Clip") or not others:
            return 0.0
        safe = all(r is not None and r.minimum > 0.0 and not r.zeros and not r.non_finite for r in others)
        return min(r.abs_min for r in others if r is not None) if safe else 0.0

    def _by_range(self, info: NodeInfo) -> tuple[str, str] | None:
        if self.low != "fp16":
            return None
        for name in (*info.float_outputs, *info.float_inputs):
            found = self.ranges.get(name)
            if found is None:
                continue
            made_here = name in info.float_outputs
            if found.abs_max > FP16_MAX:
                detail = (
                    f"{name} reaches {found.abs_max:.4g} over 65504: {found.overflow_share:.2%} of its values are "
                    "infinite in FP16"
                )
                if made_here and info.op not in DATA_MOVEMENT:
                    severity = "note" if info.name in self.masks else "error"
                    self._finding(info, "overflow", severity, detail, "kept in FP32; or scale before")
                return "overflow", detail
            if made_here and found.abs_max > NEAR_MAX and info.op not in DATA_MOVEMENT:
                detail = f"{name} reaches {found.abs_max:.4g}: other data may take it over 65504"
                self._finding(info, "overflow", "note", detail, "kept in FP32 where data_max is below that")
        return self._by_inner_range(info)

    def _by_inner_range(self, info: NodeInfo) -> tuple[str, str] | None:
        """Values inside an operator that TensorRT builds from simpler ones (squares, exponentials)."""
        result = self.ranges.get(info.float_outputs[0]) if info.float_outputs else None
        source = self.ranges.get(info.float_inputs[0]) if info.float_inputs else None
        if info.op == "ReduceL2" and result is not None and result.abs_max**2 > FP16_MAX:
            detail = f"its sum of squares reaches {result.abs_max**2:.4g} over 65504"
        elif info.op == "ReduceLogSumExp" and source is not None and source.maximum > EXP_MAX:
            detail = f"exp of {source.maximum:.4g} is over 65504 (TensorRT does not subtract the maximum)"
        else:
            return None
        self._finding(info, "overflow", "error", detail, "kept in FP32; or scale before")
        return "overflow", detail

    def _by_data_max(self, info: NodeInfo) -> tuple[str, str] | None:
        if self.low != "fp16":
            return None
        for name in (*info.float_outputs, *info.float_inputs):
            found = self.ranges.get(name)
            if found is not None and found.abs_max > self.rules.data_max:
                return "data-max", f"abs max {found.abs_max:.4g} of {name} > data_max {self.rules.data_max:g}"
        return None

    def _by_divisor(self, info: NodeInfo) -> tuple[str, str] | None:
        """Small values that something divides by, or takes the logarithm or root of, must not become zero."""
        if self.low != "fp16":
            return None
        critical = {"Div": 1, "Reciprocal": 0, "Log": 0, "Sqrt": 0}.get(info.op)
        if info.op == "Pow" and any(c.range.minimum < 0 for c in info.constants):
            critical = 0
        if critical is None or critical >= len(info.inputs):
            return None
        found = self.ranges.get(info.inputs[critical])
        if found is None or not found.abs_min or found.abs_min > FP16_TO_ZERO or found.underflow_share == 0:
            return None
        detail = (
            f"{info.inputs[critical]} falls to {found.abs_min:.3g}: {found.underflow_share:.2%} of its non-zero values "
            f"are zero in FP16, and {info.op} of zero is not finite or not the same"
        )
        severity = "note" if info.op == "Sqrt" and not self._divides(info) else "error"
        self._finding(info, "underflow", severity, detail, "kept in FP32")
        return "divisor", detail

    def _divides(self, info: NodeInfo) -> bool:
        return any(
            (n.op == "Div" and len(n.inputs) > 1 and n.inputs[1] in info.outputs) or n.op in ("Reciprocal", "Log")
            for n in self.wiring.following(info)
        )

    def _by_local(self, info: NodeInfo) -> tuple[str, str] | None:
        snr = self.local_snr.get(info.name)
        if snr is None or not self.rules.judge_local or snr >= LOCAL_SNR_WARNING_DB[self.low]:
            return None
        results = [self.ranges[n] for n in info.float_outputs if n in self.ranges]
        if math.isnan(snr) and not any(r.nans or r.positive_inf for r in results):
            return None  # minus infinity in FP32 already, as masks have it, or squares over FP32: nothing is known
        detail = f"with {self.low.upper()} inputs and result it is {_db(snr)} from FP32"
        severity = "note" if info.name in self.masks else "error" if snr < LOCAL_SNR_ERROR_DB else "warning"
        said = {f.severity for f in self.findings if f.node == info.name}
        if "error" not in said and not (said and info.name in self.masks):
            self._finding(info, "sensitive", severity, detail, "kept in FP32, with the nodes that make its inputs")
        return "sensitive", detail

    # --- the graph ----------------------------------------------------------------------------------------------

    def _grid_chains(self) -> Iterator[tuple[str, str]]:
        """(node, sampler): GridSample on a wide map and the element-wise nodes that compute its coordinates."""
        for info in self.infos:
            if info.op != "GridSample" or len(info.inputs) < 2:
                continue
            sides = [self.ranges[n].shape[-2:] for n in info.inputs[:1] if n in self.ranges]
            if not sides or max(sides[0], default=0) <= GRID_SIDE:
                continue
            yield info.name, info.name
            waiting = [info.inputs[1]]
            while waiting:
                made = self.wiring.maker(waiting.pop())
                if made is None or made.op not in GRID_OPS or not made.is_float:
                    continue
                yield made.name, info.name
                waiting.extend(made.float_inputs)

    def _sensitive_inputs(self, plans: dict[str, NodePlan]) -> None:
        """Where a node suffers from rounded inputs, those who make the inputs must not round them either."""
        for info in self.infos:
            rule = plans[info.name].rule
            if rule not in ("sensitive", "divisor", "grid"):
                continue
            inputs = info.inputs[1:2] if info.op == "GridSample" and rule == "grid" else info.float_inputs
            level = list(inputs)
            for _ in range(self.rules.feed_depth):
                level = [name for tensor in level for name in self._keep_wide(plans, tensor, info)]

    def _keep_wide(self, plans: dict[str, NodePlan], tensor: str, sensitive: NodeInfo) -> tuple[str, ...]:
        """Raise the node that computed a tensor, and the data movement behind it; returns that node's inputs."""
        made = self.wiring.maker(tensor)
        while made is not None:
            plan = plans[made.name]
            if plan.precision == self.low and plan.rule != "pin":
                why = f"its result feeds {sensitive.name}, which needs FP32 inputs"
                plans[made.name] = replace(plan, precision="fp32", rule="feeds-sensitive", reason=why)
            if made.op not in DATA_MOVEMENT or not made.float_inputs:
                return made.float_inputs
            made = self.wiring.maker(made.float_inputs[0])
        return ()

    # --- helpers ------------------------------------------------------------------------------------------------

    def _largest(self, info: NodeInfo) -> TensorRange | None:
        known = [self.ranges[n] for n in (*info.float_outputs, *info.float_inputs) if n in self.ranges]
        return max(known, key=lambda r: r.abs_max, default=None)

    def _report_non_finite(self, info: NodeInfo) -> None:
        if info.name != self.first_non_finite:
            return
        bad = [self.ranges[n] for n in info.float_outputs if n in self.ranges and self.ranges[n].non_finite]
        masks = bool(bad) and all(not r.nans and not r.positive_inf for r in bad) and info.op in ("Where", "Add", "Mul")
        counts = ", ".join(f"{r.name}: {r.nans} NaN, {r.non_finite - r.nans} inf of {r.count}" for r in bad)
        self._finding(
            info,
            "non-finite",
            "note" if masks else "error",
            f"the first node that makes non-finite values, in FP32 already ({counts})",
            "" if masks else "the model or its data are wrong: no precision can repair it",
        )

    def _finding(self, info: NodeInfo, kind: str, severity: str, detail: str, remedy: str) -> None:
        self.findings.append(Finding(info.name, info.module, kind, severity, detail, remedy))


def _db(value: float) -> str:
    return f"{value:.0f} dB" if value > -1e3 else "infinitely far (non-finite)"
