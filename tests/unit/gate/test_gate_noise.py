"""Intervals against closed forms, the decision rule against its definition, and coverage by simulation."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from deploychain.gate import noise
from deploychain.gate.decision import decide, more_samples
from deploychain.gate.noise import Loss
from deploychain.verdicts import Status

DRAWS = 20_000


def bounds(loss: Loss, low: float = 0.05, high: float = 0.05) -> tuple[float, float]:
    assert loss.bounds is not None
    return loss.bounds(low, high)


@pytest.mark.parametrize("n", [50, 1000])
def test_no_changed_decision_still_has_an_upper_bound(n: int) -> None:
    # Clopper-Pearson for 0 of n: 1 - alpha ** (1 / n), about 3 / n.
    right = [1.0] * n
    loss = noise.paired(right, right, "higher", "absolute", draws=DRAWS, seed=1)
    low, high = bounds(loss)
    assert loss.estimate == 0.0
    assert high == pytest.approx(1 - 0.05 ** (1 / n), rel=0.05)
    assert low == pytest.approx(-(1 - 0.05 ** (1 / n)), rel=0.05)  # a gain is as possible as a loss


def test_only_losses_have_the_bounds_of_clopper_and_pearson() -> None:
    # 5 of 200 lost, none gained. Beta(5, 196) at 5 % and Beta(6, 195) at 95 %: 0.00994 and 0.05190 (tables of the
    # F distribution give 0.0099 and 0.0519).
    parent, value = [1.0] * 200, [0.0] * 5 + [1.0] * 195
    low, high = bounds(noise.paired(parent, value, "higher", "absolute", draws=DRAWS, seed=2))
    assert high == pytest.approx(0.0519, rel=0.03)
    assert low <= 0.0100  # never above the exact bound


def test_large_counts_agree_with_mcnemar() -> None:
    # b = 400 lost, c = 300 gained of 20 000: loss 0.005, standard error sqrt(b + c - (b - c)^2 / n) / n = 0.0013218.
    parent = [1.0] * 19_000 + [0.0] * 1_000
    value = [0.0] * 400 + [1.0] * 18_600 + [1.0] * 300 + [0.0] * 700
    loss = noise.paired(parent, value, "higher", "absolute", draws=DRAWS, seed=3)
    low, high = bounds(loss)
    error = math.sqrt(700 - 100**2 / 20_000) / 20_000
    assert loss.estimate == pytest.approx(0.005)
    assert low == pytest.approx(0.005 - 1.645 * error, abs=1e-4)
    assert high == pytest.approx(0.005 + 1.645 * error, abs=1e-4)


def test_continuous_metrics_agree_with_the_normal_interval_of_paired_differences() -> None:
    rng = np.random.default_rng(4)
    parent = rng.normal(10, 3, 500)
    value = parent - 0.5 + rng.normal(0, 1, 500)
    loss = noise.paired(parent, value, "higher", "absolute", draws=DRAWS, seed=5)
    low, high = bounds(loss)
    difference = parent - value
    error = difference.std(ddof=1) / math.sqrt(500)
    assert low == pytest.approx(difference.mean() - 1.645 * error, abs=0.005)
    assert high == pytest.approx(difference.mean() + 1.645 * error, abs=0.005)


def test_binning_of_large_series_keeps_the_interval() -> None:
    rng = np.random.default_rng(6)
    parent = rng.normal(1, 1, 30_001)
    value = parent - rng.normal(0.01, 0.5, 30_001)
    loss = noise.paired(parent, value, "higher", "absolute", draws=2000, seed=7)
    low, high = bounds(loss)
    error = (parent - value).std(ddof=1) / math.sqrt(30_001)
    assert (high - low) / 2 == pytest.approx(1.645 * error, rel=0.08)


def test_bit_equal_outputs_of_a_continuous_metric_have_no_loss_at_all() -> None:
    values = [0.25, 0.5, 0.125]
    loss = noise.paired(values, values, "lower", "percent", draws=500, seed=0)
    assert (loss.estimate, *bounds(loss)) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("reference", "value", "direction", "unit", "expected"),
    [
        (0.80, 0.76, "higher", "absolute", 0.04),
        (0.80, 0.76, "higher", "percent", 5.0),
        (2.0, 2.5, "lower", "absolute", 0.5),
        (2.0, 2.5, "lower", "percent", 20.0),  # 2.0 / 2.5 = 80 % kept
        (0.5, 0.6, "higher", "percent", -20.0),
        (0.0, 0.1, "higher", "percent", None),
        (-1.0, -1.0, "higher", "percent", None),
        (0.1, 0.0, "lower", "percent", None),
    ],
)
def test_point_loss(reference: float, value: float, direction: str, unit: str, expected: float | None) -> None:
    made = noise.point_loss(reference, value, direction, unit)  # type: ignore[arg-type]
    assert made == (None if expected is None else pytest.approx(expected))


def test_lower_is_better_turns_the_loss_round() -> None:
    errors_before, errors_now = [0.0] * 95 + [1.0] * 5, [0.0] * 90 + [1.0] * 10
    loss = noise.paired(errors_before, errors_now, "lower", "absolute", draws=DRAWS, seed=8)
    assert loss.estimate == pytest.approx(0.05)
    assert bounds(loss)[1] > 0.05


def test_wilson_against_its_closed_form_at_the_edge() -> None:
    # All 100 agree: lower bound of the share n / (n + z^2).
    z = NormalDist().inv_cdf(0.95)
    loss = noise.share(100, 100)
    assert loss.estimate == 0.0
    assert bounds(loss)[1] == pytest.approx(z * z / (100 + z * z))
    assert bounds(loss)[0] == 0.0


def test_slowdown_against_students_t() -> None:
    # Log medians 0 and 0.1 with standard deviation 0.02 in three repeats each: t(0.95; 4) = 2.1318.
    spread = [-0.02, 0.0, 0.02]
    loss = noise.slowdown([math.exp(e) for e in spread], [math.exp(0.1 + e) for e in spread], draws=DRAWS, seed=9)
    half = 2.1318 * 0.02 * math.sqrt(2 / 3)
    low, high = bounds(loss)
    assert loss.estimate == pytest.approx(100 * (math.exp(0.1) - 1))
    assert low == pytest.approx(100 * (math.exp(0.1 - half) - 1), abs=0.1)
    assert high == pytest.approx(100 * (math.exp(0.1 + half) - 1), abs=0.1)


def test_one_repeat_knows_nothing_of_its_noise() -> None:
    assert noise.slowdown([1.0], [1.1], draws=100, seed=0).bounds is None
    told = noise.slowdown([1.0], [1.1], draws=100, seed=0, noise=2.0)
    assert bounds(told)[0] == pytest.approx(10 - 1.645 * 2 * math.sqrt(2), abs=0.01)


def test_declared_noise_widens_the_sampling_interval() -> None:
    parent, value = [1.0] * 900 + [0.0] * 100, [0.0] * 20 + [1.0] * 900 + [0.0] * 80
    plain = bounds(noise.paired(parent, value, "higher", "absolute", draws=DRAWS, seed=10))
    wide = bounds(noise.paired(parent, value, "higher", "absolute", draws=DRAWS, seed=10, noise=0.05))
    assert wide[1] == pytest.approx(math.hypot(plain[1], 1.645 * 0.05), rel=1e-3)
    assert wide[0] < plain[0]


def test_unpaired_is_wider_than_paired() -> None:
    parent = [1.0] * 950 + [0.0] * 50
    value = [0.0] * 5 + [1.0] * 945 + [0.0] * 50
    paired = bounds(noise.paired(parent, value, "higher", "absolute", draws=DRAWS, seed=11))
    apart = bounds(noise.unpaired((0.95, 0.218, 1000), (0.945, 0.228, 1000), "higher", "absolute"))
    error = math.sqrt(0.218**2 / 1000 + 0.228**2 / 1000)
    assert apart[1] - apart[0] == pytest.approx(2 * 1.645 * error, rel=1e-3)
    assert apart[1] - apart[0] > 2 * (paired[1] - paired[0])


def test_the_same_seed_gives_the_same_bounds() -> None:
    parent, value = [1.0, 0.0, 1.0] * 50, [1.0, 1.0, 0.0] * 50
    first = bounds(noise.paired(parent, value, "higher", "percent", draws=1000, seed=12))
    assert first == bounds(noise.paired(parent, value, "higher", "percent", draws=1000, seed=12))
    assert first != bounds(noise.paired(parent, value, "higher", "percent", draws=1000, seed=13))


@pytest.mark.parametrize("lost", [0.002, 0.02])
def test_bounds_cover_the_true_loss(lost: float) -> None:
    # 400 test sets of 500 samples, gains 0.5 %: one bound of 5 % may miss at most 5 % (+ 3.3 standard errors: 8.6 %).
    rng = np.random.default_rng(14)
    below = above = 0
    for index in range(400):
        draw = rng.random(500)
        parent = np.where(draw < 0.9, 1.0, 0.0)
        value = np.where(draw < lost, 0.0, np.where(draw > 0.995, 1.0, parent))
        low, high = bounds(noise.paired(parent, value, "higher", "absolute", draws=1000, seed=index))
        below += low > lost - 0.005
        above += high < lost - 0.005
    assert below / 400 <= 0.086
    assert above / 400 <= 0.086


def fixed(estimate: float, low: float, high: float, samples: int = 100) -> Loss:
    return Loss(estimate, lambda a, b: (low, high), samples, "fixed")


TAILS = (0.001, 0.05)


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (fixed(0.5, 0.1, 0.9), Status.PASS),  # within the limit, twice the limit excluded
        (fixed(0.5, 0.1, 2.5), Status.INCONCLUSIVE),  # twice the limit is possible
        (fixed(1.5, 0.2, 1.9), Status.FAIL),  # beyond the limit, and certainly a loss
        (fixed(1.5, 1.2, 9.0), Status.FAIL),
        (fixed(1.5, -0.1, 1.9), Status.PASS),  # beyond the limit, cannot be told from none, twice the limit excluded
        (fixed(1.5, -0.1, 2.1), Status.INCONCLUSIVE),
        (fixed(-3.0, -4.0, -2.0), Status.PASS),  # a gain
        (noise.unknown(0.9), Status.PASS),
        (noise.unknown(1.5), Status.INCONCLUSIVE),
        (noise.unknown(2.1), Status.FAIL),
    ],
)
def test_decision_rule(loss: Loss, expected: Status) -> None:
    assert decide(loss, 1.0, 2.0, TAILS)[0] is expected


def test_a_floor_fails_only_when_it_is_certainly_broken() -> None:
    assert decide(fixed(-0.94, -0.945, -0.93), -0.95, math.inf, TAILS, -0.95)[0] is Status.FAIL
    assert decide(fixed(-0.94, -0.96, -0.93), -0.95, math.inf, TAILS, -0.95)[0] is Status.INCONCLUSIVE
    assert decide(fixed(-0.96, -0.97, -0.90), -0.95, math.inf, TAILS, -0.95)[0] is Status.PASS


def test_more_samples_follow_the_square_root_law() -> None:
    # Half-width 2 must shrink to 1 (margin 2, estimate 1): four times the samples, three times as many more.
    assert more_samples(fixed(1.0, -1.0, 3.0, 100), -1.0, 3.0, 1.0, 2.0) == 300
    # Beyond the limit: the lower half-width 2 must shrink to the estimate 1.5.
    assert more_samples(fixed(1.5, -0.5, 4.0, 100), -0.5, 4.0, 1.0, 2.0) == math.ceil(100 * ((2 / 1.5) ** 2 - 1))
    assert more_samples(fixed(1.999, -9.0, 99.0, 100), -9.0, 99.0, 3.0, 2.0) is None  # a hundred times as many and more
    assert more_samples(noise.unknown(1.0), 0.0, 2.0, 1.0, 2.0) is None
