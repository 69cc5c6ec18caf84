"""The persistent map: old maps do not change, every key is found, and the order is that of the keys."""

from __future__ import annotations

import pytest

from backedge.core.state.persistent_map import Map

LARGE = 100
"""Enough entries to make a map a trie."""


def filled(count: int) -> Map[int, int]:
    numbers: Map[int, int] = Map()
    for number in range(count):
        numbers = numbers.set(number, number * number)
    return numbers


def test_setting_a_key_does_not_change_the_old_map() -> None:
    before: Map[str, int] = Map()
    after = before.set("a", 1)
    assert "a" not in before and len(before) == 0
    assert after["a"] == 1 and len(after) == 1


def test_setting_a_key_again_replaces_its_value_and_keeps_the_size() -> None:
    twice = Map[str, int]().set("a", 1).set("a", 2)
    assert twice["a"] == 2 and len(twice) == 1


def test_a_thousand_keys_are_all_found() -> None:
    numbers = filled(1_000)
    assert len(numbers) == 1_000
    assert all(numbers[number] == number * number for number in range(1_000))
    assert numbers.get(1_000) is None


@pytest.mark.parametrize("size", [3, 100])
def test_a_missing_key_gives_the_default_or_an_error_that_names_it(size: int) -> None:
    numbers = filled(size)
    assert numbers.get(777) is None
    assert numbers.get(777, -1) == -1
    assert 777 not in numbers
    with pytest.raises(KeyError, match="777"):
        numbers[777]


def test_a_missing_key_that_shares_a_slot_is_not_found() -> None:
    assert filled(LARGE).get(LARGE + 28) is None
    assert filled(1).get(32) is None


def test_items_and_values_come_in_the_order_of_the_keys() -> None:
    words = Map[str, int]().set("c", 3).set("a", 1).set("b", 2)
    assert words.items() == [("a", 1), ("b", 2), ("c", 3)]
    assert words.values() == [1, 2, 3]


def test_keys_that_share_a_slot_are_both_found() -> None:
    numbers = filled(LARGE).set(1 << 20, -1).set(1 << 30, -2)
    assert [numbers[0], numbers[32], numbers[1 << 20], numbers[1 << 30]] == [0, 1_024, -1, -2]
    assert len(numbers) == LARGE + 2


def test_keys_with_the_same_hash_are_both_found() -> None:
    # In CPython -1 and -2 have the same hash.
    for numbers in (Map[int, int](), filled(LARGE)):
        both = numbers.set(-1, 7).set(-2, 8).set(-1, 9)
        assert both.items()[:2] == [(-2, 8), (-1, 9)]
        assert len(both) == len(numbers) + 2
        assert numbers.set(-1, 7).get(-2) is None


def test_maps_are_equal_by_content_whatever_the_order_of_setting() -> None:
    one = Map[str, int]().set("a", 1).set("b", 2)
    two = Map[str, int]().set("b", 2).set("a", 1)
    assert one == two
    assert one != two.set("a", 9)
    assert one != {"a": 1, "b": 2}


def test_setting_a_key_of_a_large_map_again_keeps_its_size() -> None:
    numbers = filled(LARGE)
    assert len(numbers.set(5, 0)) == LARGE
    assert numbers[5] == 25


def test_large_maps_are_equal_by_content_too() -> None:
    assert filled(LARGE) == filled(LARGE).set(3, 9)
    assert [key for key, _ in filled(LARGE).items()] == list(range(LARGE))


def test_a_map_shows_its_content() -> None:
    assert repr(filled(2)) == "Map({0: 0, 1: 1})"
