"""The chapter on similarity: its exercises' checkers.

Each checker is tried on one wrong answer for each thing that it claims to
notice; test_exercises.py tries it on the stub and the solution.
"""

import math

import numpy as np
import pytest

frameworks = pytest.mark.xdist_group("frameworks")


@pytest.fixture(scope="session")
def book(chapter):
    """The variables of the chapter after a run; not to be changed."""
    return chapter("position_similarity")


# Wrong answers: exercise, the verdict, the answer.


def turns(d_model):
    return 10000.0 ** (-np.arange(0, d_model, 2) / d_model)


def product(offset, d_model):
    return np.cos(offset * turns(d_model)).sum()


def count(length, d_model, radians):
    return int((radians / turns(d_model) <= length).sum())


def interleaved(offset, d_model):
    matrix = np.zeros((d_model, d_model))
    for i, turn in enumerate(turns(d_model)):
        cos, sin = math.cos(offset * turn), math.sin(offset * turn)
        block = slice(2 * i, 2 * i + 2)
        matrix[block, block] = [[cos, sin], [-sin, cos]]
    return matrix


def in_halves(matrix, axes="both"):
    order = [*range(0, len(matrix), 2), *range(1, len(matrix), 2)]
    if axes in ("both", "rows"):
        matrix = matrix[order]
    return matrix[:, order] if axes in ("both", "columns") else matrix


def reader(sign=1, hands=32, candidates=range(-50, 51)):
    """Return an answer that compares `there` with turns of `here`."""

    def read(here, there):
        def gap(k):
            moved = interleaved(sign * k, 64) @ here
            return np.abs(moved - there)[: 2 * hands].max()

        return min(candidates, key=gap)

    return read


def by_product(here, there):
    """Return the offset that the dot product alone suggests."""
    return min(range(51), key=lambda k: abs(product(k, 64) - here @ there))


def only_near_the_beginning(here, there):
    rows = np.array([interleaved(p, 64)[:, 1::2].sum(1) for p in range(80)])
    p, q = (np.abs(rows - row).max(1).argmin() for row in (here, there))
    return int(q - p)


def looped(turn, start, stop, divisor):
    return sum(math.cos(turn * k) for k in range(start, stop)) / divisor


def without_zero(turn, n):
    collapsed = math.sin(turn * (n - 0.5)) / math.sin(turn / 2)
    return (collapsed + 1) / (2 * n)


def distance(offset, d_model):
    return math.sqrt(d_model - 2 * product(offset, d_model))


def round_hands(length, d_model):
    return count(length, d_model, 6.2832)


def mean(turn, n):
    return looped(turn, 0, n, n)


def far_back(here, there):
    """Return an offset of the wrong sign where it is far from 0."""
    offset = reader()(here, there)
    return -offset if offset > 3 else offset


def wrong_at(*case, answer, found=7.0):
    """Return an answer that is wrong in one case only."""
    return lambda *given: found if given == case else answer(*given)


WRONG = [
    (
        "position_distance",
        "Exercise 1: this is the square of the distance; take the root.",
        lambda k, d: d - 2 * product(k, d),
    ),
    (
        "position_distance",
        (
            "Exercise 1: this is the similarity; the distance falls when it "
            "rises."
        ),
        product,
    ),
    (
        "position_distance",
        "Exercise 1: the product occurs twice in |a - b|^2.",
        lambda k, d: math.sqrt(d - product(k, d)),
    ),
    (
        "position_distance",
        "Exercise 1: these vectors have length 1, ours not.",
        lambda k, d: math.sqrt(2 - 4 * product(k, d) / d),
    ),
    (
        "position_distance",
        "Exercise 1: what is missing to d/2 is half of the squared distance.",
        lambda k, d: d / 2 - product(k, d),
    ),
    (
        "position_distance",
        "Exercise 1: this is the distance in words, not of the vectors.",
        lambda k, d: abs(k),
    ),
    (
        "position_distance",
        "Exercise 1: 1.0000, and not 0.0000, at 0.",
        lambda k, d: 1.0,
    ),
    (
        "hands_come_round",
        "Exercise 2: these are columns; a hand has two.",
        lambda n, d: 2 * count(n, d, 6.2832),
    ),
    (
        "hands_come_round",
        "Exercise 2: these are the hands that do not come round.",
        lambda n, d: d // 2 - count(n, d, 6.2832),
    ),
    (
        "hands_come_round",
        "Exercise 2: a round is 2 pi radians, not one.",
        lambda n, d: count(n, d, 1),
    ),
    (
        "hands_come_round",
        "Exercise 2: half a round counts for nothing.",
        lambda n, d: count(n, d, math.pi),
    ),
    (
        "hands_come_round",
        "Exercise 2: this is the share; return the number.",
        lambda n, d: count(n, d, 6.2832) / (d // 2),
    ),
    (
        "hands_come_round",
        "Exercise 2: 100 of 256 hands; it should be 123.",
        lambda n, d: 100,
    ),
    (
        "hands_come_round",
        "Exercise 2: the fastest hand needs 6.28 steps, at any width.",
        lambda n, d: count(n, 512, 6.2832),
    ),
    (
        "rotation_halves",
        "Exercise 3: the shape is (3, 3) instead of (6, 6).",
        lambda k, d: np.eye(d // 2),
    ),
    (
        "rotation_halves",
        "Exercise 3: this is the matrix of the interleaved layout.",
        interleaved,
    ),
    (
        "rotation_halves",
        "Exercise 3: only the rows are reordered; the columns are not.",
        lambda k, d: in_halves(interleaved(k, d), "rows"),
    ),
    (
        "rotation_halves",
        "Exercise 3: only the columns are reordered; the rows are not.",
        lambda k, d: in_halves(interleaved(k, d), "columns"),
    ),
    (
        "rotation_halves",
        "Exercise 3: it steps back; mind the sign of the sine.",
        lambda k, d: in_halves(interleaved(-k, d)),
    ),
    (
        "rotation_halves",
        "Exercise 3: this is no rotation: its rows have not length 1.",
        lambda k, d: np.ones((d, d)),
    ),
    (
        "rotation_halves",
        "Exercise 3: a rotation, but not one that steps by 2.",
        lambda k, d: np.eye(d),
    ),
    (
        "read_offset",
        "Exercise 4: -3 steps lead back to `here`.",
        reader(sign=-1),
    ),
    (
        "read_offset",
        "Exercise 4: the sign is lost, as S(-k) = S(k).",
        by_product,
    ),
    (
        "read_offset",
        "Exercise 4: only the fastest hand is read.",
        reader(hands=1, candidates=range(-3, 4)),
    ),
    (
        "read_offset",
        "Exercise 4: it fails far from the beginning of the text.",
        only_near_the_beginning,
    ),
    (
        "read_offset",
        "Exercise 4: 7 instead of 3 steps, from 7.",
        lambda here, there: 7,
    ),
    (
        "mean_cosine",
        "Exercise 5: this is the sum; divide it by n.",
        lambda w, n: looped(w, 0, n, 1),
    ),
    (
        "mean_cosine",
        "Exercise 5: k runs from 0 to n - 1, not from 1 to n.",
        lambda w, n: looped(w, 1, n + 1, n),
    ),
    (
        "mean_cosine",
        "Exercise 5: there are n terms; k = n is not one of them.",
        lambda w, n: looped(w, 0, n + 1, n + 1),
    ),
    (
        "mean_cosine",
        "Exercise 5: twice too large: mind the 2 before the sine.",
        lambda w, n: looped(w, 0, n, n / 2),
    ),
    ("mean_cosine", "Exercise 5: nan for turn 0.0, n 9.", without_zero),
    ("mean_cosine", "Exercise 5: 0.0000 for turn 1.0, n 7.", lambda w, n: 0.0),
    *(
        (
            "position_distance",
            f"Exercise 1: 7.0000, and not {right}, at {offset}.",
            wrong_at(offset, width, answer=distance),
        )
        for offset, width, right in [
            (6, 6, "0.3961"),
            (-3, 6, "1.9998"),
            (1, 512, "3.7143"),
        ]
    ),
    (
        "position_distance",
        "Exercise 1: this is the square of the distance; take the root.",
        lambda k, d: np.float32(distance(k, d) ** 2),
    ),
    (
        "hands_come_round",
        "Exercise 2: 100 of 256 hands; it should be 123.",
        wrong_at(512, 512, answer=round_hands, found=100),
    ),
    *(
        (
            "hands_come_round",
            "Exercise 2: the fastest hand needs 6.28 steps, at any width.",
            wrong_at(length, 6, answer=round_hands, found=2),
        )
        for length in (6, 7)
    ),
    ("read_offset", "Exercise 4: -44 steps lead back to `here`.", far_back),
    (
        "read_offset",
        "Exercise 4: only the fastest hand is read.",
        reader(hands=1, candidates=range(-44, 45)),
    ),
    (
        "read_offset",
        "Exercise 4: 1 instead of 0 steps, from 5.",
        lambda here, there: reader()(here, there) or 1,
    ),
    (
        "read_offset",
        "Exercise 4: 2 instead of 3 steps, from 7.",
        lambda here, there: 2,
    ),
    *(
        (
            "mean_cosine",
            f"Exercise 5: 7.0000 for turn {turn}, n {n}.",
            wrong_at(turn, n, answer=mean),
        )
        for turn, n in [(0.01, 1000), (-0.5, 10), (3.0, 1), (0.0, 9)]
    ),
]


@frameworks
@pytest.mark.parametrize(("name", "says", "answer"), WRONG)
def test_wrong_answer_is_diagnosed(book, name, says, answer):
    assert book[f"check_{name}"](answer) == says


@frameworks
@pytest.mark.parametrize("layout", ["torch", "tensorflow"])
def test_answers_in_either_framework_are_accepted(book, layout):
    suffix = "" if layout == "torch" else "_tf"
    order = [0, 2, 4, 1, 3, 5]

    def answer(offset, d_model):
        matrix = book[f"rotation{suffix}"](offset, d_model)
        if layout == "torch":
            return matrix[order][:, order]
        import tensorflow as tf

        return tf.gather(tf.gather(matrix, order, axis=0), order, axis=1)

    assert book["check_rotation_halves"](answer) == "Exercise 3: correct."


RIGHT = [
    (
        "position_distance",
        lambda k, d: np.sqrt(np.float32(d) - 2 * np.float32(product(k, d))),
    ),
    ("position_distance", wrong_at(0, 8, answer=distance, found=3e-8)),
]


@frameworks
@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_rounded_answers_are_accepted(book, name, answer):
    assert book[f"check_{name}"](answer) == "Exercise 1: correct."


@frameworks
@pytest.mark.parametrize(
    ("x", "right"),
    [
        (1, 0.3374039229),  # Abramowitz and Stegun, table 5.1
        (20 - 1e-12, 0.0444198208454),  # the rest computed by mpmath
        (20, 0.0444198208454),
        (22, 0.00164069191574),
        (60, -0.00481324337744),
    ],
)
def test_the_cosine_integral_on_both_sides_of_where_its_series_meet(
    book, x, right
):
    assert abs(book["cosine_integral"](x) - right) < 1e-9


@frameworks
@pytest.mark.parametrize("p", [50, 51, 10_000])
def test_every_offset_is_read(book, p):
    noon = np.tile([0.0, 1.0], 32)
    for k in range(-50, 51):
        here, there = (
            book["rotation"](t, 64).numpy() @ noon for t in (p, p + k)
        )
        assert book["read_offset_solution"](here, there) == k


@frameworks
@pytest.mark.parametrize("suffix", ["", "_tf"])
def test_an_odd_width_ends_with_a_sine(book, suffix):
    table = book[f"position_table{suffix}"](8, 5)
    for (p, c), found in np.ndenumerate(np.asarray(table)):
        angle = p / 10000 ** (2 * (c // 2) / 5)
        right = math.cos(angle) if c % 2 else math.sin(angle)
        assert math.isclose(found, right, abs_tol=1e-6)


@frameworks
def test_all_steps_of_a_sequence_are_looked_at(book):
    # cos falls from 0 to 3 and has risen at 4.
    assert book["in_order"](4, 2) and not book["in_order"](5, 2)


# The moving figure; test_interactive.py holds the page to these functions


@frameworks
@pytest.mark.parametrize(
    ("offset", "width", "words"),
    [
        (3, 2, "−0.9900 = −0.9900 of 1"),
        (300, 4, "−0.0221 − 0.9900 = −1.0121 of 2"),
        (0, 8, "1.0000 + 1.0000 + 1.0000 + 1.0000 = 4.0000 of 4"),
        (0, 10, "1.0000 + 1.0000 + 1.0000 + 1.0000 + 1 more = 5.0000 of 5"),
    ],
)
def test_the_terms_are_said(book, offset, width, words):
    said = book["clock_words"](offset, width)
    assert said == f"Width {width}, offset {offset}: {words}"


@frameworks
@pytest.mark.parametrize("width", [2, 4, 16, 18, 128])
def test_at_most_eight_clocks_are_drawn_fastest_and_slowest_included(
    book, width
):
    paths = book["clock_paths"](2, width)
    clocks = min(width // 2, 8)
    assert paths["dials"].count("M") == clocks
    hands = paths["hands"].split("M")[1:]
    for j, turn in (0, 1), (clocks - 1, 10000 ** (2 / width - 1)):
        x, y = 24 + 44 * j, 26
        tip = x + 19 * math.sin(2 * turn), y - 19 * math.cos(2 * turn)
        assert hands[j] == f"{x} {y}L{tip[0]:.2f} {tip[1]:.2f}"
