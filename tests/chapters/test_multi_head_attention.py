"""The chapter on heads: its exercises' checkers, its layers and functions.

Each checker is tried on one wrong answer for each thing that it claims to
notice; test_exercises.py tries it on the stub and the solution.
"""

import math

import numpy as np
import pytest

from tools.notebooks import Notebook, definitions
from tools.settings import BOOK

pytestmark = pytest.mark.xdist_group("frameworks")

# What MultiHeadAttentionTF is made of.
NEEDED = {
    *("attend_tf", "split_heads_tf", "merge_heads_tf"),
    *("head_width", "mask_per_head", "projections"),
    "MultiHeadAttentionTF",
}


@pytest.fixture(scope="session")
def book(chapter):
    """The variables of the chapter after a run; not to be changed."""
    return chapter("multi_head_attention")


# Right and wrong answers


def joined(heads):
    return np.concatenate(list(heads.swapaxes(0, 1)), axis=-1)


def by_view(x, num_heads):
    return x.reshape(x.shape[0], num_heads, x.shape[1], -1)


def split(x, num_heads):
    batch_size, seq_len, _ = x.shape
    return x.reshape(batch_size, seq_len, num_heads, -1).swapaxes(1, 2)


def brackets(heads):
    batch_size, num_heads, seq_len, d_head = heads.shape
    return heads.reshape(batch_size, seq_len, num_heads * d_head)


def layer(
    split=split,
    merge=joined,
    axis=-1,
    power=0.5,
    of_model=False,
    last=True,
    bias=True,
    order=(0, 1, 2),
    transposed=False,
):
    """Return an answer to exercise 3 with the given mistakes."""

    def answer(query, key, value, matrices, biases, num_heads):
        inputs = [(query, key, value)[i] for i in order]
        if transposed:
            matrices = matrices.swapaxes(1, 2)
        biases = biases * bias
        query, key, value = (
            split(inputs[i] @ matrices[i] + biases[i], num_heads)
            for i in range(3)
        )
        width = query.shape[-1] * (num_heads if of_model else 1)
        scores = query @ key.swapaxes(-2, -1) / width**power
        weights = np.exp(scores - scores.max(axis=axis, keepdims=True))
        weights /= weights.sum(axis=axis, keepdims=True)
        merged = merge(weights @ value)
        return merged @ matrices[3] + biases[3] if last else merged

    return answer


def reordered(shape, axes):
    def answer(rows, num_heads):
        return rows.reshape(shape).transpose(axes).reshape(rows.shape)

    return answer


def folded(extra, keep=(1, 0, 0, 1)):
    """Return an answer to exercise 5 that adds extra(m, b) to the output."""

    def answer(matrices, biases):
        new = biases * np.float32(keep)[:, None]
        new[3] += extra(matrices, biases)
        return new

    return answer


def in_place(fold):
    """Return an answer to exercise 5 that writes on what it is given."""

    def answer(matrices, biases):
        matrices[3] *= biases[2][:, None] * fold
        biases[3] += matrices[3].sum(axis=0)
        biases[1:3] = 0
        return biases

    return answer


def shared(places):
    """Return an answer that takes other matrices than it should."""

    def answer(query, key, value, matrices, biases, num_heads):
        given = query, key, value, matrices[places], biases[places]
        return layer()(*given, num_heads)

    return answer


def always(num_heads):
    def answer(query, key, value, matrices, biases, _):
        return layer()(query, key, value, matrices, biases, num_heads)

    return answer


def by_two(query, key, value, matrices, biases, num_heads):
    d_head = query.shape[-1] / num_heads
    factors = np.array([math.sqrt(d_head) / 2, 1, 1, 1])[:, None]
    matrices, biases = matrices * factors[..., None], biases * factors
    return layer()(query, key, value, matrices, biases, num_heads)


def overflows(query, key, value, matrices, biases, num_heads):
    query, key, value = (
        split(x @ matrices[i] + biases[i], num_heads)
        for i, x in enumerate((query, key, value))
    )
    weights = np.exp(query @ key.swapaxes(2, 3) / query.shape[-1] ** 0.5)
    weights /= weights.sum(axis=-1, keepdims=True)
    return joined(weights @ value) @ matrices[3] + biases[3]


def sliced(heads):
    merged = np.empty((*heads.shape[::2], heads.shape[1] * heads.shape[3]))
    for i in range(heads.shape[1]):
        for k in range(heads.shape[3]):
            merged[:, :, i * heads.shape[3] + k] = heads[:, i, :, k]
    return merged


def concatenated(heads, order=1):
    return np.concatenate(
        [heads[:, i] for i in range(heads.shape[1])][::order], axis=-1
    )


def without_queries(matrices, biases):
    """Write on what is given, so that nothing right is left to compare."""
    biases[3] += biases[2] @ matrices[3]
    biases[:3] = 0
    return biases


# Wrong answers by exercise: the verdict after its number, and the answer.
WRONG = {
    "parameter_count": [
        ("the biases are missing.", lambda d, h, bias: 4 * d * d),
        (
            "the output projection is missing.",
            lambda d, h, bias: 3 * d * d + 3 * d * bias,
        ),
        (
            "a head has the width d / h; yours has d.",
            lambda d, h, bias: 4 * h * d * d + (3 * h + 1) * d * bias,
        ),
        (
            "a bias has one number for each column.",
            lambda d, h, bias: 4 * d * d + 4 * bias,
        ),
        (
            "this is one head; there are h of them.",
            lambda d, h, bias: 4 * d * (d // h) + 4 * (d // h) * bias,
        ),
        (
            "this is one projection; there are more.",
            lambda d, h, bias: d * d + d * bias,
        ),
        (
            "without biases there are fewer.",
            lambda d, h, bias: 4 * d * d + 4 * d,
        ),
        ("1 is wrong for 32, 8, True.", lambda d, h, bias: 1),
        (
            "4097 is wrong for 32, 8, False.",
            lambda d, h, bias: 4097 + 127 * bias,
        ),
        (
            "4224 is wrong for 64, 4, True.",
            lambda d, h, bias: 4096 + 128 * bias,
        ),
        (
            "0 is wrong for 12, 2, False.",
            lambda d, h, bias: (4 * d * d + 4 * d * bias) * (d > 12),
        ),
        ("nan is wrong for 32, 8, True.", lambda d, h, bias: math.nan),
        ("the shape is (1,), not ().", lambda d, h, bias: [4 * d * d + 4 * d]),
    ],
    "merge_by_loop": [
        (
            "the heads are added up; put them side by side.",
            lambda heads: heads.sum(axis=1),
        ),
        (
            "the heads are joined along the words.",
            lambda heads: np.concatenate(list(heads.swapaxes(0, 1)), axis=1),
        ),
        ("the shape is (2, 3, 5, 4), not (2, 5, 12).", lambda heads: heads),
        ("only brackets are set; word 0 holds head 0 alone.", brackets),
        (
            "the heads' columns alternate.",
            lambda heads: heads.transpose(0, 2, 3, 1).reshape(2, 5, 12),
        ),
        (
            "the last head comes first.",
            lambda heads: concatenated(heads, order=-1),
        ),
        ("this is one head alone.", lambda heads: heads[:, 0]),
        (
            "0.0 at [0, 0, 0] is wrong for heads (2, 3, 5, 4).",
            lambda heads: np.zeros((2, 5, 12)),
        ),
        (
            "nan at [0, 0, 0] is wrong for heads (2, 3, 5, 4).",
            lambda heads: np.full((2, 5, 12), np.nan),
        ),
        (
            "the shape is (1, 3, 6), not (1, 3, 8).",
            lambda heads: np.concatenate([heads[:, i] for i in range(3)], -1),
        ),
        (
            "right, but by swapaxes; slice or join instead.",
            lambda heads: np.concatenate(list(heads.swapaxes(0, 1)), axis=-1),
        ),
        (
            "right, but by reshape; slice or join instead.",
            lambda heads: np.array(
                [
                    [
                        sentence[:, t].reshape(-1)
                        for t in range(len(sentence[0]))
                    ]
                    for sentence in heads
                ]
            ),
        ),
    ],
    "numpy_multi_head": [
        (
            "the shape is (2, 3, 5, 4), not (2, 5, 12).",
            lambda query, *rest: np.zeros((2, 3, 5, 4)),
        ),
        ("the split lacks its transpose.", layer(split=by_view)),
        ("the merge lacks its transpose.", layer(merge=brackets)),
        (
            "split and merge both lack their transpose.",
            layer(split=by_view, merge=brackets),
        ),
        ("divide by sqrt(d_k), not by sqrt(d).", layer(of_model=True)),
        ("the scores are not divided by sqrt(d_k).", layer(power=0)),
        ("the softmax runs over the queries.", layer(axis=-2)),
        ("the output projection is missing.", layer(last=False)),
        ("the biases are missing.", layer(bias=False)),
        ("keys and values have changed places.", layer(order=(0, 2, 1))),
        ("the matrices are (in, out).", layer(transposed=True)),
        ("the keys' matrix makes the values.", shared([0, 1, 1, 3])),
        ("the queries' matrix makes the keys.", shared([0, 0, 2, 3])),
        ("one head has all columns; split them.", always(1)),
        ("num_heads is always 3.", always(3)),
        ("the scores are always divided by 2.", by_two),
        ("large scores overflow; take off each row's maximum.", overflows),
        (
            "0.0 at [0, 0, 0] is wrong for 3 heads and a width of 12.",
            lambda query, *rest: np.zeros_like(query),
        ),
        (
            "nan at [0, 0, 0] is wrong for 3 heads and a width of 12.",
            lambda query, *rest: np.nan * query,
        ),
        (
            "0.0 at [0, 0, 0] is wrong for 2 heads and a width of 6.",
            lambda query, *rest: layer()(query, *rest) * (len(query) > 1),
        ),
    ],
    "repack": [
        ("the shape is (8, 24), not (24, 8).", lambda rows, h: rows.T),
        ("nothing moved; reshape sets brackets.", lambda rows, h: rows),
        (
            "this is the way back, to (3, H, K).",
            reordered((4, 3, 2, 8), (1, 0, 2, 3)),
        ),
        ("these rows are (H, K, 3).", reordered((3, 4, 2, 8), (1, 2, 0, 3))),
        ("these rows are (K, 3, H).", reordered((3, 4, 2, 8), (2, 0, 1, 3))),
        ("these rows are (K, H, 3).", reordered((3, 4, 2, 8), (2, 1, 0, 3))),
        ("these rows are (3, K, H).", reordered((3, 4, 2, 8), (0, 2, 1, 3))),
        (
            "columns moved; they are the input's.",
            reordered((24, 4, 2), (0, 2, 1)),
        ),
        (
            "184.0 at [0, 0] is wrong for 4 heads and a width of 8.",
            lambda rows, h: rows[::-1],
        ),
        (
            "nan at [0, 0] is wrong for 4 heads and a width of 8.",
            lambda rows, h: np.nan * rows,
        ),
        ("num_heads is always 4.", reordered((3, 4, 2, 8), (1, 0, 2, 3))),
    ],
    "fold_biases": [
        ("the shape is (12,), not (4, 12).", lambda m, b: b[3]),
        (
            "keys or values still have a bias; rows 1 and 2.",
            folded(lambda m, b: b[2] @ m[3], keep=(1, 1, 0, 1)),
        ),
        (
            "keys or values still have a bias; rows 1 and 2.",
            folded(lambda m, b: b[2] @ m[3], keep=(1, 0, 1, 1)),
        ),
        (
            "the queries' bias matters and has to stay.",
            folded(lambda m, b: b[2] @ m[3], keep=(0, 0, 0, 1)),
        ),
        (
            "the values' bias is dropped, but it reaches the output.",
            folded(lambda m, b: 0),
        ),
        (
            "the values' bias is dropped, but it reaches the output.",
            in_place(fold=0),
        ),
        ("the queries' bias matters and has to stay.", without_queries),
        (
            "the values' bias still has to pass a matrix.",
            folded(lambda m, b: b[2]),
        ),
        (
            "a row vector stands to the left of its matrix.",
            folded(lambda m, b: m[3] @ b[2]),
        ),
        (
            "the keys' bias goes nowhere.",
            folded(lambda m, b: (b[1] + b[2]) @ m[3]),
        ),
        (
            "the output's own bias has to stay.",
            folded(lambda m, b: b[2] @ m[3], keep=(1, 0, 0, 0)),
        ),
        (
            "7.4424 at [3, 0] is wrong: the output changes.",
            folded(lambda m, b: 7),
        ),
        (
            "nan at [0, 0] is wrong: the output changes.",
            lambda m, b: np.nan * b,
        ),
        (
            "nan at [3, 0] is wrong: the output changes.",
            folded(lambda m, b: np.nan),
        ),
    ],
}


def test_wrong_answer_is_diagnosed(book, name, says, answer):
    assert book[f"check_{name}"](answer) == says


def test_an_odd_answer_gets_a_sentence(book, name, number, odd):
    answer, says = odd
    assert book[f"check_{name}"](answer) == f"Exercise {number}: {says}."


def by_heads(d, h, bias):
    return 4 * h * (d // h) * d + 4 * d * bias


@pytest.mark.parametrize(
    ("number", "name", "answer"),
    [
        (1, "parameter_count", by_heads),
        (2, "merge_by_loop", sliced),
        (2, "merge_by_loop", concatenated),
        (3, "numpy_multi_head", layer()),
        (5, "fold_biases", in_place(fold=1)),
    ],
)
def test_other_right_answer_is_accepted(book, number, name, answer):
    verdict = book[f"check_{name}"](answer)
    assert verdict == f"Exercise {number}: correct."


@pytest.mark.parametrize("kind", ["", "TF"])
def test_answer_may_come_from_a_layer(book, kind):
    """A tensor of either framework, with its gradient or without."""

    def answer(query, key, value, matrices, biases, num_heads):
        own = book[f"MultiHeadAttention{kind}"](len(biases[0]), num_heads)
        load = "load_parameters_tf" if kind else "load_parameters"
        book[load](own, matrices, biases)
        array = book["tf"].constant if kind else book["torch"].tensor
        return own(*(array(np.float32(x)) for x in (query, key, value)))

    assert book["check_numpy_multi_head"](answer) == "Exercise 3: correct."


@pytest.mark.parametrize("name", list(WRONG)[1:])
def test_answer_may_be_a_list(book, name):
    def answer(*given):
        return book[f"{name}_solution"](*given).tolist()

    assert book[f"check_{name}"](answer).endswith(": correct.")


# What the chapter defines, beyond the sizes that it shows


@pytest.mark.parametrize(("d_model", "num_heads"), [(1, 1), (6, 1), (6, 6)])
@pytest.mark.parametrize("lengths", [(1, 1), (3, 2)])
def test_sizes_of_one(book, d_model, num_heads, lengths):
    import tensorflow as tf
    import torch

    rng = np.random.default_rng(0)
    x, memory = (
        np.float32(rng.standard_normal((1, n, d_model))) for n in lengths
    )
    parameters = book["draw_parameters"](d_model, seed=0)
    own = book["MultiHeadAttention"](d_model, num_heads)
    own_tf = book["MultiHeadAttentionTF"](d_model, num_heads)
    book["load_parameters"](own, *parameters)
    book["load_parameters_tf"](own_tf, *parameters)
    right = layer()(x, memory, memory, *parameters, num_heads)
    x_tf, memory_tf = tf.constant(x), tf.constant(memory)
    x, memory = torch.tensor(x), torch.tensor(memory)
    found = own(x, memory, memory).detach()
    assert np.allclose(found, right, rtol=1e-4, atol=1e-5)
    found = own_tf(x_tf, memory_tf, memory_tf)
    assert np.allclose(found, right, rtol=1e-4, atol=1e-5)
    theirs, _ = book["to_torch_layer"](own)(x, memory, memory)
    assert np.allclose(theirs.detach(), right, rtol=1e-4, atol=1e-5)
    theirs = book["to_keras_layer"](own_tf)(query=x_tf, value=memory_tf)
    assert np.allclose(theirs, right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("num_heads", [0, -1, 4, 11])
@pytest.mark.parametrize("kind", ["", "TF"])
def test_heads_that_do_not_divide_the_width(book, kind, num_heads):
    message = f"d_model=10 cannot be divided among {num_heads} heads"
    with pytest.raises(ValueError, match=message):
        book[f"MultiHeadAttention{kind}"](10, num_heads)


def test_a_mask_may_differ_from_head_to_head(book):
    import torch

    own, x = book["layer"], book["x"]
    mask = torch.ones(2, 3, 5, 5, dtype=torch.bool)
    mask[:, 1] = torch.eye(5, dtype=torch.bool)
    _, weights = own(x, x, x, mask, need_weights=True)
    assert torch.equal(weights[:, 1], torch.eye(5).expand(2, 5, 5))
    assert (weights[:, [0, 2]] > 0).all()


def test_the_keras_layer_works_in_a_compiled_function_of_any_size(book):
    import keras
    import tensorflow as tf

    names = {"keras": keras, "math": math, "tf": tf}
    for name, source, _ in definitions(
        Notebook.read(BOOK / "multi_head_attention.ipynb")
    ):
        if name in NEEDED:
            exec(source, names)
    own = names["MultiHeadAttentionTF"](12, 3)
    book["load_parameters_tf"](own, book["matrices"], book["biases"])
    spec = tf.TensorSpec((None, None, 12), tf.float32)
    compiled = tf.function(lambda x: own(x, x, x), input_signature=[spec])
    for x in (book["x_tf"], book["memory_tf"][:1]):
        wanted = book["layer_tf"](x, x, x)
        assert np.allclose(compiled(x), wanted, rtol=1e-4, atol=1e-5)


def test_dropout_scales_what_it_keeps(book):
    import torch

    torch.manual_seed(0)
    own = book["MultiHeadAttention"](12, 3, dropout=0.5)
    own.output_proj.weight.data = torch.eye(12)
    own.output_proj.bias.data.zero_()
    x = torch.ones(1, 1, 12)
    value = own.value_proj(x)[0, 0].detach()
    heads = own(x.expand(4000, 1, 12), *[x.expand(4000, 1, 12)] * 2).detach()
    ratio = heads[:, 0] / value  # one key: 0 where dropped, else 2
    assert set(ratio.round(decimals=4).unique().tolist()) == {0.0, 2.0}
    assert math.isclose(ratio.mean(), 1, abs_tol=0.05)


def test_dropout_in_tensorflow_scales_what_it_keeps(book):
    import tensorflow as tf

    tf.keras.utils.set_random_seed(0)
    assert book["MultiHeadAttentionTF"](12, 3).dropout.rate == 0
    own = book["MultiHeadAttentionTF"](12, 3, dropout=0.5)
    own.output_proj.set_weights([np.eye(12), np.zeros(12)])
    x = tf.ones((4000, 1, 12))
    heads = own(x, x, x, training=True).numpy()[:, 0]
    ratio = (heads / own.value_proj(x).numpy()[:, 0]).round(4)
    assert set(ratio.ravel()) == {0.0, 2.0}
    assert math.isclose(ratio.mean(), 1, abs_tol=0.05)


@pytest.mark.parametrize("kind", ["", "_tf"])
def test_packed_projections_of_two_heads(book, kind):
    array = book["tf"].constant if kind else book["torch"].tensor
    numbers = np.arange(12)
    for heads_first, columns in [
        (False, numbers.reshape(3, 2, 2)),
        (True, numbers.reshape(2, 3, 2).swapaxes(0, 1)),
    ]:
        given = array(numbers.reshape(1, 1, 12)), 2, heads_first
        found = np.asarray(book[f"unpack{kind}"](*given))
        assert np.array_equal(found[:, 0, :, 0], columns)


def test_complaint_keeps_what_an_error_says(book):
    assert book["complaint"]("raise ValueError") == "ValueError"
    assert book["complaint"]("raise ValueError('no!')") == "ValueError: no!"


@pytest.mark.parametrize("kind", ["", "_tf"])
def test_attend_with_is_the_layer_with_its_own_split_and_merge(book, kind):
    own, x, mask = (
        book[f"{name}{kind}"] for name in ("layer", "x", "causal_mask")
    )
    parts = [book[f"{name}_heads{kind}"] for name in ("split", "merge")]
    for given in ((x, x, x), (x, x, x, mask)):
        right = own(*given)
        named = dict(zip(("split", "merge"), parts, strict=True))
        found = book[f"attend_with{kind}"](own, *given, **named)
        if not kind:
            found, right = found.detach(), right.detach()
        assert np.allclose(found, right, rtol=1e-4, atol=1e-5)


def test_what_the_sublayers_add_to_what(book):
    def output_proj(x):
        return 10 * x

    def norm(x):
        return x + 1

    mended = book["mended_sublayer"](2, 3, output_proj, norm)
    assert mended == (10 * (3 + 2 + 1) + 3) + 1
    right = book["residual_sublayer"](2, 3, output_proj, norm)
    assert right == (2 + 10 * 3) + 1


@pytest.mark.parametrize("kind", ["", "_tf"])
def test_blocked_scores_count_for_nothing_however_low_the_others(
    book, attend_to_low_scores, kind
):
    assert attend_to_low_scores(book, kind) == [[[2]], [[1, 0]]]


@pytest.mark.parametrize("kind", ["", "_tf"])
def test_the_reach_behind_a_normalisation(book, kind):
    """What a sum of columns that is constant would not see."""
    x = book[f"nine{kind}"]
    layer, norm = book[f"layer{kind}"], book[f"norm{kind}"]
    found = book[f"reach{kind}"](lambda x: norm(x + layer(x, x, x)), x)
    assert (np.asarray(found) > 1e-4).all()


@pytest.mark.parametrize("kind", ["", "_tf"])
def test_packed_projections_of_no_sentence(book, kind):
    array = book["tf"].zeros if kind else book["torch"].zeros
    found = book[f"unpack{kind}"](array((0, 5, 36)), 3, True)
    assert tuple(found.shape) == (3, 0, 3, 5, 4)


@pytest.mark.parametrize("kind", ["", "_tf"])
def test_heads_of_no_sentence(book, kind):
    array = book["tf"].zeros if kind else book["torch"].zeros
    heads = book[f"split_heads{kind}"](array((0, 5, 12)), 3)
    assert tuple(heads.shape) == (0, 3, 5, 4)
    assert tuple(book[f"merge_heads{kind}"](heads).shape) == (0, 5, 12)
    with pytest.raises(ValueError, match="num_heads may be one of"):
        book[f"split_heads{kind}"](array((0, 5, 10)), 4)


def test_the_two_sentences_have_the_ids_of_the_chapter_on_words(book):
    assert book["token_ids"] == [
        [8, 6, 10, 11, 0, 0, 0],
        [2, 7, 9, 4, 3, 5, 0],
    ]
    assert [len(words) for words in book["tokens"]] == [7, 7]


def test_each_mistake_is_a_layer_of_its_own_kind(book):
    """What the matrix of checks is tried on: parameters, and which moves."""
    known = {
        name: sum(p.numel() for p in module.parameters())
        for name, module in book["modules"].items()
    }
    assert list(book["runs"]) == list(known) == list(book["kit"])
    other = {"no output projection": 468, "key_dim=d_model": 1848}
    other["heads in a list"] = 156
    assert {n: k for n, k in known.items() if k != 624} == other


def test_the_mean_of_the_heads_is_what_pytorch_returns_unasked(book):
    for name, heads in (("mean_weights", 1), ("their_weights", 3)):
        weights = book[name].detach()
        assert weights.numel() == 2 * heads * 5 * 6
    mean = book["weights"].detach().mean(dim=1)
    found = book["mean_weights"].detach()
    assert np.allclose(found, mean, rtol=1e-4, atol=1e-5)
