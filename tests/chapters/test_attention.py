"""The chapter on attention: its exercises' checkers and its functions.

Each checker is tried on one wrong answer for each thing that it claims to
notice; test_exercises.py tries it on the stub and the solution.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.xdist_group("frameworks")


# Right and wrong answers


def softmax(scores, axis=-1):
    parts = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return parts / parts.sum(axis=axis, keepdims=True)


def naive(scores):
    parts = np.exp(scores)
    return parts / parts.sum(axis=-1, keepdims=True)


def attention(power=0.5, axis=-1, function=softmax, divide=None):
    """Return an answer to exercise 2 with another divisor or softmax.

    The divisor is a power of the width of a key, or divide if given.
    """

    def answer(query, key, value, d_model):
        scores = query @ key.swapaxes(1, 2)
        scores = scores / (divide or query.shape[-1] ** power)
        if function is softmax:
            return softmax(scores, axis) @ value
        return function(scores) @ value

    return answer


def in_place(query, key, value, d_model):
    query /= math.sqrt(query.shape[-1])
    return softmax(query @ key.swapaxes(1, 2)) @ value


def exchanged(query, key, value, d_model):
    return attention()(key, query, value, d_model)


def by_d_model(query, key, value, d_model):
    return attention(divide=math.sqrt(d_model))(query, key, value, d_model)


def layer(
    *,
    order=(0, 1, 2),
    always=False,
    never=False,
    enlarge=1.0,
    scale=None,
    drop="weights",
    exchange=False,
    fixed=None,
    own_rng=None,
    calm=1.0,
):
    """Return an answer to exercise 3 with one thing changed."""

    def answer(x, query_proj, key_proj, value_proj, rate, training, rng):
        given = query_proj, key_proj, value_proj
        q, k, v = (x @ given[i] for i in order)
        scores = q @ k.T / (scale or math.sqrt(k.shape[-1]))
        weights = softmax(scores) * (1.0 if training else calm)
        rate = fixed or rate
        chance = (own_rng() if own_rng else rng).random(weights.shape)
        if drop == "rows":
            chance = chance[:, :1]
        kept = chance < rate if exchange else chance >= rate
        factor = kept * enlarge / (1 - rate)
        drops = (training or always) and not never
        if drops and drop in ("weights", "rows"):
            weights = weights * factor
        if drops and drop == "normalised":
            kept[:, 0] = True
            weights = weights * kept
            weights = weights / weights.sum(axis=-1, keepdims=True)
        if drops and drop == "scores":
            weights = softmax(np.where(kept, scores, -np.inf))
        if drops and drop == "values":
            v = v * factor[:, : v.shape[1]]
        output = weights @ v
        if drops and drop == "outputs":
            output = output * factor[:, : output.shape[1]]
        return output

    return answer


def stream(
    *,
    shrink_sum=True,
    shrink_mixture=True,
    turned=False,
    first_only=False,
    ragged=True,
    largest=True,
    begin=-np.inf,
    divide=None,
    by_sum=True,
):
    """Return an answer to exercise 5 with one thing left out."""

    def answer(query, key, value, block):
        m, total, mixture = np.full((len(query), 1), begin), 0.0, 0.0
        end = len(key) if ragged else len(key) // block * block
        for start in range(0, end, block):
            rows = slice(start, start + block)
            root = divide or math.sqrt(query.shape[-1])
            scores = query @ key[rows].T / root
            new = np.maximum(m, scores.max(axis=-1, keepdims=True))
            if not largest:
                new = np.zeros_like(new)
            parts = np.exp(scores - new)
            old = np.exp(m - new) if largest else 1.0
            if turned and start:
                old = 1 / old
            total = total * (old if shrink_sum else 1.0)
            total = total + parts.sum(axis=-1, keepdims=True)
            mixture = mixture * (old if shrink_mixture else 1.0)
            mixture = mixture + parts @ value[rows]
            m = new
            if first_only:
                break
        return mixture / (total if by_sum else 1.0)

    return answer


def per_block(combine):
    """Return an answer to exercise 5 that attends to each block alone."""

    def answer(query, key, value, block):
        return combine(
            [
                softmax(query @ key[i : i + block].T / 2)
                @ value[i : i + block]
                for i in range(0, len(key), block)
            ]
        )

    return answer


def own_maxima(query, key, value, block):
    total, mixture = 0.0, 0.0
    for i in range(0, len(key), block):
        scores = query @ key[i : i + block].T / 2
        parts = np.exp(scores - scores.max(axis=-1, keepdims=True))
        total += parts.sum(axis=-1, keepdims=True)
        mixture += parts @ value[i : i + block]
    return mixture / total


def inner(p, g):
    return (p * g).sum(axis=-1, keepdims=True)


def mixture(logs, third=0.0):
    """Return an answer to exercise 1.

    logs: the logarithm of the first weight over the second; third: the
    weight of each key after them.
    """
    low = third * (math.exp(logs) + 1) / (1 - 2 * third)
    scores = np.array([logs, 0, math.log(max(low, 1e-20))])
    return lambda: scores * math.sqrt(3) / 10


# What is no answer to any exercise, and what its checker says.

ROOT, LOG = math.sqrt(3), math.log(3)
# Wrong answers by exercise: the verdict after its number, and the answer.
WRONG = {
    "mixture_query": [
        ("the third key still gets 0.0122.", lambda: [0.75, 0.25, 0]),
        ("three quarters for the second: exchange the two.", mixture(-LOG)),
        (
            "forgotten: scores are divided by the root of 3.",
            lambda: [LOG / 10, 0, -1],
        ),
        (
            "forgotten: the keys are ten long, not one.",
            lambda: [LOG * ROOT, 0, -9],
        ),
        ("forgotten: keys are ten long; the root of 3.", lambda: [LOG, 0, -9]),
    ],
    "own_attention": [
        (
            "rows of your weights sum to 0.57 to 1.98: "
            "the softmax runs over the queries.",
            attention(axis=1),
        ),
        ("queries and keys are exchanged.", exchanged),
        ("the scores are not divided.", attention(0)),
        ("divided by the root of d_model; a head is narrower.", by_d_model),
        (
            "NaN for large scores; take off the maximum.",
            attention(function=naive),
        ),
    ],
    "dropout_layer": [
        ("drops although it is not training.", layer(always=True)),
        ("key_proj is never used.", layer(order=(0, 0, 2))),
        (
            "what stays is 1.00 times as large, for a rate of 0.2.",
            layer(enlarge=0.8),
        ),
        ("drops 0.80 of the weights for a rate of 0.2.", layer(exchange=True)),
        ("drops numbers of the output, not weights.", layer(drop="outputs")),
    ],
    "softmax_backward": [
        ("only diag(p) g; rows do not sum to zero.", lambda p, g: p * g),
        ("only the diagonal of the Jacobian.", lambda p, g: p * (1 - p) * g),
        ("the factor p in front is missing.", lambda p, g: g - inner(p, g)),
        ("the sign is turned.", lambda p, g: p * (inner(p, g) - g)),
        (
            "the sum runs over the queries.",
            lambda p, g: p * (g - (p * g).sum(axis=0)),
        ),
    ],
    "attend_in_blocks": [
        (
            "the blocks' outputs are averaged.",
            per_block(lambda outputs: np.mean(outputs, axis=0)),
        ),
        ("each block has its own maximum.", own_maxima),
        (
            "the sum is rescaled, the mixture is not.",
            stream(shrink_mixture=False),
        ),
        ("the mixture is not divided by the sum.", stream(by_sum=False)),
        ("the last block is lost when it is not full.", stream(ragged=False)),
    ],
}


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_wrong_answer_is_diagnosed(book, name, says, answer):
    assert book[f"check_{name}"](answer) == says


@pytest.mark.parametrize(
    ("number", "name", "answer"),
    [
        (1, "mixture_query", mixture(LOG, 0.0008)),
        (1, "mixture_query", lambda: mixture(LOG)() + 1),
        (1, "mixture_query", mixture(LOG - 0.004)),
        (1, "mixture_query", mixture(LOG + 0.004)),
        (2, "own_attention", attention()),
        (2, "own_attention", in_place),
        (3, "dropout_layer", layer()),
        (5, "attend_in_blocks", stream()),
    ],
)
def test_other_right_answer_is_accepted(book, number, name, answer):
    verdict = book[f"check_{name}"](answer)
    assert verdict == f"Exercise {number}: correct."


# What the chapter defines, beyond the sizes that it shows


@pytest.mark.parametrize("kind", ["", "_tf"])
def test_blocked_scores_count_for_nothing_however_low_the_others(
    book, attend_to_low_scores, kind
):
    assert attend_to_low_scores(book, kind) == [[[2]], [[1, 0]]]


def test_blocks_of_one_with_scores_far_below_zero(book):
    given = np.array([[-1e10]]), np.ones((2, 1)), np.array([[1.0], [3.0]])
    assert book["attend_in_blocks_solution"](*given, 1) == 2


def test_the_root_after_the_product_gives_the_same(book):
    rng = np.random.default_rng(0)
    given = [rng.standard_normal((2, size, 8)) for size in (3, 5, 5)]
    for kind, array in (
        ("", book["torch"].tensor),
        ("_tf", book["tf"].constant),
    ):
        arrays = list(map(array, given))
        late = book[f"attend_dividing_scores{kind}"](*arrays)
        right, _ = book[f"attend{kind}"](*arrays)
        np.testing.assert_allclose(late, right, rtol=1e-12)


def test_own_attention_of_other_lengths_than_widths(book):
    rng = np.random.default_rng(0)
    query, key = rng.standard_normal((2, 3, 4)), rng.standard_normal((2, 5, 4))
    given = query, key, rng.standard_normal((2, 5, 6)), 12
    found = book["own_attention_solution"](*given)
    assert np.allclose(found, attention()(*given))


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4)])
def test_naive_softmax_is_along_the_last_axis(book, shape):
    import tensorflow as tf
    import torch

    scores = np.random.default_rng(0).standard_normal(shape)
    for kind, array in (("", torch.tensor), ("_tf", tf.constant)):
        found = book[f"naive_softmax{kind}"](array(scores))
        assert np.allclose(found, softmax(scores))


@pytest.mark.parametrize("d_model", [6, 7])
def test_position_table_of_many_places_in_either_type(book, d_model):
    import tensorflow as tf
    import torch

    angles = np.arange(5000)[:, None] / 10000 ** (np.arange(0, 8, 2) / d_model)
    right = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    right = right.reshape(5000, 8)[:, :d_model]
    for kind, of in (("", torch), ("_tf", tf)):
        table = book[f"position_table{kind}"]
        assert table(5000, d_model).dtype == of.float32
        exact = table(5000, d_model, dtype=of.float64)
        assert exact.dtype == of.float64
        assert np.allclose(exact, right, rtol=0, atol=1e-9)


def test_the_small_model_divides_its_matrices_by_the_root_of_the_width(book):
    words, places, *matrices = book["small_model"](500, 400, 64)
    for drawn, spread in [
        (words, 1),
        (places, 1),
        *((m, 8) for m in matrices),
    ]:
        assert math.isclose(drawn.detach().std() * spread, 1, abs_tol=0.05)


@pytest.mark.parametrize("axis", [-1, -2])
def test_the_small_model_attends(book, axis):
    import torch

    parameters = book["small_model"](8, 6, 4)
    token_ids = torch.tensor([[3, 1, 4, 1, 5, 0], [2, 7, 1, 6, 2, 4]])
    found = book["word_scores"](token_ids, parameters, axis).detach()
    words, places, *matrices = (p.detach().numpy() for p in parameters)
    x = words[token_ids] + places
    query, key, value = (x @ matrix for matrix in matrices[:3])
    weights = softmax(query @ key.swapaxes(1, 2) / 2, axis)
    assert np.allclose(found, weights @ value @ matrices[3], atol=1e-5)


def test_the_small_model_has_to_learn(book):
    assert book["train_backwards"](-1, steps=0) < 0.5
    assert all(0.99 < share <= 1 for share in book["accuracies"].values())


def test_one_query_with_large_scores(book):
    given = np.array([1000.0]), np.array([[1.0], [2.0]]), np.eye(2)
    output, weights = book["attend_one_query"](*given)
    assert output.tolist() == weights.tolist() == [0, 1]


# What is no answer at all gets a sentence, whichever exercise it is


# Every type, size and stride

SIZES, SOME = st.integers(1, 4), st.integers(0, 3)
FLOATS = st.sampled_from(["float16", "bfloat16", "float32", "float64"])


def in_both(array, name):
    """Return an array as tensors of a type: PyTorch's and TensorFlow's."""
    import tensorflow as tf
    import torch

    tensor = torch.tensor(array).to(getattr(torch, name))
    return tensor, tf.cast(tf.constant(array), getattr(tf, name))


def as_float64(tensor):
    """Return a tensor of either framework as an array of float64."""
    import tensorflow as tf

    if hasattr(tensor, "detach"):
        return tensor.double().numpy()
    return tf.cast(tensor, tf.float64).numpy()


@given(
    front=st.lists(SOME, max_size=2),
    T=SOME,
    S=SIZES,
    K=SIZES,
    V=SIZES,
    name=FLOATS,
    step=st.integers(1, 2),
    mask_axes=st.integers(0, 4),
    seed=st.integers(0, 99),
)
def test_attend_for_every_type_size_and_stride(
    book, front, T, S, K, V, name, step, mask_axes, seed
):
    """An empty batch and a mask with fewer axes than scores included."""
    rng = np.random.default_rng(seed)
    shapes = [(*front, *last) for last in ((T, K), (S, K), (S, V))]
    wide = [rng.standard_normal((*n[:-1], n[-1] * step)) for n in shapes]
    pairs = [in_both(array, name) for array in wide]
    pairs = [[tensor[..., ::step] for tensor in pair] for pair in pairs]
    query, key, value = (as_float64(pair[0]) for pair in pairs)
    mask = rng.random((*front, T, S)) < 0.6
    mask = mask[(0,) * max(mask.ndim - mask_axes, 0)] if mask.size else None
    if mask is not None:
        mask = np.atleast_1d(mask)
        mask[..., 0] = True
    scores = query @ np.swapaxes(key, -2, -1) / math.sqrt(K)
    weights = softmax(np.where(True if mask is None else mask, scores, -1e9))
    within = {"float16": 0.01, "bfloat16": 0.1, "float32": 1e-5}
    for place, kind in enumerate(("", "_tf")):
        given_ = [pair[place] for pair in pairs]
        if mask is not None:
            given_.append(in_both(mask, "bool")[place])
        found = book[f"attend{kind}"](*given_)
        for tensor, right in zip(
            found, (weights @ value, weights), strict=True
        ):
            assert tensor.dtype == given_[0].dtype
            assert as_float64(tensor).shape == right.shape
            np.testing.assert_allclose(
                as_float64(tensor), right, atol=within.get(name, 1e-12)
            )


@given(
    number=st.integers(1, 255),
    K=st.sampled_from([1, 4, 16, 64, 256]),
    name=st.sampled_from(["float16", "bfloat16"]),
)
def test_attend_is_finite_where_its_scores_are(book, number, K, name):
    """In half precision, though the product before the division is not."""
    number = math.sqrt(min(number**2, 65504 / math.sqrt(K)))
    pair = in_both(np.full((2, K), math.floor(number)), name)
    for tensor, kind in zip(pair, ("", "_tf"), strict=True):
        output, _ = book[f"attend{kind}"](tensor, tensor, tensor)
        assert np.array_equal(as_float64(output), as_float64(tensor))
        query = as_float64(tensor).astype(np.float16)
        output, _ = book["attend_one_query"](query[0], query, query)
        assert np.array_equal(output, query[0])


@pytest.mark.parametrize("name", ["uint8", "int32", "int64", "float32"])
def test_masks_of_numbers_are_refused_by_both(book, name):
    """1 and 0 may mean the opposite elsewhere, and are added in a third."""
    x, x_tf = in_both(np.ones((3, 2)), "float32")
    numbers, numbers_tf = in_both(np.tri(3), name)
    with pytest.raises((RuntimeError, TypeError), match="(?i)bool"):
        book["attend"](x, x, x, numbers)
    for mask in (numbers_tf, np.tri(3).astype(name), np.tri(3).tolist()):
        with pytest.raises(
            book["tf"].errors.InvalidArgumentError, match="bool"
        ):
            book["attend_tf"](x_tf, x_tf, x_tf, mask)


@given(B=SOME, T=SIZES, D=SIZES, K=SIZES, V=SIZES, name=FLOATS, seed=SOME)
def test_self_attend_of_any_size(book, B, T, D, K, V, name, seed):
    rng = np.random.default_rng(seed)
    shapes = [(B, T, D), (D, K), (D, K), (D, V)]
    pairs = [in_both(rng.standard_normal(shape), name) for shape in shapes]
    first, second = zip(*pairs, strict=True)
    found, found_tf = (
        book[f"self_attend{kind}"](*given_)
        for kind, given_ in (("", first), ("_tf", second))
    )
    within = {"float16": 0.05, "bfloat16": 0.4, "float32": 1e-4}
    for tensor, twin, shape in zip(
        found, found_tf, [(B, T, V), (B, T, T)], strict=True
    ):
        assert tuple(tensor.shape) == tuple(twin.shape) == shape
        np.testing.assert_allclose(
            as_float64(tensor), as_float64(twin), atol=within.get(name, 1e-10)
        )


@given(
    shape=st.lists(SIZES, min_size=1, max_size=3),
    name=st.sampled_from(["float16", "float32", "float64", "int64"]),
    seed=st.integers(0, 99),
)
def test_softmax_of_arrays(book, shape, name, seed):
    """Along every axis, for scores that would overflow."""
    scores = 500 * np.random.default_rng(seed).standard_normal(shape)
    scores = scores.astype(name)
    for axis in range(len(shape)):
        found = book["softmax"](scores, axis=axis)
        assert (found >= 0).all()
        np.testing.assert_allclose(found.sum(axis=axis), 1, atol=1e-2)
        exact = book["softmax"](scores.astype(float), axis=axis)
        np.testing.assert_allclose(found, exact, atol=1e-2)


@given(S=SIZES, seed=st.integers(0, 99))
def test_the_jacobian_is_the_one_measured(book, S, seed):
    scores = np.random.default_rng(seed).standard_normal(S)
    own = book["softmax_jacobian"](softmax(scores))
    steps = 1e-6 * np.eye(S)
    rises = softmax(scores + steps) - softmax(scores - steps)
    np.testing.assert_allclose(own, rises.T / 2e-6, atol=1e-8)


@given(T=st.integers(0, 6), half=st.integers(1, 6), k=st.integers(-3, 3))
def test_heads_that_look_back_are_twins(book, T, half, k):
    torch, tf = book["torch"], book["tf"]
    rows = book["position_table"](T, 2 * half, dtype=torch.float64)
    table = tf.constant(rows.numpy())
    found = book["look_back"](rows, k, 2.0)
    found_tf = book["look_back_tf"](table, k, 2.0)
    np.testing.assert_allclose(found, found_tf, atol=1e-12)
    offsets = np.subtract.outer(np.arange(T), np.arange(T)) - k
    right = np.exp(2 * book["similarity"](offsets, 2 * half))
    right /= right.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(found, right, atol=1e-10)
    for name in ("float16", "float32"):
        with pytest.raises(RuntimeError, match="same dtype"):
            book["look_back"](rows.to(getattr(torch, name)), k, 2.0)
        with pytest.raises(tf.errors.InvalidArgumentError, match="double"):
            book["look_back_tf"](tf.cast(table, name), k, 2.0)


@pytest.mark.parametrize("width", [1, 3, 5, 63])
def test_a_head_of_an_odd_width_cannot_look_back(book, width):
    torch, tf = book["torch"], book["tf"]
    for name, table in [
        ("look_back", torch.ones(2, width, dtype=torch.float64)),
        ("look_back_tf", tf.ones((2, width), tf.float64)),
    ]:
        with pytest.raises(ValueError, match=f"even, and is {width}"):
            book[name](table, 1, 1.0)


def test_tables_have_heads_and_names_and_even_columns(book, capsys):
    book["print_table"](["a", "long column"], {"row": [0.5, 2], "r": ["", 0]})
    assert capsys.readouterr().out.split("\n") == [
        "          a  long column",
        "row  0.5000            2",
        "r                      0",
        "",
    ]


def test_the_pads_of_the_walk_are_where_no_word_is(book):
    """Two sentences, seven places, and the ids of the chapter on words."""
    assert book["token_ids"] == [
        [8, 6, 10, 11, 0, 0, 0],
        [2, 7, 9, 4, 3, 5, 0],
    ]
    assert [len(words) for words in book["tokens"]] == [7, 7]
