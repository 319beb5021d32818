from __future__ import annotations

import pytest

from deploychain.errors import ConfigError
from deploychain.profiles import NetworkInput, Profile, make_profiles
from deploychain.settings import ShapeRange

IMAGE = NetworkInput("image", (-1, 3, 32, 32), ("batch", "", "", ""))


def shape_range(low: tuple[int, ...], opt: tuple[int, ...], high: tuple[int, ...]) -> ShapeRange:
    return ShapeRange(min=low, opt=opt, max=high)


def test_the_batch_runs_from_one_to_twice_opt() -> None:
    made, notes = make_profiles([IMAGE], {}, 4, {})
    assert made == {"image": Profile((1, 3, 32, 32), (4, 3, 32, 32), (8, 3, 32, 32))}
    assert notes == ()


def test_a_fixed_input_needs_no_profile() -> None:
    made, _ = make_profiles([NetworkInput("x", (1, 3), ("", ""))], {}, 8, {})
    assert made == {}


def test_the_batch_is_recognised_by_name_on_another_axis() -> None:
    state = NetworkInput("state", (2, -1, 16), ("", "batch", ""))
    made, _ = make_profiles([IMAGE, state], {}, 8, {})
    assert made["state"] == Profile((2, 1, 16), (2, 8, 16), (2, 16, 16))


def test_other_axes_come_from_data_and_are_told() -> None:
    text = NetworkInput("tokens", (-1, -1), ("batch", "sequence"))
    made, notes = make_profiles([text], {}, 8, {"tokens": (1, 7)})
    assert made["tokens"] == Profile((1, 3), (8, 7), (16, 14))
    assert "sequence" in notes[0] and "build.shapes.tokens" in notes[0]


def test_axis_names_of_the_export_proof_serve_too() -> None:
    text = NetworkInput("tokens", (-1, -1), ("batch", "sequence"))
    made, _ = make_profiles([text], {}, 8, {}, {"batch": 2, "sequence": 10})
    assert made["tokens"] == Profile((1, 5), (8, 10), (16, 20))


def test_without_data_the_user_is_asked() -> None:
    text = NetworkInput("tokens", (-1, -1), ("batch", "sequence"))
    with pytest.raises(ConfigError, match="sequence") as caught:
        make_profiles([text], {}, 8, {"tokens": (1, 7, 3)})  # an example of another rank says nothing
    assert "shapes" in caught.value.remedy


def test_what_the_user_says_wins() -> None:
    asked = shape_range((2, 3, 32, 32), (3, 3, 32, 32), (5, 3, 32, 32))
    made, _ = make_profiles([IMAGE], {"image": asked}, 8, {"image": (1, 3, 32, 32)})
    assert made["image"] == Profile(asked.min, asked.opt, asked.max)


def test_an_unknown_input_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="imgae") as caught:
        make_profiles([IMAGE], {"imgae": shape_range((1,), (1,), (1,))}, 8, {})
    assert "'image'" in caught.value.remedy


def test_a_fixed_axis_cannot_be_asked_for_in_another_size() -> None:
    with pytest.raises(ConfigError, match="axis 2 is fixed to 32"):
        make_profiles([IMAGE], {"image": shape_range((1, 3, 32, 32), (1, 3, 64, 32), (1, 3, 64, 32))}, 8, {})


def test_the_rank_must_fit() -> None:
    with pytest.raises(ConfigError, match=r"\[batch, 3, 32, 32\]"):
        make_profiles([IMAGE], {"image": shape_range((1, 3), (1, 3), (1, 3))}, 8, {})
