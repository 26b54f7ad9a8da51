"""The checkers of the chapter on masks: what they accept and what they say.

Each checker is tried on one wrong answer for each thing that it claims to
notice; test_exercises.py tries it on the stub and the solution.
"""

import numpy as np
import pytest

pytestmark = pytest.mark.xdist_group("frameworks")


# Right and wrong answers


def triangle(n):
    return n * (n + 1) // 2


def window(allowed):
    """Return an answer that allows what allowed(steps back, window) says."""

    def mask(seq_len, width):
        places = np.arange(seq_len)
        return allowed(places[:, None] - places, width)

    return mask


def packed(allowed):
    """Return an answer: allowed(same text, not in the future, a word)."""

    def mask(text_ids):
        same = text_ids[:, :, None] == text_ids[:, None, :]
        past = np.tri(text_ids.shape[1]) > 0
        return allowed(same, past, (text_ids != 0)[:, None, :])

    return mask


def itself(mask):
    return mask | np.eye(mask.shape[-1], dtype=bool)


def multiplied_mean(vectors, key_mask):
    counts = np.maximum(key_mask.sum(1), 1)
    return (vectors * key_mask[..., None]).sum(1) / counts[:, None]


def mean_by_counts(vectors, key_mask):
    kept = np.where(key_mask[..., None], vectors, 0)
    return kept.sum(1) / key_mask.sum(1)[:, None]


def where_words(reduce):
    """Return an answer that reduces the vectors with zeros for the pads."""

    def mean(vectors, key_mask):
        return reduce(np.where(key_mask[..., None], vectors, 0))

    return mean


def softmax(scores, axis=-1):
    e = np.exp(scores - scores.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def over_queries(scores, mask):
    e = np.exp(scores) * mask
    return e / e.sum(0)


def no_maximum(scores, mask):
    e = np.exp(scores) * mask
    return e / e.sum(-1, keepdims=True)


def pairs(num_words, seq_len):
    return triangle(num_words) + (seq_len - num_words) * num_words


# Wrong answers by exercise: the verdict after its number, and the answer.
WRONG = {
    "count_pairs": [
        (
            "these are the causal pairs; pads block keys.",
            lambda n, size: triangle(size),
        ),
        (
            "these are the pairs of the padding mask alone.",
            lambda n, size: n * size,
        ),
        ("the rows of pads are not masked.", lambda n, size: triangle(n)),
        (
            "a place sees itself; the diagonal is missing.",
            lambda n, size: pairs(n, size) - n,
        ),
        (
            "these are all pairs of words, the future included.",
            lambda n, size: n * n,
        ),
    ],
    "window_mask": [
        (
            "inverted; True means may attend.",
            window(lambda back, w: (back < 0) | (back >= w)),
        ),
        (
            "a place does not see itself.",
            window(lambda back, w: (back > 0) & (back <= w)),
        ),
        (
            "one place too many in the window.",
            window(lambda back, w: (back >= 0) & (back <= w)),
        ),
        (
            "the window reaches into the future.",
            window(lambda back, w: abs(back) < w),
        ),
        ("the far past is not blocked.", window(lambda back, w: back >= 0)),
    ],
    "packed_mask": [
        (
            "inverted; True means may attend.",
            packed(lambda same, past, word: ~itself(same & past & word)),
        ),
        (
            "a text sees the texts before it.",
            packed(lambda same, past, word: itself(past & word)),
        ),
        (
            "a place sees the future of its text.",
            packed(lambda same, past, word: itself(same & word)),
        ),
        (
            "the pads' rows are blind.",
            packed(lambda same, past, word: same & past & word),
        ),
        (
            "transposed; rows are queries.",
            packed(lambda same, past, word: itself(same & past.T & word)),
        ),
    ],
    "mean_of_words": [
        ("the pads are in the mean.", lambda x, mask: x.mean(1)),
        (
            "divided by all places instead of the words.",
            where_words(lambda kept: kept.mean(1)),
        ),
        ("this is the sum; divide it.", where_words(lambda kept: kept.sum(1))),
        ("nan at a pad gets through; 0 * nan is nan.", multiplied_mean),
        ("a sentence without words gets no zeros.", mean_by_counts),
    ],
    "masked_softmax": [
        (
            "masked after the softmax; see the sums of your rows.",
            lambda scores, mask: softmax(scores) * mask,
        ),
        ("the sum runs over the queries.", over_queries),
        ("large scores fail: subtract the largest *allowed*.", no_maximum),
        (
            "low scores fail: a finite fill is above them.",
            lambda scores, mask: softmax(np.where(mask, scores, -1e9)),
        ),
        (
            "a blind row gets nan at [1, 0], not zeros.",
            lambda scores, mask: softmax(np.where(mask, scores, -np.inf)),
        ),
    ],
}


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_wrong_answer_is_diagnosed(book, name, says, answer):
    assert book[f"check_{name}"](answer) == says


def test_an_odd_answer_gets_a_sentence(book, name, number, odd):
    answer, says = odd
    assert book[f"check_{name}"](answer) == f"Exercise {number}: {says}."


@pytest.mark.parametrize("name", list(WRONG)[1:])
def test_answer_may_be_a_list(book, name):
    def answer(*given):
        return book[f"{name}_solution"](*given).tolist()

    assert book[f"check_{name}"](answer).endswith(": correct.")


def mean_in_place(vectors, key_mask):
    vectors[~key_mask] = 0
    vectors /= np.maximum(key_mask.sum(1), 1)[:, None, None]
    return vectors.sum(1)


def softmax_in_place(scores, mask):
    scores[~mask] = -np.inf
    largest = scores.max(-1, keepdims=True)
    scores -= np.where(np.isfinite(largest), largest, 0)
    np.exp(scores, out=scores)
    total = scores.sum(-1, keepdims=True)
    scores /= np.where(total > 0, total, 1)
    return scores


def test_answers_may_write_on_what_they_are_given(book):
    verdict = book["check_mean_of_words"](mean_in_place)
    assert verdict == "Exercise 4: correct."
    verdict = book["check_masked_softmax"](softmax_in_place)
    assert verdict == "Exercise 5: correct."


# A reader answers in the framework that they know.


def softmax_torch(scores, mask):
    import torch

    mask = torch.from_numpy(mask)
    some = mask.any(-1, keepdim=True)
    kept = torch.from_numpy(scores).masked_fill(~mask & some, -torch.inf)
    return torch.where(some, kept.softmax(-1), 0.0)


def softmax_tf(scores, mask):
    import tensorflow as tf

    some = mask.any(-1, keepdims=True)
    kept = tf.where(mask | ~some, scores, -np.inf)
    return tf.where(some, tf.nn.softmax(kept), 0.0)


@pytest.mark.parametrize("answer", [softmax_torch, softmax_tf])
def test_answers_in_either_framework_are_accepted(book, answer):
    assert book["check_masked_softmax"](answer) == "Exercise 5: correct."


# What the chapter's functions do at the edges.


def test_places_are_counted_in_words_wherever_the_padding_stands(book):
    import torch

    words = [[0, 0, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]]
    places = [[0, 0, 0, 1], [0, 1, 1, 1], [0, 0, 0, 0]]
    found = book["count_places"](torch.tensor(words) > 0)
    found_tf = book["count_places_tf"](np.array(words) > 0)
    assert found.tolist() == places == found_tf.numpy().tolist()


def test_a_blind_row_of_one_place_is_zero(book):
    import tensorflow as tf
    import torch

    one = torch.ones(1, 1, 1)
    blind = torch.zeros(1, 1, 1, dtype=torch.bool)
    output, weights = book["attend_or_zero"](one, one, one, blind)
    output_tf, weights_tf = book["attend_or_zero_tf"](
        *[tf.ones((1, 1, 1))] * 3, tf.zeros((1, 1, 1), tf.bool)
    )
    for found in (output, weights, output_tf, weights_tf):
        assert np.array_equal(found, [[[0]]])


def test_what_stands_at_a_pad_never_reaches_the_mean(book):
    import tensorflow as tf
    import torch

    values, words = [1.0, np.nan], [True, False]
    found = book["masked_mean"](torch.tensor(values), torch.tensor(words))
    found_tf = book["masked_mean_tf"](tf.constant(values), tf.constant(words))
    assert float(found) == float(found_tf) == 1


def test_the_mean_of_one_word_and_of_none(book):
    vectors = np.arange(1.0, 25).reshape(2, 4, 3)
    words = np.arange(4) < np.array([[1], [0]])
    found = book["mean_of_words_solution"](vectors, words)
    assert found.tolist() == [[1, 2, 3], [0, 0, 0]]


def test_blocked_scores_count_for_nothing_however_low_the_others(book):
    import tensorflow as tf
    import torch

    query, key, value = [[-1e12]], [[1.0], [1.0]], [[2.0], [3.0]]
    for kind, array in (("", torch.tensor), ("_tf", tf.constant)):
        given = [array(a) for a in (query, key, value, [[True, False]])]
        for name in ("attend", "attend_or_zero"):
            output, weights = book[f"{name}{kind}"](*given)
            assert output.numpy().tolist() == [[2]]
            assert weights.numpy().tolist() == [[1, 0]]
        added = book[f"to_additive{kind}"](given[3])
        assert added.numpy().tolist() == [[0, -np.inf]]


def test_the_fill_is_added_to_the_scores_after_the_division(book):
    import tensorflow as tf
    import torch

    rng = np.random.default_rng(0)
    query, key, value = (
        rng.standard_normal(shape) for shape in ((3, 4), (5, 4), (5, 2))
    )
    mask = np.tri(3, 5) > 0
    right = softmax(query @ key.T / 2 - 2.0 * ~mask) @ value
    for kind, array in (("", torch.tensor), ("_tf", tf.constant)):
        given = map(array, (query, key, value, mask))
        found = book[f"attend_filled{kind}"](*given, fill=-2.0)
        assert np.allclose(found, right)


def test_the_model_adds_the_places_to_the_words(book):
    import torch

    model = {
        "words": torch.tensor([[1.0]]),
        "places": torch.tensor([[2.0]]),
        "query_key_value": torch.tensor([[1.0, 1.0, 10.0]]),
        "next_word": torch.tensor([[1.0]]),
    }
    mask = torch.ones(1, 1, dtype=torch.bool)
    logits = book["next_word_logits"](model, torch.tensor([[0]]), mask)
    assert logits.item() == 3 + 30


def test_the_gradient_is_that_of_the_row_that_is_not_blind(book):
    import tensorflow as tf
    import torch

    def attention(stack):
        """Return an attention whose second row has too large a gradient."""
        return lambda q, k, v, mask: stack([q[:, 0], 2e38 * q[:, 1]], 1)

    x = np.full((1, 3, 2), 2, np.float32)
    found = book["blind_row"](attention(torch.stack), torch.tensor(x), None)
    found_tf = book["blind_row_tf"](attention(tf.stack), tf.constant(x), None)
    right = {"blind output": np.inf, "finite gradient": True}
    assert found == found_tf == right


def test_a_gradient_of_which_a_part_is_infinite_is_told(book):
    import tensorflow as tf
    import torch

    x = np.ones((1, 3, 2), np.float32)
    for name, array in [
        ("blind_row", torch.tensor),
        ("blind_row_tf", tf.constant),
    ]:
        scale = array([1.0, np.inf])

        def attention(query, key, value, mask, scale=scale):
            return value * scale

        found = book[name](attention, array(x), None)
        assert found["finite gradient"] is False


def test_padding_gets_less_than_its_share_on_average(book):
    shares = book["pad_shares"]
    assert all(row["mean"] < row["alike"] for row in shares.values())
    draws = [book["pad_attention"](4, 10, 64, seed) for seed in range(300)]
    assert 0.47 < np.mean(draws) < 0.53
    assert np.quantile(draws, 0.05) < 0.32 < 0.68 < np.quantile(draws, 0.95)


# The checks of the mistakes.


def test_a_check_that_raises_has_caught_something(book):
    import torch

    assert book["passes"](lambda: True) is True
    assert book["passes"](lambda: torch.ones(2) @ torch.ones(3)) is False
    with pytest.raises(KeyError):
        book["passes"](lambda: {}["a mistake in the check"])


def test_the_checks_pass_on_random_vectors_and_see_the_future(book):
    import torch

    draw = torch.Generator().manual_seed(3)
    table = torch.randn(12, 4, generator=draw)
    ids = torch.tensor([[3, 4, 0, 0, 0], [5, 6, 7, 8, 0], [9, 0, 0, 0, 0]])

    def padded(ids, words):
        return book["weigh"](ids, table, words[:, None])

    def causal(ids, words):
        past = torch.ones(2 * [ids.shape[1]]).tril() > 0
        return book["weigh"](ids, table, past & words[:, None])

    assert all(book["run_checks"](causal, ids, table).values())
    found = book["run_checks"](padded, ids, table)
    assert [name for name in found if not found[name]] == ["future"]


def test_a_sentence_that_hears_the_others_is_not_alone(book):
    import torch

    def shared(ids, words):
        return book["weigh"](ids, table, words[:, None]) + len(ids)

    draw = torch.Generator().manual_seed(3)
    table = torch.randn(12, 4, generator=draw)
    ids = torch.tensor([[3, 4, 5], [5, 6, 0]])
    assert not book["run_checks"](shared, ids, table)["alone"]


def test_a_mask_that_keras_lost_leaves_the_weights_as_without_one(book):
    ids, table = book["token_ids"], book["table"]
    lost = book["lost_with_plus"](ids, table)
    np.testing.assert_allclose(lost, book["weigh"](ids, table), atol=1e-6)


def test_edited_masks_lose_what_came_before(book):
    import torch

    words = torch.tensor([[True, False, False], [True, True, True]])
    found = book["edited_in_place"](words).int().tolist()
    assert found == 2 * [[[1, 0, 0]] * 3]


# What is refused, and in which words.


@pytest.mark.parametrize("kind", ["", "_tf"])
def test_a_mask_of_numbers_is_refused_with_a_sentence(book, kind):
    array = book["tf"].constant if kind else book["torch"].tensor
    says = "a mask holds True and False, not .*; compare first, as in mask =="
    for numbers in ([[1, 0]], np.uint8([[1, 0]]), [[0.0, -np.inf]]):
        mask = array(numbers)
        x = array([[[1.0], [1.0]]])
        for name, *given in [
            ("to_additive", mask),
            ("count_places", mask),
            ("masked_mean", x[..., 0], mask),
            ("attend_or_zero", x, x, x, mask),
        ]:
            with pytest.raises(TypeError, match=says):
                book[f"{name}{kind}"](*given)


@pytest.mark.parametrize("kind", ["", "_tf"])
def test_a_fill_beyond_a_type_is_refused_and_its_last_number_is_not(
    book, kind
):
    library = book["tf" if kind else "torch"]
    mask = (library.constant if kind else library.tensor)([True, False])
    to_additive = book[f"to_additive{kind}"]
    for fill in (-65_504.0, 65_504.0):
        added = to_additive(mask, fill, library.float16)
        assert added.numpy().tolist() == [0, fill]
        with pytest.raises(ValueError, match="would be infinite in .*16"):
            to_additive(mask, 2 * fill, library.float16)


@pytest.mark.parametrize("kind", ["", "_tf"])
def test_what_has_no_mean_is_refused_with_a_sentence(book, kind):
    array = book["tf"].constant if kind else book["torch"].tensor
    masked_mean, mask = book[f"masked_mean{kind}"], array([True, False])
    says = "values of .*int64.* have no mean of that type$"
    with pytest.raises(TypeError, match=says):
        masked_mean(array(np.array([1, 2])), mask)
    with pytest.raises(ValueError, match="under a mask"):
        masked_mean(array([[1.0, 2.0]]), mask)
    with pytest.raises(ValueError, match="under a mask"):
        masked_mean(array([1.0, 2.0, 3.0]), mask)


@pytest.mark.parametrize("mask", [[[0, -np.inf]], [[1, 2]], [[-2, -1]]])
def test_the_mass_on_pads_wants_ones_and_zeros(book, mask):
    with pytest.raises(
        ValueError, match="True or 1 for a word, else False or 0$"
    ):
        book["mass_on_pads"](np.ones((1, 2, 2)), np.array(mask))


def test_the_mass_on_pads_of_ones_and_zeros_and_without_words(book):
    weights = np.array([[[0.5, 0.2, 0.3], [0.1, 0.2, 0.7], [0.0, 1.0, 0.0]]])
    for kind in (bool, int, float, np.uint8):
        mask = np.array([[1, 1, 0]]).astype(kind)
        assert book["mass_on_pads"](weights, mask) == 0.5
        assert book["mass_on_pads"](weights, 0 * mask) == 0
