"""The chapter on positions: checkers, table, layer and checks.

test_exercises.py tries each checker on the stub and the solution.
"""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.xdist_group("frameworks")


# Wrong answers


def wave(exponent, round_=2 * math.pi, base=10000):
    return lambda c, d: round_ * base ** (exponent(c) / d)


def pair(c):
    return 2 * (c // 2)


def right_angle(p, c, d):
    return p / 10000 ** (pair(c) / d)


def slip(angle):
    """Return an answer to exercise 4 from a function of p, c and d."""

    def encode(positions, d):
        c = np.arange(d)
        angles = angle(np.asarray(positions, float)[..., None], c, d)
        return np.where(c % 2 == 0, np.sin(angles), np.cos(angles))

    return encode


def changed(change, angle=right_angle):
    """Return an answer to exercise 2: a change of the interleaved table."""
    return lambda n, d: change(slip(angle)(np.arange(n), d))


def cosines_first(table):
    return np.hstack([table[:, 1::2], table[:, 0::2]])


def in_halves(table):
    return np.hstack([table[:, 0::2], table[:, 1::2]])


def power_of(power):
    """Return an answer to exercise 6 that raises an angle to a power."""

    def find(table):
        angle = math.atan2(table[1][2], table[1][3])
        return angle ** power(table.shape[1])

    return find


def initialised(std, has_pad=True):
    """Return an answer to exercise 5 with a standard deviation of std(d)."""

    def table(vocab_size, d_model, pad_id, seed):
        rng = np.random.default_rng(seed)
        rows = std(d_model) * rng.standard_normal((vocab_size, d_model))
        if has_pad:
            rows[pad_id] = 0
        return rows

    return table


def without_seed(vocab_size, d_model, pad_id, seed):
    return initialised(lambda d: (2 * d) ** -0.5)(
        vocab_size, d_model, pad_id, 0
    )


WRONG = {
    "wavelength": {
        "column 2 of 6: a round is 2 pi": wave(pair, round_=1),
        "you multiplied": lambda c, d: 2 * math.pi / 10000 ** (pair(c) / d),
        "exponent is doubled": wave(lambda c: 2 * c),
        "as slow as its sine": wave(lambda c: c),
        "not 1000": wave(pair, base=1000),
        "tensor2tensor's divisor": lambda c, d: (
            2 * math.pi * 10000 ** (c // 2 / max(d / 2 - 1, 1))
        ),
    },
    "halves_table": {
        "interleaved layout": changed(lambda x: x),
        "cosines come first": changed(in_halves),
        "tensor2tensor's speeds": changed(
            cosines_first,
            lambda p, c, d: p / 10000 ** (pair(c) / (d - 2)),
        ),
        "(10, 4) instead of (10, 5)": changed(
            lambda x: cosines_first(x[:, : x.shape[1] // 2 * 2])
        ),
        "these are not pairs": changed(
            lambda x: x.reshape(len(x), 2, -1).swapaxes(1, 2).reshape(x.shape)
        ),
    },
    "token_positions": {
        "counted as tokens": lambda mask: np.arange(mask.shape[1]) + 0 * mask,
        "first token is 0": lambda mask: mask.cumsum(1),
        "has position -1": lambda mask: mask.cumsum(1) - 1,
        "not the batch": lambda mask: mask.cumsum(0) - 1,
        "have position 0": lambda mask: np.maximum(mask.cumsum(1) - 1, 0),
    },
    "encode_positions": {
        "are multiplied": slip(lambda p, c, d: p * 10000 ** (pair(c) / d)),
        "exponent is doubled": slip(lambda p, c, d: p / 10000 ** (2 * c / d)),
        "forgot the - 1": slip(lambda p, c, d: p / 10000 ** (c / d)),
        "1000 instead of": slip(lambda p, c, d: p / 1000 ** (pair(c) / d)),
        "300 and 301 are one": slip(
            lambda p, c, d: right_angle(p - (p == 301), c, d)
        ),
        "and is wrong": slip(lambda p, c, d: right_angle(abs(p), c, d)),
        "count the columns": lambda p, d: (
            slip(right_angle)([range(p.shape[1])], d)[0]
            + np.zeros((*p.shape, d))
        ),
        "index is lost": lambda p, d: np.sin(p)[..., None],
    },
    "balanced_table": {
        "zero it last": initialised(lambda d: 1, has_pad=False),
        "1.000: PyTorch's default": initialised(lambda d: 1),
        "0.125: tensor2tensor's": initialised(lambda d: d**-0.5),
        "0.008: a variance": initialised(lambda d: 1 / (2 * d)),
        "times the deviation": lambda N, d, *rest: (
            initialised(lambda d: d**-0.5)(N, d, *rest) * (np.arange(d) % 2)
        ),
        "seed is not used": without_seed,
    },
    "find_base": {
        "its root": power_of(lambda d: -d / 4),
        "its square": power_of(lambda d: -d),
        "its reciprocal": power_of(lambda d: d / 2),
        "without looking": lambda table: 10000,
    },
}


def test_wrong_answer_is_named(verdict, says):
    assert says in verdict


# The table


@given(
    T=st.integers(1, 5000),
    D=st.integers(1, 33),
    kind=st.sampled_from(["float16", "float32", "float64"]),
)
def test_position_tables_are_the_formula(twins, T, D, kind):
    p, i = np.arange(T)[:, None], np.arange(D)
    angles = p / 10000.0 ** (2 * (i // 2) / D)
    formula = np.where(i % 2 == 0, np.sin(angles), np.cos(angles))
    within = {"float16": 1e-3, "float32": 1e-7, "float64": 1e-11}[kind]
    for position_table in twins("position_table"):
        table = position_table(T, D, dtype=np.dtype(kind))
        assert table.dtype == kind
        np.testing.assert_allclose(table, formula, rtol=0, atol=within)


@pytest.mark.parametrize("seq_len", [1, 10, 300])
def test_table_equals_a_published_one(book, seq_len):
    from positional_encodings.torch_encodings import PositionalEncoding1D

    for d_model in (2, 6, 128):
        theirs = PositionalEncoding1D(d_model)(
            torch.zeros(1, seq_len, d_model)
        )
        ours = book["position_table"](seq_len, d_model)
        assert (ours - theirs[0]).abs().max() < 1e-4


# The layer


def test_buffer_follows_type_and_device_and_is_not_saved(book):
    layer = book["PositionalEncoding"](6, max_len=10)
    assert layer.state_dict() == {} and not list(layer.parameters())
    assert layer.double()(torch.zeros(3, 6).double()).dtype == torch.float64
    half = layer.half()(torch.zeros(3, 6).half())
    assert (half.float() - book["table"][:3]).abs().max() < 1e-3
    assert layer.to("meta").table.is_meta


def test_twin_follows_its_policy_and_keeps_its_settings(book):
    tf, layer_class = book["tf"], book["PositionalEncodingTF"]
    layer = layer_class(6, 10, dropout=0.25, dtype="mixed_bfloat16")
    encoded = layer(tf.zeros((1, 3, 6)))
    assert encoded.dtype == tf.bfloat16
    encoded = tf.cast(encoded[0], tf.float32)
    assert np.abs(encoded - book["table"][:3]).max() < 0.005
    config = layer.get_config()
    assert (config["d_model"], config["max_len"]) == (6, 10)
    assert config["dropout"] == 0.25


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
        encoded = call(tf.zeros((2, length, 6)))
        assert np.allclose(encoded, [book["table_tf"][:length]] * 2)
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
    """For empty batches, single positions and arrays with strides, too."""
    tf = book["tf"]
    numbers = np.arange(2.0 * math.prod(shape) * D).reshape(*shape, 2 * D)
    x = torch.tensor(numbers)[..., ::2] if strided else torch.ones(*shape, D)
    x = x.to(getattr(torch, kind))
    table = book["position_table"](shape[-1], D).to(x.dtype)
    layer = book["PositionalEncoding"](D, shape[-1] + more)
    found = layer(x)
    assert found.dtype == x.dtype and torch.equal(found, x + table)
    twin = book["PositionalEncodingTF"](D, shape[-1] + more, dtype=kind)
    found_tf = twin(tf.constant(x.double().numpy(), kind), training=True)
    assert found_tf.dtype.name == kind and found_tf.shape == x.shape
    np.testing.assert_allclose(
        tf.cast(found_tf, "float64"), found.double(), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize(
    ("x", "error", "says"),
    [
        *(
            (np.zeros((2, 6), kind), TypeError, "give vectors of floats, not")
            for kind in ("uint8", "int32", "int64", "bool")
        ),
        *(
            (np.zeros(shape), ValueError, "build the layer with")
            for shape in ((2, 11, 6), (11, 6), (2, 3, 5), (2, 3, 1))
        ),
        # Keras sets the message in bold.
        (np.zeros(6), ValueError, r"\(6,\) lacks the positions\.(\x1b|$)"),
    ],
)
def test_layers_refuse_what_does_not_fit(book, x, error, says):
    for layer, array in [
        (book["PositionalEncoding"](6, 10), torch.tensor),
        (book["PositionalEncodingTF"](6, 10), book["tf"].constant),
    ]:
        with pytest.raises(error, match=says):
            layer(array(x))


@pytest.mark.parametrize("shape", [(2, 5, 6), (1, 1, 1), (3, 40, 7)])
def test_tokens_are_scaled_and_positions_are_not(book, shape):
    """Equation (2), also at an odd width."""
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    _, T, D = shape
    p, c = np.arange(T)[:, None], np.arange(D)
    angles = right_angle(p, c, D)
    table = np.where(c % 2 == 0, np.sin(angles), np.cos(angles))
    for found in (
        book["AddPositions"]()(torch.tensor(x)),
        book["AddPositionsTF"]()(x),
    ):
        np.testing.assert_allclose(
            found, math.sqrt(D) * x + table, rtol=1e-5, atol=1e-5
        )


# What is trained


@pytest.mark.parametrize("kind", ["", "_tf"])
def test_only_the_positions_tell_the_trained_model_an_order(book, kind):
    rows, order = book["new_rows"][:9], [7, 1, 4, 0, 2, 6, 3, 5]
    rows = book["tf"].constant(rows) if kind else torch.tensor(rows)
    for name, sees in ("with", True), ("without", False):
        model = book[f"trained{kind}"][name][0]
        error = book[f"order_error{kind}"](model, rows, order)
        assert error > 1 if sees else error < 1e-3


@pytest.mark.parametrize("kind", ["", "_tf"])
def test_loud_tokens_learn_less_than_a_bag_of_letters(book, kind):
    outcome = book[f"outcome{kind}"]
    assert outcome["right"] == {"loss": 0.0, "correct": 1.0}
    assert outcome["wrong"]["correct"] < book["bag"] - 0.05
    assert book["position_share"](math.sqrt(32), 32) == pytest.approx(1 / 3)


# The running example, and the share of a position


def test_the_sequences_have_the_ids_of_the_chapter_on_embeddings(book):
    ids = [[8, 6, 10, 11, 0, 0, 0], [2, 7, 9, 4, 3, 5, 0]]
    assert book["padded"] == book["token_ids"].tolist() == ids


def test_the_share_of_a_position_is_that_of_the_formula(book):
    """Measured on tokens of each norm, and on average."""
    position_table = book["position_table"]
    for std in (0.05, 1.0, 16.0):
        torch.manual_seed(0)
        tokens = std * torch.randn(1, 100, 512)
        found = book["position_part"](
            lambda x: x + position_table(*x.shape[1:]), tokens
        )
        formula = book["position_share"](std * math.sqrt(512), 512)
        assert found == pytest.approx(formula, rel=0.02)


# The criteria


def test_the_nearest_is_next_in_a_right_table_from_a_width_on(twins, book):
    for position_table in twins("position_table"):
        passed = [
            width
            for width in range(2, 21)
            if book["nearest_is_next"](position_table(300, width))
        ]
        assert passed == list(range(11, 21))


@pytest.mark.parametrize("name", ["doubled", "odd apart"])
def test_norms_find_what_makes_no_hands(book, name):
    """In a hundred rows of width 512; a right table of any width passes."""
    has_equal_norms, angle = book["has_equal_norms"], book["ANGLES"][name]
    assert not has_equal_norms(book["table_of"](angle, 100, 512))
    assert has_equal_norms(
        book["table_of"](book["ANGLES"]["odd apart"], 100, 1024)
    )
    for d in (5, 6, 511, 512):
        half = book["position_table"](512, d, dtype=torch.bfloat16)
        assert has_equal_norms(half.float().numpy())


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


@pytest.mark.parametrize("kind", ["", "_tf"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_order_error_counts_in_both_directions(book, kind, sign):
    array = book["tf"].constant if kind else torch.tensor
    x, positions = array([[[0.0], [3.0]]]), array([[[0.0], [sign]]])
    order_error = book[f"order_error{kind}"]
    assert order_error(lambda x: x + positions, x, [1, 0]) == pytest.approx(1)
    # What is only too small counts as well.
    assert order_error(lambda x: 0 * x - x[:, :1], x, [1, 0]) == 3


def test_sets_of_checks_are_no_larger_than_needed(book):
    one = {"a": {"u": False, "v": True}, "b": {"u": False, "v": False}}
    two = {"a": {"u": False, "v": True}, "b": {"u": True, "v": False}}
    assert book["_smallest_sets"](one) == [("u",)]
    assert book["_smallest_sets"](two) == [("u", "v")]


# The moving figure; test_interactive.py holds the page to these functions


@pytest.mark.parametrize("width", [2, 4, 8, 10, 32])
def test_at_most_four_waves_are_drawn_fastest_and_slowest_included(
    book, width
):
    paths = book["wave_paths"](3, width, 4)
    waves = min(width // 2, 4)
    assert paths["dials"].count("M") == paths["waves"].count("M") == waves
    hands = paths["hands"].split("M")[1:]
    for j, turn in (0, 1), (waves - 1, 10000 ** (2 / width - 1)):
        x, y = 326, 232 + 44 * j
        tip = x + 18 * math.sin(3 * turn), y - 18 * math.cos(3 * turn)
        assert hands[j] == f"{x} {y}L{tip[0]:.1f} {tip[1]:.1f}"
