"""The chapter on positions: table, layer and checks."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cellbycell.breaks import ask_smol
from cellbycell.exercises.positional_encoding import vectors
from cellbycell.ribbon import points

pytestmark = pytest.mark.xdist_group("frameworks")


# The table


@given(
    T=st.integers(1, 5000),
    D=st.integers(1, 33),
    kind=st.sampled_from(["float32", "float64"]),
)
def test_position_tables_are_the_formula(twins, T, D, kind):
    formula = vectors(np.arange(T), D)
    within = {"float32": 1e-7, "float64": 1e-11}[kind]
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
    assert layer.to("meta").table.is_meta


def test_twin_keeps_its_settings(book):
    layer = book["PositionalEncodingTF"](6, 10, dropout=0.25)
    wanted = {"d_model": 6, "max_len": 10, "dropout": 0.25}
    assert wanted.items() <= layer.get_config().items()


@pytest.mark.parametrize("compiled", [False, True])
def test_a_graph_refuses_what_is_too_long_when_it_runs(book, compiled):
    tf = book["tf"]
    call = tf.function(
        book["PositionalEncodingTF"](6, max_len=3),
        input_signature=[tf.TensorSpec((None, None, 6))],
        jit_compile=compiled,
    )
    for length in (0, 3):
        encoded = call(tf.zeros((2, length, 6)))
        assert np.allclose(encoded, [book["table_tf"][:length]] * 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Expected size"):
        call(tf.zeros((2, 4, 6)))


@given(
    kind=st.sampled_from(["float32", "float64"]),
    shape=st.sampled_from([(0,), (1,), (4,), (2, 3), (0, 2), (2, 0)]),
    D=st.integers(1, 7),
    more=st.integers(0, 2),
)
def test_layers_keep_the_type_and_shape(book, kind, shape, D, more):
    """For empty batches and single positions, too."""
    x, max_len = np.ones((*shape, D), kind), shape[-1] + more
    layer = book["PositionalEncoding"](D, max_len)
    twin = book["PositionalEncodingTF"](D, max_len, dtype=kind)
    right = x + vectors(np.arange(shape[-1]), D)
    for found in (layer(torch.tensor(x)), twin(x, training=True)):
        found = found.numpy()
        assert found.dtype == kind
        np.testing.assert_allclose(found, right, atol=1e-6)


@pytest.mark.parametrize(
    ("x", "error", "says"),
    [
        (np.zeros((2, 6), int), TypeError, "give vectors of floats, not"),
        (np.zeros((2, 11, 6)), ValueError, "build the layer with"),
        (np.zeros((2, 3, 5)), ValueError, "build the layer with"),
        # Keras sets the message in bold.
        (np.zeros(6), ValueError, r"\(6,\) lacks the positions\.(\x1b|$)"),
    ],
)
def test_layers_refuse_what_does_not_fit(book, x, error, says):
    layer = book["PositionalEncoding"](6, 10)
    twin = book["PositionalEncodingTF"](6, 10)
    with pytest.raises(error, match=says):
        layer(torch.tensor(x))
    with pytest.raises(error, match=says):
        twin(book["tf"].constant(x))


@pytest.mark.parametrize("shape", [(2, 5, 6), (1, 1, 1), (3, 40, 7)])
def test_tokens_are_scaled_and_positions_are_not(book, shape):
    """Equation (2), also at an odd width."""
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    _, T, D = shape
    table = vectors(np.arange(T), D)
    for found in (
        book["AddPositions"]()(torch.tensor(x)),
        book["AddPositionsTF"]()(x),
    ):
        np.testing.assert_allclose(
            found, math.sqrt(D) * x + table, rtol=1e-5, atol=1e-5
        )


# What is trained


@pytest.mark.parametrize("kind", ["", "_tf"])
def test_only_positions_tell_when_a_name_is_over(book, kind):
    """Without them a letter means the same wherever it stands."""
    ids = np.full((1, 12), 1)
    ids = book["tf"].constant(ids) if kind else torch.tensor(ids)
    for name, model in book[f"models{kind}"].items():
        logits = model(ids)
        logits = logits.numpy() if kind else logits.detach().numpy()
        spread = np.ptp(logits[0], axis=0).max()
        assert spread > 1 if name == "with" else spread < 1e-4


@pytest.mark.parametrize("kind", ["", "_tf"])
def test_loud_tokens_lose_most_of_what_positions_buy(book, kind):
    held_out, loud = book[f"held_out{kind}"], book[f"loud_held_out{kind}"]
    bought = held_out["without"] - held_out["with"]
    assert bought > 0.06 and held_out["without"] - loud < bought / 3
    assert book[f"loud_losses{kind}"][0] > 4 * math.log(30)
    assert book["position_share"](math.sqrt(48), 48) == pytest.approx(1 / 3)


def test_the_name_models_are_those_of_the_table_of_names(book):
    stored = {p["chapter"]: p["loss"] for p in points()}
    assert round(book["held_out"]["without"], 2) == stored["embedding"]
    found = round(book["held_out"]["with"], 2)
    assert found == stored["positional_encoding"]


@pytest.mark.parametrize("kind", ["", "_tf"])
def test_positions_make_two_dogs_of_one(book, kind):
    mix, add = book[f"mix{kind}"], book[f"AddPositions{kind.upper()[1:]}"]()
    x = book[f"sentences{kind}"]
    alone, placed = np.asarray(mix(x)), np.asarray(mix(add(x)))
    np.testing.assert_allclose(alone[0, 0], alone[1, 2], atol=1e-6)
    assert np.abs(placed[0, 0] - placed[1, 2]).max() > 0.5


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow"])
@pytest.mark.parametrize("change", ["0 * positions", "positions // 2"])
def test_what_a_real_model_says_is_safe_to_store(framework, change):
    old = "positions, self.base"
    said = ask_smol(old, old.replace("positions", change), framework)
    assert said.gap > 0.02


def test_a_real_model_does_not_see_where_a_text_begins():
    """By wish 3: the text invites the reader to guess it."""
    old = "positions, self.base"
    said = ask_smol(old, old.replace("positions", "positions + 1000"))
    right = ask_smol()
    assert said.answer == right.answer
    assert said.loss == pytest.approx(right.loss, abs=1e-3)


# Hands, which come back late


@pytest.mark.parametrize("steps", [1, 6, 710])
def test_hands_are_equally_far_apart_wherever_they_start(book, steps):
    """What one position tells of the nearest, it tells of any two."""
    for turns in book["ways"].values():
        table = book["hands"](5000, turns)
        found = np.linalg.norm(table[steps:] - table[:-steps], axis=1)
        np.testing.assert_allclose(found, found[0], atol=1e-6)


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
    assert book["smallest_sets"](one) == [("u",)]
    assert book["smallest_sets"](two) == [("u", "v")]
