"""The chapter on positions: checkers, layer, factor and matrix.

Each checker is tried on one wrong answer for each thing that it claims to
notice; test_exercises.py tries it on the stub and the solution. The
table is held to a published package.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.xdist_group("frameworks")


# Wrong answers: exercise, the verdict, the answer.


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


def power_of(power, column=2):
    """Return an answer to exercise 5 that raises an angle to a power."""

    def find(table):
        angle = math.atan2(table[1][column], table[1][column + 1])
        return angle ** power(table.shape[1])

    return find


find = power_of(lambda d: -d / 2)


def drawn(std, zero_row=7):
    """Return an answer that draws with a standard deviation of std(d).

    zero_row: which row is zero, or which rows are; None for no row.
    """

    def table(vocab_size, d_model, pad_id, seed):
        rng = np.random.default_rng(seed)
        rows = std(d_model) * rng.standard_normal((vocab_size, d_model))
        if zero_row is not None:
            rows[zero_row] = 0
        return rows

    return table


def s_of(d):
    return (2 * d) ** -0.5


def pads(std):
    """Return an answer that draws with std(d), and zeroes row pad_id."""

    def table(vocab_size, d_model, pad_id, seed):
        return drawn(std, pad_id)(vocab_size, d_model, pad_id, seed)

    return table


def padded_left(mask):
    """Return places counted from the first word, also after the last."""
    return np.maximum(np.arange(mask.shape[1]) - mask.argmax(1)[:, None], 0)


WRONG = {
    "wavelength": [
        (
            "column 3 of 6: a round is 2 pi radians, not one.",
            wave(pair, round_=1),
        ),
        (
            "column 3 of 6: you multiplied; a slow hand takes longer.",
            lambda c, d: 2 * math.pi / 10000 ** (pair(c) / d),
        ),
        ("column 3 of 6: the exponent is doubled.", wave(lambda c: 2 * c)),
        ("column 3 of 6: it is its sine's speed.", wave(lambda c: c)),
        ("column 3 of 6: the base is 10000, not 1000.", wave(pair, base=1000)),
    ],
    "halves_table": [
        (
            "this is the interleaved layout, unchanged.",
            lambda n, d: in_turn(*parts(n, d)),
        ),
        (
            "the sines come first.",
            lambda n, d: np.concatenate(parts(n, d)[::-1], axis=1),
        ),
        (
            "these are tensor2tensor's speeds, d/2 - 1.",
            lambda n, d: halves(n, d, pairs=d / 2 - 1),
        ),
        ("the shape is (10, 6) instead of (10, 5).", halves),
        (
            "these are not pairs; reshape to (-1, 3, 2).",
            lambda n, d: (
                in_turn(*parts(n, d))
                .reshape(n, 2, -1)
                .swapaxes(1, 2)
                .reshape(n, d)
            ),
        ),
    ],
    "word_positions": [
        (
            "padding on the left is counted as words.",
            lambda mask: np.arange(mask.shape[1]) + 0 * mask,
        ),
        ("the first word is 0, not 1.", lambda mask: mask.cumsum(1)),
        (
            "a place before the first word has position -1.",
            lambda mask: mask.cumsum(1) - 1,
        ),
        (
            "you count down the batch, not along it.",
            lambda mask: mask.cumsum(0) - 1,
        ),
        (
            "places without a word should have position 0.",
            lambda mask: np.maximum(mask.cumsum(1) - 1, 0),
        ),
    ],
    "encode_positions": [
        (
            "the positions are multiplied, not divided.",
            slip(lambda p, c, d: p * 10000 ** (pair(c) / d)),
        ),
        (
            "the exponent is doubled: i is a column, or a pair.",
            slip(lambda p, c, d: p / 10000 ** (2 * c / d)),
        ),
        (
            "odd columns have a speed of their own: forgot the - 1.",
            slip(lambda p, c, d: p / 10000 ** (c / d)),
        ),
        (
            "the base is 1000 instead of 10000.",
            slip(lambda p, c, d: p / 1000 ** (pair(c) / d)),
        ),
        (
            "positions are held in half precision: 300 and 301 are one.",
            slip(half_angle),
        ),
    ],
    "balanced_table": [
        (
            "the padding row was drawn over; zero it last.",
            drawn(lambda d: 1, zero_row=None),
        ),
        ("your deviation is 1.000: PyTorch's default.", pads(lambda d: 1)),
        ("your deviation is 0.125: tensor2tensor's.", pads(lambda d: d**-0.5)),
        (
            "your deviation is 0.008: a variance taken for a deviation.",
            pads(lambda d: 1 / (2 * d)),
        ),
        (
            "seed is not used.",
            lambda n, d, pad, seed: pads(s_of)(n, d, pad, 0),
        ),
    ],
    "find_base": [
        (
            "the first hand has the speed 1 with every base.",
            power_of(lambda d: -d / 2, 0),
        ),
        (
            "its root: column 2 has the exponent 2/d, not 4/d.",
            power_of(lambda d: -d / 4),
        ),
        (
            "its square: column 2 has the exponent 2/d, not 1/d.",
            power_of(lambda d: -d),
        ),
        (
            "its reciprocal: hands are slower, not faster.",
            power_of(lambda d: d / 2),
        ),
        ("you return the usual base without looking.", lambda table: 10000),
    ],
}


def test_wrong_answer_is_diagnosed(book, name, says, answer):
    assert book[f"check_{name}"](answer) == says


def balanced_torch(vocab_size, d_model, pad_id, seed):
    import torch

    torch.manual_seed(seed)
    layer = torch.nn.Embedding(vocab_size, d_model, padding_idx=pad_id)
    torch.nn.init.normal_(layer.weight, std=s_of(d_model))
    with torch.no_grad():
        layer.weight[pad_id] = 0
    return layer.weight  # a parameter, which is being trained


def test_an_embedding_layer_is_accepted_as_an_answer(book):
    answer = book["check_balanced_table"](balanced_torch)
    assert answer == "Exercise 5: correct."


@pytest.mark.parametrize("suffix", ["", "_tf"])
def test_answers_in_either_framework_are_accepted(book, suffix):
    def halves_table(seq_len, d_model):
        table = book[f"position_table{suffix}"](seq_len, d_model)
        parts = [table[:, 0::2], table[:, 1::2]]
        if suffix == "":
            return book["torch"].cat(parts, dim=1)
        return book["tf"].concat(parts, axis=1)

    assert book["check_halves_table"](halves_table) == "Exercise 2: correct."


RIGHT = [
    ("wavelength", lambda c, d: np.float32(wave(pair)(c, d))),
    (
        "word_positions",  # counted from the first word
        lambda mask: padded_left(mask) * mask,
    ),
]


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_other_right_answers_are_accepted(book, name, answer):
    assert book[f"check_{name}"](answer).endswith(": correct.")


# The table and the layer


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


def test_twin_equals_a_published_one(book):
    from positional_encodings.tf_encodings import TFPositionalEncoding1D

    tf = book["tf"]
    # Called without its tf.function, which takes longer to compile.
    call = TFPositionalEncoding1D.call.python_function
    theirs = call(TFPositionalEncoding1D(6), tf.zeros((1, 10, 6)))
    assert np.abs(theirs[0] - book["position_table_tf"](10, 6)).max() < 1e-5


def test_seed_table_of_multiplied_angles_is_reproduced(book):
    # As printed in notebooks that multiply, width 10, rows 4 and 8.
    known = {
        4: [-0.7568, -0.6536, 0.1054, 0.9944, 0.8296, -0.5584, -0.5268],
        8: [0.9894, -0.1455, 0.2095, 0.9778, -0.9265, -0.3764, -0.8955],
    }
    table = book["table_of"](book["ANGLES"]["multiplied"], 10, 10)
    for row, numbers in known.items():
        assert np.allclose(table[row, :7], numbers, atol=1e-3)


def test_buffer_follows_type_and_device_and_is_not_saved(book):
    torch = book["torch"]
    layer = book["PositionalEncoding"](6, max_len=10)
    assert layer.state_dict() == {} and not list(layer.parameters())
    assert layer.double()(torch.zeros(3, 6).double()).dtype == torch.float64
    half = layer.half()(torch.zeros(3, 6).half())
    assert (half.float() - book["table"][:3]).abs().max() < 1e-3
    assert layer.to("meta").table.is_meta


def test_twin_follows_its_policy(book):
    tf = book["tf"]
    layer = book["PositionalEncodingTF"](6, max_len=10, dtype="mixed_bfloat16")
    encoded = layer(tf.zeros((1, 3, 6)))
    assert encoded.dtype == tf.bfloat16
    assert np.abs(
        tf.cast(encoded[0], tf.float32) - book["table"][:3]
    ).max() < (0.005)


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


@pytest.mark.parametrize("max_len", [1, 2, 3])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_graph_refuses_what_is_too_long_when_it_runs(
    book, max_len, compiled
):
    tf = book["tf"]
    call = tf.function(
        book["PositionalEncodingTF"](6, max_len),
        input_signature=[tf.TensorSpec((None, None, 6))],
        jit_compile=compiled,
    )
    for length in range(max_len + 1):
        assert call(tf.zeros((2, length, 6))).shape == (2, length, 6)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Expected size"):
        call(tf.zeros((2, max_len + 1, 6)))


def test_a_graph_refuses_an_unknown_width(book):
    tf = book["tf"]
    call = tf.function(
        book["PositionalEncodingTF"](1, 10),
        input_signature=[tf.TensorSpec((None, None, None))],
    )
    with pytest.raises(ValueError, match="x is None wide and the table 1"):
        call(tf.zeros((2, 3, 5)))


@given(
    kind=st.sampled_from(["float16", "bfloat16", "float32", "float64"]),
    shape=st.sampled_from([(0,), (1,), (4,), (2, 3), (0, 2), (2, 0), (1, 1)]),
    D=st.integers(1, 7),
    more=st.integers(0, 2),
    strided=st.booleans(),
)
def test_layers_keep_the_type_and_shape(book, kind, shape, D, more, strided):
    """For empty batches, single places and arrays with strides, too."""
    tf, torch = book["tf"], book["torch"]
    numbers = np.arange(2.0 * math.prod(shape) * D).reshape(*shape, 2 * D)
    x = torch.tensor(numbers)[..., ::2] if strided else torch.ones(*shape, D)
    x = x.to(getattr(torch, kind))
    table = book["position_table"](shape[-1], D).to(x.dtype)
    layer = book["PositionalEncoding"](D, shape[-1] + more)
    found = layer(x)
    assert found.dtype == x.dtype and torch.equal(found, x + table)
    twin = book["PositionalEncodingTF"](D, shape[-1] + more, dtype=kind)
    found_tf = twin(tf.constant(x.double().numpy(), kind))
    assert found_tf.dtype.name == kind and found_tf.shape == x.shape
    np.testing.assert_allclose(
        tf.cast(found_tf, "float64"), found.double(), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("kind", ["uint8", "int32", "int64", "bool"])
def test_layers_refuse_what_is_not_a_float(book, kind):
    x = np.zeros((2, 6), kind)
    for layer, ids in [
        (book["PositionalEncoding"](6, 10), book["torch"].tensor(x)),
        (book["PositionalEncodingTF"](6, 10), book["tf"].constant(x)),
    ]:
        with pytest.raises(TypeError, match="give vectors of floats, not ids"):
            layer(ids)


def test_layers_refuse_a_vector_without_positions(book):
    for layer, x in [
        (book["PositionalEncoding"](6, 10), book["torch"].zeros(6)),
        (book["PositionalEncodingTF"](6, 10), book["tf"].zeros(6)),
    ]:
        # Keras sets it in bold.
        says = r"the shape \(6,\) lacks the positions\.(\x1b|$)"
        with pytest.raises(ValueError, match=says):
            layer(x)


@pytest.mark.parametrize("shape", [(2, 11, 6), (11, 6), (2, 3, 5), (2, 3, 1)])
def test_layers_refuse_what_does_not_fit(book, shape):
    layers = [
        (book["PositionalEncoding"](6, 10), book["torch"].zeros(shape)),
        (book["PositionalEncodingTF"](6, 10), book["tf"].zeros(shape)),
    ]
    for layer, x in layers:
        with pytest.raises(ValueError, match="build the layer with"):
            layer(x)


# The running example, and the factor


def test_sentences_are_those_of_the_chapter_before(book, chapter):
    words = chapter("embedding")
    assert book["vocab_size"] == words["vocab_size"]
    assert book["padded"] == words["padded"]
    assert book["padded"] == book["token_ids"].tolist()


def test_sums_of_words_and_positions_are_equal_in_both_frameworks(book):
    table = book["embedding"].weight.detach().numpy()
    right = table[np.array(book["padded"])] + book["table"][:7].numpy()
    for name in ("encoded", "encoded_tf"):
        np.testing.assert_allclose(book[name], right, atol=1e-6)


def test_the_share_of_a_position_is_that_of_the_formula(book):
    """Measured on words drawn with each length, and on average."""
    torch, position_table = book["torch"], book["position_table"]
    for std in (0.05, 1.0, 16.0):
        torch.manual_seed(0)
        words = std * torch.randn(1, 100, 512)
        found = book["position_part"](
            lambda x: x + position_table(*x.shape[1:]), words
        )
        formula = book["position_share"](std * math.sqrt(512), 512)
        assert found == pytest.approx(formula, rel=0.02)


# The criteria


def test_criteria_decide_on_both_sides_of_their_limits(book):
    unique, bounded = book["is_unique"], book["is_bounded"]
    consistent = book["is_consistent"]
    assert unique(np.array([[0.0], [0.0015], [1.0]]))
    assert not unique(np.array([[0.0], [0.0005], [1.0]]))
    assert bounded(np.array([[-1.0, 1.0]]))
    assert not bounded(np.array([[0.0, -1.5]]))
    assert not bounded(np.array([[0.0, 1.5]]))
    # Steps of one that differ by a little less, and more, than 0.01.
    assert consistent(np.array([[0.0], [1.0], [2.008]]))
    assert not consistent(np.array([[0.0], [1.0], [2.012]]))
    # Only the longest steps of two differ.
    assert not consistent(np.array([[0.0], [1.0], [0.0], [1.0], [2.0]]))


def test_lengths_are_judged_for_every_type_and_width(book):
    torch, check = book["torch"], book["has_equal_lengths"]
    for width in (2, 3, 5, 6, 10, 64, 511, 512):
        for kind in (torch.float64, torch.float32, torch.float16):
            table = book["position_table"](600, width, dtype=kind)
            assert check(table.double().numpy())
        half = book["position_table"](600, width, dtype=torch.bfloat16)
        assert check(half.float().numpy())
        assert not check(1.005 * half.double().numpy().clip(-1, 1) + 0.02)
    for factor, passes in [(1.003, True), (1.005, False), (0.995, False)]:
        table = factor * book["position_table"](20, 8).double().numpy()
        assert check(table) == passes


@pytest.mark.parametrize("suffix", ["", "_tf"])
@pytest.mark.parametrize("length", [12, 300, 1000])
def test_a_right_table_has_the_next_place_nearest_from_width_11(
    book, suffix, length
):
    for width in [*range(2, 17), 33, 64, 512]:
        table = book[f"position_table{suffix}"](length, width)
        assert book["nearest_is_next"](table) == (width >= 11), width


def test_order_error_counts_in_both_directions(book):
    for name, array in (
        ("", book["torch"].tensor),
        ("_tf", book["tf"].constant),
    ):
        x = array([[[0.0], [3.0]]])
        for sign in (1.0, -1.0):
            places = array([[[0.0], [sign]]])
            error = book[f"order_error{name}"](
                lambda x, places=places: x + places, x, [1, 0]
            )
            assert error == pytest.approx(1)


def test_order_error_counts_what_is_only_too_small(book):
    x = np.array([[[0.0], [1.0]]])
    for name, array in (
        ("", book["torch"].tensor),
        ("_tf", book["tf"].constant),
    ):
        error = book[f"order_error{name}"](
            lambda x: 0 * x - x[:, :1], array(x), [1, 0]
        )
        assert error == 1


def test_the_closest_position_may_be_the_next(book):
    assert book["closest"]([0.01], 5) == pytest.approx(2 * math.sin(0.005))


def test_other_layouts_of_narrow_tables(book):
    angles = np.arange(3)[:, None]
    right = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    for name in ("timing_signal", "marian_table"):
        assert np.allclose(book[name](3, 2), right)
    assert book["marian_table"](3, 2).dtype == np.float32


def test_first_rows_are_found_in_a_long_table(book):
    table = book["position_table"](10, 6).numpy()
    assert book["is_golden"](table)
    right = sum(math.cos(10000 ** (-i / 3)) for i in range(3)) / 3
    assert book["neighbour_similarity"](table) == pytest.approx(right)


@pytest.mark.parametrize(
    ("rows", "sets"),
    [
        ([(False, True), (False, False)], [("u",)]),
        ([(False, True), (True, False)], [("u", "v")]),
    ],
)
def test_sets_of_checks_are_no_larger_than_needed(book, rows, sets):
    results = {
        i: dict(zip("uv", row, strict=True)) for i, row in enumerate(rows)
    }
    assert book["smallest_sets"](results) == sets


def test_solutions_to_more_digits_than_are_asked(book):
    found = book["wavelength_solution"](2, 4)
    assert found == pytest.approx(200 * math.pi, rel=1e-9)
    angles = np.arange(5000) / 100
    table = book["halves_table_solution"](5000, 4).numpy()
    assert np.allclose(table[:, 1], np.sin(angles), atol=1e-5)


def test_mistaken_twins_add_what_they_say(book):
    tf, x = book["tf"], np.ones((2, 5, 6), np.float32)
    table = book["position_table"](5, 6).numpy()
    batch = book["add_along_batch_tf"](tf.constant(x)).numpy()
    assert np.allclose(batch, x + table[:2, None], atol=1e-6)
    loud = book["add_to_scaled_words_tf"](tf.constant(x)).numpy()
    assert np.allclose(loud, x * math.sqrt(6) + table, atol=1e-6)


def test_keras_layer_drops_nothing_unless_told_to_and_keeps_its_settings(book):
    tf, layer_class = book["tf"], book["PositionalEncodingTF"]
    x = tf.ones((2, 5, 6))
    assert np.allclose(
        layer_class(6, 10)(x, training=True), layer_class(6, 10)(x)
    )
    config = layer_class(6, 10, dropout=0.25).get_config()
    assert (config["d_model"], config["max_len"]) == (6, 10)
    assert config["dropout"] == 0.25


def test_digits_are_counted_in_both_directions(book):
    exact = np.array([1.0, 2.0])
    for error in (1e-3, -1e-3):
        assert book["right_digits"](exact + [0, error], exact) == 3


# The moving figure; test_interactive.py holds the page to these functions


@pytest.mark.parametrize(
    ("position", "width", "power", "words"),
    [
        (0, 2, 1, "base 10, position 0: 0.0000, 1.0000; {} 6.3"),
        (
            *(4, 6, 3),
            "base 1000, position 4: −0.7568, −0.6536, 0.3894, 0.9211, "
            "0.0400, 0.9992; {} 628.3",
        ),
        (
            *(0, 8, 4),
            "base 10000, position 0: 0.0000, 1.0000, 0.0000, 1.0000, "
            "0.0000, 1.0000, ...; {} 6283.2",
        ),
    ],
)
def test_the_row_is_said(book, position, width, power, words):
    said = book["wave_words"](position, width, power)
    words = words.format("wavelengths from 6.3 to")
    assert said == f"Width {width}, {words} steps."


@pytest.mark.parametrize("width", [2, 4, 8, 10, 32])
def test_at_most_four_waves_are_drawn_fastest_and_slowest_included(
    book, width
):
    paths = book["wave_paths"](3, width, 4)
    waves = min(width // 2, 4)
    assert paths["dials"].count("M") == paths["waves"].count("M") == waves
    hands = paths["hands"].split("M")[1:]
    for j, turn in (0, 1), (waves - 1, 10000 ** (2 / width - 1)):
        x, y = 326, 222 + 44 * j
        tip = x + 18 * math.sin(3 * turn), y - 18 * math.cos(3 * turn)
        assert hands[j] == f"{x} {y}L{tip[0]:.2f} {tip[1]:.2f}"


# The printed tables


def test_tables_have_heads_names_and_columns(book, capsys):
    torch = book["torch"]
    book["print_columns"](
        [0, "head"], {"a": torch.tensor([1.0, -2.5]), "row": ["no", "number"]}
    )
    assert capsys.readouterr().out == (
        "          0     head\na    1.0000  -2.5000\nrow      no   number\n"
    )


def test_wishes_are_printed_by_candidate(book, capsys):
    book["print_grades"]({"digits": book["CANDIDATES"]["binary digits"]})
    assert (
        capsys.readouterr().out.split()
        == (
            "digits unique ok bounded ok consistent FAIL deterministic ok any "
            "length ok"
        ).split()
    )


def test_lengths_of_rows_are_the_least_and_the_largest(book):
    found = book["row_lengths"](np.array([[3.0, 4.0], [0.0, 1.0], [2, 0]]))
    assert found == {"shortest": 1, "longest": 5}


# The matrix


def test_every_mistake_is_caught_and_the_right_one_passes(book):
    results = book["RESULTS"]
    assert len(results) == 10 and all(results.pop("right").values())
    for name, row in results.items():
        assert not all(row.values()), name
