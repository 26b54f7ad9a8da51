"""The chapter on training: its checkers, its losses and its stored training.

Each checker is tried on one wrong answer for each thing that it claims to
notice; test_exercises.py tries it on the stub and the solution.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

# Few examples, chosen the same way on every run: the frameworks are slow.
FEW = settings(max_examples=8, derandomize=True, deadline=None, database=None)
pytestmark = pytest.mark.xdist_group("frameworks")


@pytest.fixture(scope="session")
def book(chapter):
    """The variables of the chapter after a run; not to be changed."""
    return chapter("training")


# Wrong answers by exercise: the verdict after its number, and the answer.


def parts(size, share):
    """Return a, minus its logarithm, b and minus its logarithm."""
    a, b = 1 - share, share / (size - 1)
    return a, -math.log(a), b, -math.log(b)


def floor(mix):
    """Return an answer of exercise 1: a mix of the parts, N and the share."""
    return lambda size, share: mix(*parts(size, share), size, share)


def of_book(size, share):
    b = share / size
    a = 1 - share + b
    return -a * math.log(a) - (size - 1) * b * math.log(b)


def rate(mix):
    """Return an answer of exercise 2: a mix of root, s, w and the step."""
    return lambda step, d, w: mix(d**-0.5, step + 1, w, step)


def mean(mix):
    """Return an answer of exercise 3: a mix of losses and words."""
    return lambda losses, targets, more, more_targets: mix(
        *(losses, losses[targets != 0], more, more[more_targets != 0])
    )


def shares(mix):
    """Return an answer of exercise 5: a mix of m, letters and sentences."""

    def answer(m):
        letters = sum(1 / k for k in range(1, m + 1)) / m
        return mix(m, letters, 1 / math.factorial(m))

    return answer


WRONG = {
    "floor_of_others": [
        ("this is the floor of equation (3).", of_book),
        (
            "the entropy has a minus in front.",
            floor(lambda a, x, b, y, n, s: -a * x - s * y),
        ),
        (
            "the wrong words are missing.",
            floor(lambda a, x, b, y, n, s: a * x),
        ),
        ("the right word is missing.", floor(lambda a, x, b, y, n, s: s * y)),
        (
            "there are N - 1 wrong words, not one.",
            floor(lambda a, x, b, y, n, s: a * x + b * y),
        ),
        (
            "there are N - 1 wrong words, not N.",
            floor(lambda a, x, b, y, n, s: a * x + n * b * y),
        ),
        (
            "the probabilities have to add up to one.",
            floor(
                lambda a, x, b, y, n, s: (
                    a * x - (n - 1) * s / n * math.log(s / n)
                )
            ),
        ),
        (
            "this is a logarithm to base 2.",
            floor(lambda a, x, b, y, n, s: (a * x + s * y) / math.log(2)),
        ),
        (
            "this is the plain loss of the right word.",
            floor(lambda a, x, b, y, n, s: x),
        ),
        ("7.0000 is wrong for N = 13 and 0.1.", lambda n, s: 7),
    ],
    "rate_from_zero": [
        (
            "the first step divides by zero; count from one.",
            lambda s, d, w: d**-0.5 * min(s**-0.5, s * w**-1.5),
        ),
        (
            "the width is missing.",
            rate(lambda r, s, w, z: min(s * w**-1.5, s**-0.5)),
        ),
        (
            "the width is under a root, below.",
            rate(lambda r, s, w, z: min(s * w**-1.5, s**-0.5) / r),
        ),
        (
            "the larger of the two is taken.",
            rate(lambda r, s, w, z: r * max(s * w**-1.5, s**-0.5)),
        ),
        (
            "the warm-up has the exponent -3/2.",
            rate(lambda r, s, w, z: r * min(s * w**-0.5, s**-0.5)),
        ),
        ("it never rises.", rate(lambda r, s, w, z: r * s**-0.5)),
        ("it never falls.", rate(lambda r, s, w, z: r * s * w**-1.5)),
        (
            "the first step is 0 here; add one.",
            rate(
                lambda r, s, w, z: r * min(z * w**-1.5, max(z, 1e-9) ** -0.5)
            ),
        ),
        ("these are other rates.", lambda s, d, w: 7),
    ],
    "joint_mean": [
        (
            "the pads are counted.",
            mean(lambda a, b, c, d: (a.sum() + c.sum()) / (a.size + c.size)),
        ),
        (
            "the pads are divided by.",
            mean(lambda a, b, c, d: (b.sum() + d.sum()) / (a.size + c.size)),
        ),
        (
            "this is a mean of means.",
            mean(lambda a, b, c, d: (b.mean() + d.mean()) / 2),
        ),
        (
            "a batch counts by its words, not by its places.",
            mean(
                lambda a, b, c, d: (
                    (a.size * b.mean() + c.size * d.mean()) / (a.size + c.size)
                )
            ),
        ),
        ("this is a sum.", mean(lambda a, b, c, d: b.sum() + d.sum())),
        ("the first batch only.", mean(lambda a, b, c, d: b.mean())),
        ("the second batch only.", mean(lambda a, b, c, d: d.mean())),
        (
            "the losses of pads are added.",
            mean(lambda a, b, c, d: (a.sum() + c.sum()) / (b.size + d.size)),
        ),
        ("7.0000 is not the mean of all words.", lambda *given: 7),
    ],
    "keys_of_every_second": [
        ("the last letter is at key_len - 1.", lambda m: np.arange(m, 0, -2)),
        (
            "these are in the order of the source.",
            lambda m: np.arange(m)[::-2][::-1],
        ),
        ("every letter is written.", lambda m: np.arange(m)[::-1]),
        (
            "this begins with the second last.",
            lambda m: np.arange(m - 1)[::-2],
        ),
        (
            "these are the places of the target.",
            lambda m: np.arange((m + 1) // 2),
        ),
        (
            "not backwards, and from the first.",
            lambda m: np.arange(0, m, 2),
        ),
        (
            "the last place says the end; leave it out.",
            lambda m: [*range(m - 1, -1, -2), (m - 1) % 2],
        ),
        ("wrong for 8 letters.", lambda m: [7, 7, 7, 7]),
    ],
    "best_shares": [
        ("the shares are exchanged.", shares(lambda m, a, b: (b, a))),
        (
            "letters: with t letters read, m - t are left.",
            shares(lambda m, a, b: (1 / m, b)),
        ),
        (
            "letters: divide by the number of places.",
            shares(lambda m, a, b: (m * a, b)),
        ),
        (
            "letters: the end is not a letter.",
            shares(lambda m, a, b: ((m * a + 1) / (m + 1), b)),
        ),
        (
            "sentences: all orders are equally likely.",
            shares(lambda m, a, b: (a, m**-m)),
        ),
        (
            "sentences: the first letter does not decide.",
            shares(lambda m, a, b: (a, 1 / m)),
        ),
        (
            "sentences: a share of letters is not one.",
            shares(lambda m, a, b: (a, a)),
        ),
        ("sentences: some order is right.", shares(lambda m, a, b: (a, 0))),
        ("wrong for 8 letters.", lambda m: (7, 7)),
    ],
}


def test_wrong_answer_is_named(book, name, says, answer):
    assert book[f"check_{name}"](answer) == says


# What the chapter's functions promise


@FEW
@given(
    seed=st.integers(0, 99),
    shape=st.tuples(st.integers(1, 3), st.integers(1, 5)),
    smoothing=st.sampled_from([0.0, 0.1, 0.5]),
)
def test_the_loss_is_the_libraries_and_pads_do_not_move_it(
    book, seed, shape, smoothing
):
    import tensorflow as tf
    import torch
    import torch.nn.functional as F

    rng = np.random.default_rng(seed)
    logits = torch.tensor(rng.normal(size=(*shape, 7)), dtype=torch.float32)
    targets = torch.tensor(rng.integers(0, 7, shape))
    targets[0, 0] = 3
    found = book["smoothed_loss"](logits, targets, smoothing)
    theirs = F.cross_entropy(
        *(logits.transpose(1, 2), targets),
        ignore_index=0,
        label_smoothing=smoothing,
    )
    assert torch.isclose(found, theirs, atol=1e-5)
    given_tf = tf.constant(logits), tf.constant(targets)
    found_tf = book["smoothed_loss_tf"](*given_tf, smoothing)
    assert np.isclose(found, found_tf, atol=1e-5)
    longer = F.pad(logits, (0, 0, 0, 2), value=5.0), F.pad(targets, (0, 2))
    assert torch.isclose(book["smoothed_loss"](*longer, smoothing), found)


@pytest.mark.parametrize("smoothing", [0.01, 0.1, 0.5])
def test_no_loss_is_below_the_floor(book, smoothing):
    import torch

    torch.manual_seed(0)
    targets = torch.randint(1, 13, (1, 50))
    floor = book["smoothing_floor"](13, smoothing)
    right = book["smooth_targets"](targets, 13, smoothing).log()
    loss = book["smoothed_loss"]
    assert abs(loss(right, targets, smoothing) - floor) < 1e-5
    for spread in (0.1, 1, 5):
        other = right + spread * torch.randn(1, 50, 13)
        assert loss(other, targets, smoothing) > floor


def test_batches_are_framed_and_reversed(book):
    rng = np.random.default_rng(0)
    for draw in ("draw_reversed", "draw_different", "draw_sorted"):
        source, inputs, targets = book[draw](rng, 5)
        assert np.array_equal(inputs[:, 1:], targets[:, :-1])
        assert (inputs[:, 0] == 1).all() and (targets[:, -1] == 2).all()
        wanted = np.sort(source) if draw == "draw_sorted" else source[:, ::-1]
        assert np.array_equal(targets[:, :-1], wanted)
        assert source.min() > 2 and source.max() < 13
    source, _, _ = book["draw_different"](rng, 50)
    assert all(len({*row}) == 8 for row in source.tolist())
    keys = [book["known_key"](t, 8) for t in range(8)]
    source, _, targets = book["draw_reversed"](rng, 3)
    assert np.array_equal(source[:, keys], targets[:, :8])


def test_shorter_sentences_lose_their_first_letter(book):
    source, inputs, targets = book["draw_shorter"](np.random.default_rng(1), 9)
    for row, read, say in zip(source, inputs, targets, strict=True):
        letters = [x for x in row.tolist() if x]
        assert [x for x in say.tolist() if x] == [*letters[1:], 2]
        assert [x for x in read.tolist() if x] == [1, *letters[1:]]


def test_the_rate_rises_to_its_peak_and_falls(book):
    rates = [book["learning_rate"](s, 16, 100) for s in range(1, 301)]
    assert np.argmax(rates) == 99
    assert math.isclose(max(rates), 1 / 40)
    assert np.allclose(np.diff(rates[:99]), rates[0])
    assert (np.diff(rates[99:]) < 0).all()


def test_a_sequence_with_one_error_is_not_right(book):
    import torch

    model, ids = book["model"], book["source_ids"][:3]
    targets = book["target_ids"][:3].clone()
    assert book["written_right"](model, ids, targets).all()
    targets[1, 4] = 3 + (targets[1, 4] - 2) % 10
    right = book["written_right"](model, ids, targets)
    assert right.tolist() == [True, False, True]
    found_tf = book["written_right_tf"](
        book["model_tf"], *(x.numpy() for x in (ids, targets))
    )
    assert torch.equal(torch.tensor(found_tf.numpy()), right)


def test_the_stored_training_is_that_of_the_chapter(book):
    maps = np.array(book["stored_maps"]) / 100
    new = book["cross_weights"](book["new_model"], *book["word_tensors"])
    assert np.allclose(maps[0], new[0, 0, :8], atol=0.0101)
    trained = book["cross_weights"](book["model"], *book["word_tensors"])
    assert np.abs(maps[-1] - trained[0, 0, :8].numpy()).max() < 0.2
    stored = np.array(book["stored_losses"])
    assert len(stored) == 41 and len(maps) == 21
    assert np.allclose(stored[:6], book["losses"][:30:5], atol=0.006)
    # The first fall ends where a model knows how frequent each word is.
    asked = np.bincount(book["target_ids"].flatten(), minlength=13)
    asked = 0.9 * asked / asked.sum() + 0.1 / 13
    assert np.abs(stored[4:9] + (asked * np.log(asked)).sum()).max() < 0.05
    assert abs(stored[-1] - book["losses"][200]) < 0.02
