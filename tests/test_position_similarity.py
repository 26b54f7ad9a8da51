"""The chapter on similarity: its exercises' checkers and its moving figure.

Each checker is tried on one wrong answer for each thing that it claims to
notice; test_exercises.py tries it on the stub and the solution. The
figure is compared with the notebook's own functions, slider by slider.
"""

import math

import numpy as np
import pytest

from tests.chapters import definitions
from tests.notebooks import BOOK, Notebook

frameworks = pytest.mark.xdist_group("frameworks")


@pytest.fixture(scope="session")
def book(chapter):
    """The variables of the chapter after a run; not to be changed."""
    return chapter("position_similarity")


# Wrong answers: exercise, what the verdict has to say, the answer.


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


WRONG = [
    (
        "position_distance",
        "this is the square",
        lambda k, d: d - 2 * product(k, d),
    ),
    ("position_distance", "this is the similarity", product),
    (
        "position_distance",
        "the product occurs twice",
        lambda k, d: math.sqrt(d - product(k, d)),
    ),
    (
        "position_distance",
        "these vectors have length 1",
        lambda k, d: math.sqrt(2 - 4 * product(k, d) / d),
    ),
    (
        "position_distance",
        "is half of the squared",
        lambda k, d: d / 2 - product(k, d),
    ),
    ("position_distance", "distance in words", lambda k, d: abs(k)),
    ("position_distance", "1.0000, and not 0.0000, at 0", lambda k, d: 1.0),
    (
        "hands_come_round",
        "a hand has two",
        lambda n, d: 2 * count(n, d, 6.2832),
    ),
    (
        "hands_come_round",
        "the hands that do not come round",
        lambda n, d: d // 2 - count(n, d, 6.2832),
    ),
    ("hands_come_round", "2 pi radians", lambda n, d: count(n, d, 1)),
    ("hands_come_round", "half a round", lambda n, d: count(n, d, math.pi)),
    (
        "hands_come_round",
        "this is the share",
        lambda n, d: count(n, d, 6.2832) / (d // 2),
    ),
    ("hands_come_round", "100 of 256 hands", lambda n, d: 100),
    (
        "hands_come_round",
        "needs 6.28 steps",
        lambda n, d: count(n, 512, 6.2832),
    ),
    ("rotation_halves", "the shape is (3, 3)", lambda k, d: np.eye(d // 2)),
    ("rotation_halves", "interleaved layout", interleaved),
    (
        "rotation_halves",
        "only the rows",
        lambda k, d: in_halves(interleaved(k, d), "rows"),
    ),
    (
        "rotation_halves",
        "only the columns",
        lambda k, d: in_halves(interleaved(k, d), "columns"),
    ),
    (
        "rotation_halves",
        "it steps back",
        lambda k, d: in_halves(interleaved(-k, d)),
    ),
    ("rotation_halves", "this is no rotation", lambda k, d: np.ones((d, d))),
    ("rotation_halves", "not one that steps by 2", lambda k, d: np.eye(d)),
    ("read_offset", "-3 steps lead back", reader(sign=-1)),
    ("read_offset", "the sign is lost", by_product),
    (
        "read_offset",
        "only the fastest hand",
        reader(hands=1, candidates=range(-3, 4)),
    ),
    ("read_offset", "far from the beginning", only_near_the_beginning),
    ("read_offset", "7 instead of 3 steps, from 7", lambda here, there: 7),
    ("mean_cosine", "this is the sum", lambda w, n: looped(w, 0, n, 1)),
    ("mean_cosine", "not from 1 to n", lambda w, n: looped(w, 1, n + 1, n)),
    (
        "mean_cosine",
        "k = n is not one",
        lambda w, n: looped(w, 0, n + 1, n + 1),
    ),
    ("mean_cosine", "twice too large", lambda w, n: looped(w, 0, n, n / 2)),
    ("mean_cosine", "nan for turn 0.0", without_zero),
    ("mean_cosine", "0.0000 for turn 1.0, n 7", lambda w, n: 0.0),
]


@frameworks
@pytest.mark.parametrize(("name", "says", "answer"), WRONG)
def test_wrong_answer_is_diagnosed(book, name, says, answer):
    assert says in book[f"check_{name}"](answer)


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


@frameworks
def test_the_cosine_integral_is_continuous_where_its_two_series_meet(book):
    below, above = (book["cosine_integral"](x) for x in (20 - 1e-12, 20.0))
    assert abs(below - above) < 1e-7
    # Abramowitz and Stegun, table 5.1.
    assert abs(book["cosine_integral"](1.0) - 0.3374039229) < 1e-9


# The moving figure

in_browser = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
PAGE = "book/position_similarity.html"
PARTS = ["axes", "dials", "heights", "hands", "curve", "dot"]
NEEDED = {"frequencies", "similarity", "clock_paths", "clock_words"}


@pytest.fixture(scope="session")
def figure():
    """The notebook's functions for the figure; they need NumPy only."""
    names = {"np": np, "math": math}
    for name, source, _ in definitions(
        Notebook.read(BOOK / "position_similarity.ipynb")
    ):
        if name in NEEDED:
            exec(source, names)
    return names


def assert_shows(page, figure, offset, width):
    """Hold what the page shows to what the notebook's functions say."""
    words = page.locator("#similarity-words").text_content()
    assert words == figure["clock_words"](offset, width)
    for name, path in figure["clock_paths"](offset, width).items():
        drawn = page.locator(f"#similarity-{name}").get_attribute("d")
        assert drawn == path, name


class TestFigure:
    pytestmark = in_browser

    def test_stands_without_scripts(self, visit, figure):
        page = visit(PAGE, java_script_enabled=False)
        assert_shows(page, figure, 6, 6)
        assert page.locator("#similarity-curve").is_visible()
        assert page.locator("#similarity-controls").is_hidden()

    def test_begins_as_the_static_drawing(self, visit, figure):
        page = visit(PAGE)
        assert page.locator("#similarity-controls").is_visible()
        assert_shows(page, figure, 6, 6)

    @pytest.mark.parametrize("key", ["ArrowRight", "ArrowLeft", "End"])
    def test_answers_to_the_keyboard(self, visit, figure, key):
        page = visit(PAGE)
        page.context.set_offline(True)
        page.get_by_label("offset", exact=True).focus()
        page.keyboard.press(key)
        offset = {"ArrowRight": 7, "ArrowLeft": 5, "End": 100}[key]
        assert_shows(page, figure, offset, 6)
        page.keyboard.press("Tab")
        page.keyboard.press("Home")
        assert_shows(page, figure, offset, 2)

    def test_answers_to_the_mouse(self, visit, figure):
        page = visit(PAGE)
        page.context.set_offline(True)
        slider = page.get_by_label("width", exact=True)
        slider.scroll_into_view_if_needed()
        box = slider.bounding_box()
        middle = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + 5, middle)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] - 1, middle, steps=3)
        page.mouse.up()
        assert_shows(page, figure, 6, 128)

    @pytest.mark.parametrize(
        ("offset", "width"), [(0, 2), (3, 6), (44, 64), (100, 128)]
    )
    def test_script_and_notebook_agree(self, visit, figure, offset, width):
        page = visit(PAGE)
        page.get_by_label("offset", exact=True).fill(str(offset))
        page.get_by_label("width", exact=True).fill(str(width))
        assert_shows(page, figure, offset, width)

    def test_is_announced(self, visit):
        words = visit(PAGE).locator("#similarity-words")
        assert words.get_attribute("aria-live") == "polite"
