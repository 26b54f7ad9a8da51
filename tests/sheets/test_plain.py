"""Plain values come through as they are, and nothing else does."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from tools.sheets.plain import packed, unpacked

VALUES = [
    None,
    True,
    3,
    2.5,
    float("inf"),
    1 + 2j,
    "text",
    [],
    (1, [2, {"a": {3}}]),
    {(0, 1): Fraction(1, 3)},
    frozenset("ab"),
    np.float32(0.1),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda x: type(x).__name__)
def test_a_plain_value_comes_through(value):
    found = unpacked(packed(value))
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize("kind", ["bool", "int8", "float16", "complex64"])
@pytest.mark.parametrize("shape", [(2, 3), (0, 2), (1,)])
def test_an_array_comes_through(kind, shape):
    array = np.arange(np.prod(shape)).reshape(shape).astype(kind)
    found = unpacked(packed(array.T))
    np.testing.assert_array_equal(found, array.T, strict=True)
    found[...] = 0  # it may be written to


def test_numbers_of_other_kinds_come_as_those():
    assert unpacked(packed(range(3))) == [0, 1, 2]
    assert unpacked(packed(Decimal("0.5"))) == Fraction(1, 2)
    halves = np.array([[Fraction(1, 2), 1]], object)
    assert unpacked(packed(halves)) == halves.tolist()


class Number(float):
    """A number of a student's own."""


ITSELF = []
ITSELF.append(ITSELF)


@pytest.mark.parametrize(
    "value",
    [Number(1), print, ITSELF, 10**9999],
    ids=lambda x: type(x).__name__,
)
def test_an_object_stands_in_for_anything_else(value):
    assert type(unpacked(packed(value))) is object


@pytest.mark.parametrize("text", ['["exec", "1"]', "[[]]", '{"list": 1}'])
def test_a_text_runs_nothing(text):
    assert type(unpacked(text)) is object


def test_a_text_holds_no_addresses():
    with pytest.raises(ValueError, match="OBJECT"):
        unpacked('["array", "O", [1], "AAAAAAAAAAA="]')


def test_an_error_is_of_a_kind_that_python_has():
    found = unpacked(packed(np.linalg.LinAlgError("singular")))
    assert type(found) is ValueError and str(found) == "singular"
