"""The chapter on positions: checkers, layer, matrix and moving figure.

Each checker is tried on one wrong answer for each thing that it claims to
notice; test_exercises.py tries it on the stub and the solution. The
table is held to a published package, and the figure to the notebook's own
functions, slider by slider.
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
    return chapter("positional_encoding")


# Wrong answers: exercise, what the verdict has to say, the answer.


def wave(exponent, round_=2 * math.pi, base=10000):
    return lambda c, d: round_ * base ** (exponent(c) / d)


def pair(c):
    return 2 * (c // 2)


def parts(n, d, pairs=None):
    """Return sines and cosines; pairs: how many the exponent counts."""
    i = np.arange((d + 1) // 2)
    exponent = i / (pairs or d / 2)
    angles = np.arange(n)[:, None] / 10000**exponent
    return np.sin(angles), np.cos(angles)


def in_turn(sines, cosines):
    return np.stack([sines, cosines], -1).reshape(*sines.shape[:-1], -1)


def halves(n, d, **how):
    return np.concatenate(parts(n, d, **how), axis=1)


def even_only(n, d):
    return halves(n, d - d % 2)


def odd_shifted(n, d):
    return halves(n, d)[:, :d] if d % 2 == 0 else np.zeros((n, d))


def slip(angle):
    """Return an answer to exercise 4 from a function of p, c and d."""

    def encode(positions, d):
        c = np.arange(d)
        angles = angle(np.asarray(positions, float)[..., None], c, d)
        return np.where(c % 2 == 0, np.sin(angles), np.cos(angles))

    return encode


def right_angle(p, c, d):
    return p / 10000 ** (pair(c) / d)


def half_angle(p, c, d):
    step = 2.0 ** np.maximum(np.floor(np.log2(np.maximum(p, 1))) - 7, -99)
    return right_angle(np.round(p / step) * step, c, d)


def one_column(positions, d):
    return np.sin(np.asarray(positions, float))[..., None]


def power_of(power, column=2):
    """Return an answer to exercise 5 that raises an angle to a power."""

    def find(table):
        angle = math.atan2(table[1][column], table[1][column + 1])
        return angle ** power(table.shape[1])

    return find


WRONG = [
    ("wavelength", "not one", wave(pair, round_=1)),
    (
        "wavelength",
        "takes longer",
        lambda c, d: 2 * math.pi / 10000 ** (pair(c) / d),
    ),
    ("wavelength", "exponent is doubled", wave(lambda c: 2 * c)),
    ("wavelength", "its sine's speed", wave(lambda c: c)),
    ("wavelength", "not 1000", wave(pair, base=1000)),
    ("wavelength", "not the first's", wave(lambda c: 0)),
    (
        "wavelength",
        "for column 511 of 512",
        lambda c, d: wave(pair)(min(c, 9), d),
    ),
    ("halves_table", "interleaved", lambda n, d: in_turn(*parts(n, d))),
    (
        "halves_table",
        "sines come first",
        lambda n, d: np.concatenate(parts(n, d)[::-1], axis=1),
    ),
    (
        "halves_table",
        "tensor2tensor",
        lambda n, d: halves(n, d, pairs=d / 2 - 1),
    ),
    ("halves_table", "(10, 5)", halves),
    ("halves_table", "not (10, 5)", even_only),
    ("halves_table", "wrong at width 5", odd_shifted),
    ("halves_table", "instead of (10, 6)", lambda n, d: np.zeros((d, n))),
    (
        "halves_table",
        "scrambled",
        lambda n, d: (
            in_turn(*parts(n, d))
            .reshape(n, 2, -1)
            .swapaxes(1, 2)
            .reshape(n, d)
        ),
    ),
    ("halves_table", "row 1 should be", lambda n, d: np.zeros((n, d))),
    (
        "word_positions",
        "counted as words",
        lambda mask: np.arange(5) + 0 * mask,
    ),
    ("word_positions", "counted as words", lambda mask: np.arange(5) * mask),
    ("word_positions", "is 0, not 1", lambda mask: mask.cumsum(1)),
    ("word_positions", "is 0, not 1", lambda mask: mask.cumsum(1) * mask),
    ("word_positions", "position -1", lambda mask: mask.cumsum(1) - 1),
    ("word_positions", "down the batch", lambda mask: mask.cumsum(0) - 1),
    ("word_positions", "instead of (2, 5)", lambda mask: mask.sum(1)),
    (
        "word_positions",
        "should have position 0",
        lambda mask: np.maximum(mask.cumsum(1) - 1, 0) + 7 * ~mask,
    ),
    ("word_positions", "gives [0 0 0 0 0]", lambda mask: 0 * mask),
    (
        "encode_positions",
        "not divided",
        slip(lambda p, c, d: p * 10000 ** (pair(c) / d)),
    ),
    ("encode_positions", "as in 1 // 2", one_column),
    (
        "encode_positions",
        "exponent is doubled",
        slip(lambda p, c, d: p / 10000 ** (2 * c / d)),
    ),
    (
        "encode_positions",
        "forgot the - 1",
        slip(lambda p, c, d: p / 10000 ** (c / d)),
    ),
    (
        "encode_positions",
        "1000 instead of 10000",
        slip(lambda p, c, d: p / 1000 ** (pair(c) / d)),
    ),
    ("encode_positions", "half precision", slip(half_angle)),
    (
        "encode_positions",
        "in halves",
        lambda p, d: slip(right_angle)(p, d)[..., [0, 2, 4, 1, 3, 5]],
    ),
    (
        "encode_positions",
        "use the numbers given",
        lambda p, d: slip(right_angle)(np.arange(3) + 0 * p, d),
    ),
    (
        "encode_positions",
        "not (2, 3, 6)",
        lambda p, d: slip(right_angle)(p.ravel(), d),
    ),
    ("encode_positions", "position 1 gives", lambda p, d: np.ones((2, 3, d))),
    ("find_base", "speed 1 with every base", power_of(lambda d: -d / 2, 0)),
    ("find_base", "its root", power_of(lambda d: -d / 4)),
    ("find_base", "its square", power_of(lambda d: -d)),
    ("find_base", "its reciprocal", power_of(lambda d: d / 2)),
    ("find_base", "second denominator", power_of(lambda d: -1)),
    ("find_base", "last denominator", power_of(lambda d: 1 - d / 2)),
    ("find_base", "without looking", lambda table: 10000),
    ("find_base", "7.0 for base 10000", lambda table: 7),
]


@frameworks
@pytest.mark.parametrize(("name", "says", "answer"), WRONG)
def test_wrong_answer_is_diagnosed(book, name, says, answer):
    assert says in book[f"check_{name}"](answer)


@frameworks
@pytest.mark.parametrize("suffix", ["", "_tf"])
def test_answers_in_either_framework_are_accepted(book, suffix):
    def halves_table(seq_len, d_model):
        table = book[f"position_table{suffix}"](seq_len, d_model)
        parts = [table[:, 0::2], table[:, 1::2]]
        if suffix == "":
            return book["torch"].cat(parts, dim=1)
        return book["tf"].concat(parts, axis=1)

    assert book["check_halves_table"](halves_table) == "Exercise 2: correct."


# The table and the layer


@frameworks
@pytest.mark.parametrize("seq_len", [1, 10, 300])
def test_table_equals_a_published_one(book, seq_len):
    from positional_encodings.torch_encodings import PositionalEncoding1D

    torch = book["torch"]
    for d_model in (2, 6, 128):
        theirs = PositionalEncoding1D(d_model)(
            torch.zeros(1, seq_len, d_model)
        )
        ours = book["position_table"](seq_len, d_model)
        assert (ours - theirs[0]).abs().max() < 1e-4
    # At odd widths that package takes the next even width's denominators.
    wider = book["position_table"](seq_len, 6)[:, :5]
    theirs = PositionalEncoding1D(5)(torch.zeros(1, seq_len, 5))[0]
    assert (wider - theirs).abs().max() < 1e-4


@frameworks
def test_twin_equals_a_published_one(book):
    from positional_encodings.tf_encodings import TFPositionalEncoding1D

    tf = book["tf"]
    # Called without its tf.function, which takes longer to compile.
    call = TFPositionalEncoding1D.call.python_function
    theirs = call(TFPositionalEncoding1D(6), tf.zeros((1, 10, 6)))
    assert np.abs(theirs[0] - book["position_table_tf"](10, 6)).max() < 1e-5


@frameworks
def test_seed_table_of_multiplied_angles_is_reproduced(book):
    # As printed in notebooks that multiply, width 10, rows 4 and 8.
    known = {
        4: [-0.7568, -0.6536, 0.1054, 0.9944, 0.8296, -0.5584, -0.5268],
        8: [0.9894, -0.1455, 0.2095, 0.9778, -0.9265, -0.3764, -0.8955],
    }
    table = book["table_of"](book["ANGLES"]["multiplied"], 10, 10)
    for row, numbers in known.items():
        assert np.allclose(table[row, :7], numbers, atol=1e-3)


@frameworks
def test_buffer_follows_type_and_device_and_is_not_saved(book):
    torch = book["torch"]
    layer = book["PositionalEncoding"](6, max_len=10)
    assert layer.state_dict() == {} and not list(layer.parameters())
    assert layer.double()(torch.zeros(3, 6).double()).dtype == torch.float64
    half = layer.half()(torch.zeros(3, 6).half())
    assert (half.float() - book["table"][:3]).abs().max() < 1e-3
    assert layer.to("meta").table.is_meta


@frameworks
def test_twin_follows_its_policy(book):
    tf = book["tf"]
    layer = book["PositionalEncodingTF"](6, max_len=10, dtype="mixed_bfloat16")
    encoded = layer(tf.zeros((1, 3, 6)))
    assert encoded.dtype == tf.bfloat16
    assert np.abs(
        tf.cast(encoded[0], tf.float32) - book["table"][:3]
    ).max() < (0.005)


@frameworks
def test_twin_takes_lengths_that_are_known_late(book):
    tf = book["tf"]
    layer = book["PositionalEncodingTF"](6, max_len=10)
    compiled = tf.function(
        layer, input_signature=[tf.TensorSpec((None, None, 6))]
    )
    for length in (1, 4, 10):
        encoded = compiled(tf.zeros((2, length, 6)))
        assert np.allclose(encoded[1], book["table_tf"][:length])
    with pytest.raises(tf.errors.InvalidArgumentError):
        compiled(tf.zeros((2, 12, 6)))


@frameworks
@pytest.mark.parametrize("shape", [(2, 11, 6), (11, 6), (2, 3, 5), (2, 3, 1)])
def test_layers_refuse_what_does_not_fit(book, shape):
    layers = [
        (book["PositionalEncoding"](6, 10), book["torch"].zeros(shape)),
        (book["PositionalEncodingTF"](6, 10), book["tf"].zeros(shape)),
    ]
    for layer, x in layers:
        with pytest.raises(ValueError, match="build the layer with"):
            layer(x)


# The matrix


@frameworks
def test_every_mistake_is_caught_and_the_right_one_passes(book):
    results = book["RESULTS"]
    assert len(results) == 10 and all(results.pop("right").values())
    for name, row in results.items():
        assert not all(row.values()), name


# The moving figure

in_browser = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
PAGE = "book/positional_encoding.html"
NEEDED = {"hands", "wave_paths", "wave_words"}


@pytest.fixture(scope="session")
def waves():
    """The notebook's functions for the figure; they need NumPy only."""
    names = {"np": np, "math": math}
    for name, source, _ in definitions(
        Notebook.read(BOOK / "positional_encoding.ipynb")
    ):
        if name in NEEDED:
            exec(source, names)
    return names


def assert_shows(page, waves, position, width, power):
    """Hold what the page shows to what the notebook's functions say."""
    words = page.locator("#waves-words").text_content()
    assert words == waves["wave_words"](position, width, power)
    for name, path in waves["wave_paths"](position, width, power).items():
        drawn = page.locator(f"#waves-{name}").get_attribute("d")
        assert drawn == path, name


class TestFigure:
    pytestmark = in_browser

    def test_stands_without_scripts(self, visit, waves):
        page = visit(PAGE, java_script_enabled=False)
        assert_shows(page, waves, 5, 16, 4)
        assert page.locator("#waves-frame").is_visible()
        assert page.locator("#waves-controls").is_hidden()

    def test_begins_as_the_static_drawing(self, visit, waves):
        page = visit(PAGE)
        assert page.locator("#waves-controls").is_visible()
        assert_shows(page, waves, 5, 16, 4)

    def test_answers_to_the_keyboard(self, visit, waves):
        page = visit(PAGE)
        page.context.set_offline(True)
        page.get_by_label("width", exact=True).focus()
        page.keyboard.press("ArrowRight")
        assert_shows(page, waves, 5, 18, 4)
        page.keyboard.press("Tab")
        page.keyboard.press("Home")
        assert_shows(page, waves, 5, 18, 1)
        page.keyboard.press("Tab")
        page.keyboard.press("End")
        assert_shows(page, waves, 31, 18, 1)

    @pytest.mark.parametrize(
        ("name", "shown"),
        [
            ("width", (5, 32, 4)),
            ("base, as a power of ten", (5, 16, 5)),
            ("position", (31, 16, 4)),
        ],
    )
    def test_answers_to_the_mouse(self, visit, waves, name, shown):
        page = visit(PAGE)
        page.context.set_offline(True)
        slider = page.get_by_label(name, exact=True)
        slider.scroll_into_view_if_needed()
        box = slider.bounding_box()
        middle = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + 5, middle)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] - 1, middle, steps=3)
        page.mouse.up()
        assert_shows(page, waves, *shown)

    def test_script_and_notebook_agree(self, visit, waves):
        page = visit(PAGE)
        for shown in [(0, 2, 1), (7, 6, 4), (20, 32, 2), (31, 30, 5)]:
            for name, value in zip(
                ("position", "width", "base, as a power of ten"),
                shown,
                strict=True,
            ):
                page.get_by_label(name, exact=True).fill(str(value))
            assert_shows(page, waves, *shown)

    def test_is_announced(self, visit):
        words = visit(PAGE).locator("#waves-words")
        assert words.get_attribute("aria-live") == "polite"
