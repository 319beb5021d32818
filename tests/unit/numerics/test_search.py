"""The search against functions whose culprits are known."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deploychain.numerics.search import Journal, fewer_kept, linear_scan, smallest_kept

ITEMS = [f"n{i}" for i in range(500)]


def _needs(*culprits: str) -> Journal:
    """Drop 1 per culprit that is not kept, and a little for everything else."""

    def evaluate(kept: frozenset[str]) -> float:
        return len(set(culprits) - kept) + (500 - len(kept)) * 1e-5

    return Journal(evaluate)


@settings(max_examples=60, deadline=None)
@given(st.sets(st.sampled_from(ITEMS), min_size=0, max_size=3), st.integers(0, 1000))
def test_three_culprits_of_five_hundred_in_sixty_evaluations_in_any_order(culprits: set[str], seed: int) -> None:
    order = ITEMS.copy()
    random.Random(seed).shuffle(order)
    found = smallest_kept(order, _needs(*culprits), 0.1)
    assert set(found.kept) == culprits
    assert found.reached
    assert found.minimal
    assert found.evaluations <= 60


def test_a_good_order_costs_a_handful() -> None:
    culprits = ["n7", "n100", "n400"]
    order = [*culprits, *(i for i in ITEMS if i not in culprits)]
    found = smallest_kept(order, _needs(*culprits), 0.1)
    assert set(found.kept) == set(culprits)
    assert found.evaluations <= 10


def test_the_linear_scan_finds_the_same_with_an_evaluation_per_node() -> None:
    found = linear_scan(ITEMS, _needs("n3", "n77"), 0.1)
    assert set(found.kept) == {"n3", "n77"}
    assert found.evaluations >= 500


def test_many_small_contributions_are_balanced_against_the_limit() -> None:
    weights = dict.fromkeys(ITEMS[:40], 1.0)
    journal = Journal(lambda kept: sum(w for n, w in weights.items() if n not in kept))
    found = smallest_kept(ITEMS[:40], journal, 10.0, budget=1000)
    assert found.drop == 10.0
    assert len(found.kept) == 30


def test_the_budget_ends_the_search_with_a_set_that_suffices() -> None:
    journal = _needs("n250", "n251", "n499")
    found = smallest_kept(ITEMS, journal, 0.1, budget=8)
    assert found.reached
    assert not found.minimal
    assert {"n250", "n251", "n499"} <= set(found.kept)
    assert found.evaluations <= 9


def test_nothing_suffices() -> None:
    found = smallest_kept(["a", "b"], Journal(lambda kept: 5.0), 1.0)
    assert not found.reached
    assert found.drop == 5.0


@pytest.mark.parametrize("broken", [math.inf, math.nan])
def test_a_broken_output_is_never_within_the_limit(broken: float) -> None:
    found = smallest_kept(["a", "b"], Journal(lambda kept: 0.0 if "b" in kept else broken), 1.0)
    assert found.kept == ("b",)


def test_an_interrupted_search_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    runs = 0

    def evaluate(kept: frozenset[str]) -> float:
        nonlocal runs
        runs += 1
        if runs == 12:
            raise KeyboardInterrupt
        return len({"n10", "n300"} - kept)

    with pytest.raises(KeyboardInterrupt):
        smallest_kept(ITEMS, Journal(evaluate, path, "same"), 0.1)
    path.write_text(path.read_text() + '{"kept": "cut')  # a line that the interruption cut
    journal = Journal(evaluate, path, "same")
    found = smallest_kept(ITEMS, journal, 0.1)
    assert set(found.kept) == {"n10", "n300"}
    assert journal.replayed == 11
    assert runs == 12 + found.evaluations - 11


def test_the_journal_of_another_search_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    smallest_kept(["a"], Journal(lambda kept: 9.0, path, "old"), 1.0)
    found = smallest_kept(["a"], Journal(lambda kept: 0.0, path, "new"), 1.0)
    assert found.kept == ()
    assert json.loads(path.read_text().splitlines()[0]) == {"search": "new"}


def test_where_errors_add_up_the_largest_are_kept_out() -> None:
    """Nine errors in quadrature: leaving out the one of 4 suffices, a wrong order first takes three small ones."""
    sizes = {f"small{i}": 1.0 for i in range(8)} | {"large": 4.0}
    journal = Journal(lambda kept: sum(s**2 for n, s in sizes.items() if n not in kept) ** 0.5)
    order = [*(n for n in sizes if n != "large"), "large"]
    first = smallest_kept(order, journal, 4.2)
    assert len(first.kept) > 1
    best = fewer_kept(order, first, journal, 4.2)
    assert best.kept == ("large",)
    assert best.drop == pytest.approx(8**0.5)
    assert best.evaluations <= first.evaluations + len(order) + 3


def test_the_refinement_never_gives_a_worse_answer() -> None:
    culprits = _needs("n3", "n9")
    first = smallest_kept(ITEMS[:40], culprits, 0.1)
    assert set(fewer_kept(ITEMS[:40], first, culprits, 0.1).kept) == {"n3", "n9"}
