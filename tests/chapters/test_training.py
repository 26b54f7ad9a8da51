"""The chapter on training: its losses and its stored training."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cellbycell.figures.training import stored_training

pytestmark = pytest.mark.xdist_group("frameworks")


# What the chapter's functions promise


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@given(
    seed=st.integers(0, 99),
    shape=st.tuples(st.integers(1, 3), st.integers(1, 5)),
    smoothing=st.sampled_from([0.0, 0.1, 1.0]),
    id_dtype=st.sampled_from(["int32", "int64"]),
)
def test_the_loss_is_the_libraries_and_pads_do_not_move_it(
    book, seed, shape, smoothing, dtype, id_dtype
):
    """In float64 to the last digits; others are computed in float32."""
    tf, F = book["tf"], book["F"]
    rng = np.random.default_rng(seed)
    logits = torch.tensor(rng.normal(size=(*shape, 7)))
    logits = logits.to(getattr(torch, dtype))
    targets = torch.tensor(rng.integers(0, 7, shape))
    targets[0, 0] = 3
    if smoothing == 0:  # a token that is never asked for
        logits[targets != 6, 6] = -torch.inf
    wide = logits.double() if dtype == "float64" else logits.float()
    theirs = F.cross_entropy(
        *(wide.transpose(1, 2), targets),
        ignore_index=0,
        label_smoothing=smoothing,
    )
    longer = F.pad(logits, (0, 0, 0, 2), value=5.0), F.pad(targets, (0, 2))
    for given_logits, ids in [(logits, targets), longer]:
        ids = ids.to(getattr(torch, id_dtype))
        found = book["smoothed_loss"](given_logits, ids, smoothing)
        found_tf = book["smoothed_loss_tf"](
            tf.cast(given_logits.double().numpy(), dtype),
            tf.constant(ids.numpy()),
            smoothing,
        )
        close = 1e-12 if dtype == "float64" else 1e-5
        assert found.dtype == theirs.dtype
        assert np.allclose([found, found_tf], theirs, rtol=close, atol=0)


def test_a_batch_of_pads_costs_nothing(book):
    tf = book["tf"]
    logits = torch.randn(2, 3, 7, requires_grad=True)
    ids = torch.zeros(2, 3, dtype=torch.int64)
    loss = book["smoothed_loss"](logits, ids)
    loss.backward()
    assert loss == 0 and not logits.grad.any()
    given_tf = tf.constant(logits.detach().numpy()), tf.constant(ids.numpy())
    assert book["smoothed_loss_tf"](*given_tf) == 0


@pytest.mark.parametrize("smoothing", [0.0, 0.01, 0.5, 1.0])
@pytest.mark.parametrize("vocab_size", [2, 13, 50_000])
def test_no_loss_is_below_the_floor(book, vocab_size, smoothing):
    targets = torch.tensor([[1, 1, 1]])
    floor = book["smoothing_floor"](vocab_size, smoothing)
    wanted = targets, vocab_size, smoothing, torch.float64
    right = book["smooth_targets"](*wanted).log()
    loss = book["smoothed_loss"]
    assert math.isclose(loss(right, targets, smoothing), floor, abs_tol=1e-6)
    for at in (0, 1):
        other = torch.zeros(1, 3, vocab_size)
        other[..., at] = 1
        assert loss(other, targets, smoothing) > floor


class Small:
    """A model with 13 weights, whose logits are a share of these."""

    def __init__(self, weight, share):
        self.weight, self.share = weight, share
        self.trainable_variables = [weight]

    def parameters(self):
        return [self.weight]

    def train(self):
        """Nothing is different in training."""

    def __call__(self, source_ids, input_ids, training=None):
        return self.weight * self.share


def test_epsilon_is_that_of_the_text(book):
    """Where a gradient is as large as epsilon, a step is half of the rate.

    Keras adds epsilon before v gets its hat, whose root is that of 0.02.
    """
    step = book["adam_step"](0.0, 1e-9, (0, 0.0, 0.0), rate=0.01)
    assert math.isclose(step[0], -0.005)
    ids = np.array([[5]])  # the loss has the slope 0.9 / 13 for others
    given = lambda rng, batch_size: (ids, ids, ids), lambda step: 0.01, 1
    share, zeros = 1e-9 * 13 / 0.9, np.zeros((1, 1, 13), "float32")
    small = Small(torch.tensor(zeros, requires_grad=True), share)
    small_tf = Small(book["keras"].Variable(zeros), share / math.sqrt(0.02))
    book["train"](small, *given)
    book["train_tf"](small_tf, *given)
    for weight in (small.weight.detach(), small_tf.weight):
        others = np.delete(np.ravel(weight), 5)
        assert np.allclose(others, -0.005, rtol=1e-3, atol=0)


@pytest.mark.parametrize("key_len", range(1, 11))
def test_batches_are_framed_and_reversed(book, key_len):
    rng = np.random.default_rng(key_len)
    for draw in ("draw_reversed", "draw_different"):
        source, inputs, targets = book[draw](rng, 50, key_len)
        assert np.array_equal(inputs[:, 1:], targets[:, :-1])
        assert (inputs[:, 0] == 1).all() and (targets[:, -1] == 2).all()
        assert np.array_equal(targets[:, :-1], source[:, ::-1])
        assert source.shape == (50, key_len)
        assert source.min() > 2 and source.max() < 13
        keys = [book["known_key"](t, key_len) for t in range(key_len)]
        assert np.array_equal(source[:, keys], targets[:, :-1])
    assert all(len({*row}) == key_len for row in source.tolist())
    positions = range(key_len + 1)  # the last predicts the end
    bounds = [book["best_without_positions"](t, key_len) for t in positions]
    assert math.isclose(math.prod(bounds), 1 / math.factorial(key_len))
    assert bounds[-2:] == [1, 1]
    source, _, targets = book["draw_sorted"](rng, 50)
    assert np.array_equal(targets[:, :-1], np.sort(source))


@pytest.mark.parametrize("key_len", range(4, 13))
def test_shorter_sequences_lose_their_first_letter(book, key_len):
    rng = np.random.default_rng(1)
    source, inputs, targets = book["draw_shorter"](rng, 200, key_len)
    lengths = (source != 0).sum(axis=1)
    assert {*lengths.tolist()} == {*range(4, key_len + 1)}
    for row, read, target in zip(source, inputs, targets, strict=True):
        letters = [x for x in row.tolist() if x]
        assert [x for x in target.tolist() if x] == [*letters[1:], 2]
        assert [x for x in read.tolist() if x] == [1, *letters[1:]]


@pytest.mark.parametrize("kind", ["", "_tf"])
def test_a_sequence_with_one_error_is_not_right(book, kind):
    """With a model whose dropout is on, and stays on."""
    name = f"Transformer{kind.upper().strip('_')}"
    model = book[name](*book["sizes"], dropout=0.5)
    ids, _, targets = (rows[:3].copy() for rows in book["held_out"])
    targets[1, 4] = 3 + (targets[1, 4] - 2) % 10
    if kind:
        model.set_weights(book["model_tf"].get_weights())
    else:
        model.load_state_dict(book["model"].state_dict())
    array = book["tf"].constant if kind else torch.tensor
    found = book[f"written_right{kind}"](model, array(ids), array(targets))
    assert found.numpy().tolist() == [True, False, True]
    assert kind or model.training


@pytest.mark.parametrize("kind", ["", "_tf"])
def test_a_training_is_examined_in_both_frameworks(book, kind):
    """With dropout and pads, and with what the chapter's table has not."""
    tf = book["tf"]
    name = f"Transformer{kind.upper().strip('_')}"
    model = book[name](*book["sizes"], dropout=0.1)
    book[f"draw_model{kind}"](model, seed=0)
    model = model if kind else model.eval()
    array = tf.constant if kind else torch.tensor
    softmax = tf.nn.softmax if kind else partial(torch.softmax, dim=-1)
    loss = book[f"smoothed_loss{kind}"]

    def failed(loss=loss, draw="draw_shorter"):
        batch = [*map(array, book[draw](np.random.default_rng(3), 8))]
        found = book[f"examine_training{kind}"](model, loss, batch)
        assert all(type(holds) is bool for holds in found.values())
        return [name for name in found if not found[name]]

    assert failed() == []
    assert failed(draw="draw_unshifted") == ["shift"]
    assert failed(lambda logits, ids: loss(softmax(logits), ids)) == ["floor"]
    assert "pads" in failed(lambda x, ids: loss(x, ids) / ids.shape[1])
    assert failed(lambda x, ids: loss(x, ids, 0.2)) == ["floor"]


def test_where_a_loss_stops(book):
    """Each of these losses is that of a model that does what is said of it."""
    source, targets = book["source_ids"], book["target_ids"]
    vocab_size, one_hot = book["vocab_size"], torch.nn.functional.one_hot
    right = one_hot(targets, vocab_size).double()  # (B, T, N)

    def logits(shares):  # of the smoothed probabilities
        return (0.9 * shares + 0.1 / vocab_size).log()

    def before_end(shares):  # (B, T, N), and the last place is known
        return torch.cat([shares[:, :-1], right[:, -1:]], 1)

    letters = right[:, :-1].mean(dim=(0, 1)) * 0  # (N,)
    letters[3:] = 0.1
    of_source = one_hot(source, vocab_size).double().mean(1, keepdim=True)
    end = one_hot(torch.tensor(2), vocab_size)
    models = {
        "nothing": torch.zeros_like(right),
        "the frequencies": logits((8 * letters + end) / 9).expand_as(right),
        "where <end> is": logits(before_end(letters.expand_as(right))),
        "which letters are there": logits(
            before_end(of_source.expand_as(right))
        ),
        "everything: the floor": logits(right),
    }
    assert models.keys() == book["stops"].keys()
    for name, found in models.items():
        loss = book["loss_of_tokens"](found, targets).item()
        assert math.isclose(loss, book["stops"][name], abs_tol=1e-3), name
    assert sorted(book["stops"].values())[::-1] == [*book["stops"].values()]


def test_no_probabilities_taken_for_logits_are_better_than_certain_ones(book):
    """The softmax, twice: without smoothing they end at ln(1 + (N - 1)/e)."""
    targets, loss = book["target_ids"], book["loss_of_tokens"]
    right = torch.nn.functional.one_hot(targets, 13).double()
    least = loss(right, targets, 0.0).item()
    assert math.isclose(least, math.log(1 + 12 / math.e))
    rng = np.random.default_rng(0)
    for _ in range(20):
        mixed = torch.tensor(rng.dirichlet(np.ones(13)))
        other = 0.9 * right + 0.1 * mixed
        assert loss(other, targets, 0.0).item() > least


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_of_the_main_road_is_that_by_hand(book, smoothing):
    tf = book["tf"]
    ids = torch.tensor([[5, 6, 7, 8, 2], [9, 4, 2, 0, 0]])
    logits = torch.randn(2, 5, 13, generator=torch.manual_seed(0))
    wanted = book["smoothed_loss"](logits, ids, smoothing).item()
    given_tf = tf.constant(logits.numpy()), tf.constant(ids.numpy())
    found = book["loss_of_tokens"](logits, ids, smoothing).item()
    found_tf = float(book["loss_of_tokens_tf"](*given_tf, smoothing))
    assert np.allclose([found, found_tf], wanted, atol=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_gradient_of_the_loss_is_the_libraries(book, smoothing):
    F, rng = torch.nn.functional, np.random.default_rng(5)
    ids = torch.tensor([[5, 6, 7, 8, 2], [9, 4, 2, 0, 0]])
    logits = torch.tensor(rng.normal(size=(2, 5, 13)), requires_grad=True)
    own = book["smoothed_loss"](logits, ids, smoothing)
    theirs = F.cross_entropy(
        logits.mT, ids, ignore_index=0, label_smoothing=smoothing
    )
    grads = [torch.autograd.grad(x, logits)[0] for x in (own, theirs)]
    assert torch.allclose(*grads, atol=1e-12)
    tf = book["tf"]
    logits_tf = tf.constant(logits.detach().numpy())
    with tf.GradientTape() as tape:
        tape.watch(logits_tf)
        own_tf = book["smoothed_loss_tf"](
            logits_tf, tf.constant(ids.numpy()), smoothing
        )
    assert np.allclose(tape.gradient(own_tf, logits_tf), grads[0], atol=1e-12)


def test_the_stored_training_is_that_of_the_chapter(book):
    maps, stored = stored_training()
    maps, stored = maps / 100, np.array(stored)
    new = book["cross_weights"](book["new_model"], *book["puzzle_tensors"])
    assert np.allclose(maps[0], new[0, 0, :8], atol=0.0101)
    trained = book["cross_weights"](book["model"], *book["puzzle_tensors"])
    assert np.abs(maps[-1] - trained[0, 0, :8].numpy()).max() < 0.2
    assert len(stored) == 41 and len(maps) == 21
    assert np.allclose(stored[:6], book["losses"][:30:5], atol=0.006)
    # The first fall ends where a model knows how frequent each token is.
    asked = np.bincount(book["target_ids"].flatten(), minlength=13)
    asked = 0.9 * asked / asked.sum() + 0.1 / 13
    assert np.abs(stored[4:9] + (asked * np.log(asked)).sum()).max() < 0.05
    assert abs(stored[-1] - book["losses"][200]) < 0.02


@pytest.mark.parametrize(("variance", "error"), [(1, 0.1), (2, 0.2), (9, 2)])
def test_the_loss_at_the_start_is_that_of_small_variances(
    book, variance, error
):
    """For the 13 tokens of the chapter, and normal logits."""
    rng = np.random.default_rng(0)
    logits = rng.normal(0, variance**0.5, size=(20_000, 13))
    loss = np.log(np.exp(logits).sum(axis=1)).mean()
    gap = book["loss_at_start"](13, variance) - loss
    assert error / 2 < gap < error
