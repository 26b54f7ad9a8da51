"""How generate writes: which ids are read, when it ends, and with what care.

Each test runs in both frameworks, or in the one that is installed.
"""

import inspect

import numpy as np
import pytest
from frameworks import PyTorch, TensorFlow

pytestmark = pytest.mark.xdist_group("frameworks")


@pytest.fixture(params=[PyTorch, TensorFlow])
def framework(request):
    return request.param("int64")


class Sums:
    """Two models: the next id is one more than the sum so far, modulo 9.

    columns: how many ids were read in each step; masks: the key masks.
    """

    def __init__(self, framework):
        self.framework, self.columns, self.masks = framework, [], []

    def logits(self, ids, key_mask, new):
        self.columns.append(new)
        self.masks.append(key_mask)
        tokens = ids if key_mask is None else ids * np.asarray(key_mask)
        next_ids = (1 + tokens.cumsum(1)[:, -new:]) % 9  # (B, T)
        return self.framework.tensor(np.eye(9)[next_ids], "float32")

    def plain(self, token_ids, key_mask=None):
        ids = np.asarray(token_ids)
        return self.logits(ids, key_mask, ids.shape[1])

    def cached(self, token_ids, cache, key_mask=None):
        new_ids = np.asarray(token_ids)
        ids = np.concatenate([*cache, new_ids], axis=1)
        return self.logits(ids, key_mask, new_ids.shape[1]), [ids]


@pytest.fixture(params=["plain", "cached"])
def sums(request, framework):
    """The two models, and the one that is asked."""
    both = Sums(framework)
    return both, getattr(both, request.param)


def by_hand(row, count, end_id=None):
    """Return what the models write behind a row."""
    row, start = list(row), len(row)
    for _ in range(count):
        ended = end_id in row[start:]
        row.append(0 if ended else (1 + sum(row)) % 9)
    return row


PROMPTS = [[5, 3, 7], [4, 0, 2], [1, 1, 8]]


def test_a_cache_reads_each_id_once_and_writes_the_same(framework):
    wanted = [by_hand(row, 6) for row in PROMPTS]
    read = {}
    for name in ("plain", "cached"):
        both = Sums(framework)
        written = framework.generate(
            getattr(both, name), framework.tensor(PROMPTS), 6
        )
        assert written.numpy().tolist() == wanted
        read[name] = both.columns
    assert read == {"plain": [3, 4, 5, 6, 7, 8], "cached": [3, 1, 1, 1, 1, 1]}


def test_rows_end_in_zeros_and_the_last_ends_it_all(framework, sums):
    both, model = sums
    written = framework.generate(model, framework.tensor(PROMPTS), 20, 4)
    wanted = np.array([by_hand(row, 20, 4) for row in PROMPTS])
    longest = 1 + np.argmax(wanted[:, 3:] == 4, axis=1).max()
    assert 1 < longest < 20  # row 2 has an end in its prompt and goes on
    np.testing.assert_array_equal(written, wanted[:, : 3 + longest])
    assert not wanted[:, 3 + longest :].any()
    assert len(both.columns) == longest


@pytest.mark.parametrize("count", [0, 1, 3])
def test_it_is_cut_off_without_an_end(framework, sums, count):
    both, model = sums
    for end_id in (None, 99):
        prompts = framework.tensor(PROMPTS)
        written = framework.generate(model, prompts, count, end_id)
        wanted = [by_hand(row, count) for row in PROMPTS]
        assert written.numpy().tolist() == wanted
    assert len(both.columns) == 2 * count


def test_pads_on_the_left_change_nothing(framework, sums):
    both, model = sums
    padded = np.array([[5, 3, 7], [6, 6, 2], [6, 1, 8]])  # 6 where a pad is
    mask = np.array([[1, 1, 1], [0, 0, 1], [0, 1, 1]], bool)
    written = framework.generate(
        model,
        framework.tensor(padded),
        5,
        key_mask=framework.tensor(mask, "bool"),
    ).numpy()
    for row, found, tokens in zip(padded, written, mask, strict=True):
        assert found[3:].tolist() == by_hand(row[tokens], 5)[tokens.sum() :]
    for step, key_mask in enumerate(both.masks):
        grown = np.pad(mask, ((0, 0), (0, step)), constant_values=True)
        np.testing.assert_array_equal(key_mask, grown)


def test_a_mask_is_not_dropped_where_none_is_taken(framework):
    model = Sums(framework)
    with pytest.raises(TypeError, match="key_mask"):
        framework.generate(
            lambda ids: model.plain(ids),
            framework.tensor(PROMPTS),
            1,
            key_mask=framework.tensor(np.ones((3, 3)), "bool"),
        )


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64"])
def test_ids_keep_their_type(framework, sums, dtype):
    _, model = sums
    given = framework.tensor(PROMPTS, dtype)
    for choose in (
        framework.greedy,
        lambda logits: framework.tensor(logits.numpy().argmax(-1), "int32"),
    ):
        written = framework.generate(model, given, 4, 4, choose=choose)
        wanted = [by_hand(row, 4, 4) for row in PROMPTS]
        assert written.numpy().tolist() == wanted
        assert framework.kind(written) == dtype


def test_of_equal_logits_greedy_takes_the_first(framework):
    logits = framework.tensor([[1, 3, 3], [2, 2, 2]], "float32")
    assert framework.greedy(logits).numpy().tolist() == [1, 0]


def test_choose_sees_the_last_logits(framework, sums):
    _, model = sums
    seen = []
    framework.generate(
        model,
        framework.tensor(PROMPTS),
        2,
        choose=lambda x: seen.append(x.numpy()) or framework.greedy(x),
    )
    for step, logits in enumerate(seen):
        wanted = [by_hand(row, step + 1)[-1] for row in PROMPTS]
        np.testing.assert_array_equal(logits, np.eye(9)[wanted])


# In PyTorch: modes, gradients and the device


@pytest.fixture
def learner():
    """A model in training with a frozen part, and a dropout that would show.

    seen: what its parts and gradients were in each call.
    """
    torch = pytest.importorskip("torch")

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(9, 9)
            self.table.weight.data = torch.eye(9).roll(1, 1)
            self.frozen = torch.nn.Dropout(0.5).eval()
            self.dropout = torch.nn.Dropout(0.5)
            self.seen = []

        def forward(self, token_ids, cache=None):
            training = [part.training for part in self.modules()]
            self.seen.append(any(training) or torch.is_grad_enabled())
            logits = self.dropout(self.frozen(self.table(token_ids)))
            logits = logits * self.table.weight.sum()
            return logits if cache is None else (logits, [logits])

    return Model()


def test_parts_get_their_modes_back(learner):
    torch = pytest.importorskip("torch")
    from cellbycell.pytorch import generate

    modes = [part.training for part in learner.modules()]
    assert True in modes and False in modes
    written = generate(learner, torch.tensor([[1], [5]]), 3)
    assert written.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert learner.seen == [False] * 3
    with pytest.raises(IndexError):
        generate(learner, torch.tensor([[99]]), 3)
    assert [part.training for part in learner.modules()] == modes
    assert torch.is_grad_enabled()


def test_nothing_is_kept_for_gradients(learner):
    torch = pytest.importorskip("torch")
    from cellbycell.pytorch import generate

    saved = []
    hooks = torch.autograd.graph.saved_tensors_hooks
    with hooks(lambda kept: saved.append(kept) or kept, lambda kept: kept):
        written = generate(learner, torch.tensor([[1], [5]]), 30)
        assert not saved
        loss = learner(written).sum()  # ids of inference_mode would raise
    assert saved
    loss.backward()
    assert learner.table.weight.grad.abs().sum() > 0


def test_new_tensors_are_on_the_device_of_the_ids():
    """A tensor made without a device would have no numbers here."""
    torch = pytest.importorskip("torch")
    from cellbycell.pytorch import attend_cached, generate

    def model(token_ids, key_mask):
        return torch.eye(9, device="cpu")[(token_ids + 1) % 9]

    with torch.device("meta"):
        ids = torch.tensor([[3], [4]], device="cpu")
        written = generate(model, ids, 7, 5, key_mask=ids > 0)
        x = torch.ones(1, 2, 8, device="cpu")
        layer = torch.ones(3, 8, 8, device="cpu")
        output, cache = attend_cached(x, layer, 2)
        output, cache = attend_cached(x, layer, 2, cache)
    assert written.tolist() == [[3, 4, 5], [4, 5, 0]]
    assert torch.isfinite(output).all() and cache[0].shape == (1, 2, 4, 4)


# In Keras: the mode of a call


def test_a_keras_call_in_training_writes_without_dropout():
    """And goes on in training behind it."""
    tf = pytest.importorskip("tensorflow")
    keras = pytest.importorskip("keras")
    from cellbycell.tensorflow import generate_tf

    class Model(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.dropout = keras.layers.Dropout(0.5, seed=0)
            self.built = True

        def call(self, token_ids, cache=None):
            logits = self.dropout(tf.roll(tf.eye(9), 1, 1))
            logits = tf.gather(logits, token_ids)
            return logits if cache is None else (logits, [logits])

    class Learner(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.model = Model()
            self.built = True

        def call(self, ids, training=None):
            return generate_tf(self.model, ids, 3), self.model(ids)

    learner, ids = Learner(), tf.constant([[1], [5]])
    for training in (True, False):
        written, logits = learner(ids, training=training)
        assert written.numpy().tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]
        one = 2 if training else 1  # what dropout keeps, it doubles
        assert set(np.unique(logits)) <= {0, one}


# Attention with fewer key heads, where the libraries are new enough


def grouped_and_given():
    """Return attend_grouped's output, and what it was given, as arrays."""
    tf = pytest.importorskip("tensorflow")
    from cellbycell.tensorflow import attend_grouped_tf

    rng = np.random.default_rng(0)
    query = rng.normal(size=(2, 6, 5, 4)).astype("float32")
    key, value = rng.normal(size=(2, 2, 2, 5, 4)).astype("float32")
    mask = np.tri(5, dtype=bool)
    return attend_grouped_tf(*map(tf.constant, (query, key, value, mask))), (
        query,
        key,
        value,
    )


def takes_a_window(keras):
    layer = keras.layers.GroupQueryAttention
    return "sliding_window" in inspect.signature(layer).parameters


def test_keras_repeats_two_key_heads_from_3_15_on():
    tf = pytest.importorskip("tensorflow")
    keras = pytest.importorskip("keras")
    if not takes_a_window(keras):
        pytest.skip("Keras before 3.15")
    grouped, given = grouped_and_given()
    by_token = [tf.einsum("bhtk->bthk", y) for y in given]
    found = keras.ops.dot_product_attention(*by_token, is_causal=True)
    found = tf.einsum("bthk->bhtk", found)
    np.testing.assert_allclose(found, grouped, atol=1e-5)


def test_a_keras_window_looks_ahead_unless_causal():
    tf = pytest.importorskip("tensorflow")
    keras = pytest.importorskip("keras")
    if not takes_a_window(keras):
        pytest.skip("Keras before 3.15")
    keras.utils.set_random_seed(0)
    layer = keras.layers.GroupQueryAttention(4, 6, 2, sliding_window=3)
    x = tf.random.stateless_normal((2, 7, 24), (0, 0))
    later = x + tf.reshape(tf.one_hot(6, 7), (1, 7, 1))
    early = x + tf.reshape(tf.one_hot(3, 7), (1, 7, 1))

    def change(x, other, row, **settings):
        gap = layer(x, x, **settings) - layer(other, other, **settings)
        return float(tf.reduce_max(tf.abs(gap[:, row])))

    assert change(x, later, 5) > 0.01
    assert change(x, later, 5, use_causal_mask=True) == 0
    assert change(x, early, 5, use_causal_mask=True) > 1e-4
    assert change(x, early, 6, use_causal_mask=True) < 1e-6


def test_gradients_of_shared_keys_are_those_of_the_library():
    torch = pytest.importorskip("torch")
    from cellbycell.pytorch import attend_grouped

    sdpa = torch.nn.functional.scaled_dot_product_attention
    if "enable_gqa" not in (sdpa.__doc__ or ""):
        pytest.skip("PyTorch before 2.5")
    rng = np.random.default_rng(0)
    query = torch.tensor(rng.normal(size=(2, 6, 5, 4)))
    key, value = torch.tensor(rng.normal(size=(2, 2, 2, 5, 4)))
    mask, grads = torch.ones(5, 5).tril().bool(), []
    for run in (
        lambda key: attend_grouped(query, key, value, mask),
        lambda key: sdpa(query, key, value, is_causal=True, enable_gqa=True),
    ):
        seen = key.clone().requires_grad_()
        pulled = (query.cos() * run(seen)).sum()
        grads.append(torch.autograd.grad(pulled, seen)[0])
    torch.testing.assert_close(*grads)


def test_gradients_of_shared_keys_agree_in_both_frameworks():
    torch = pytest.importorskip("torch")
    tf = pytest.importorskip("tensorflow")
    from cellbycell.pytorch import attend_grouped
    from cellbycell.tensorflow import attend_grouped_tf

    _, (query, key, value) = grouped_and_given()
    seen = torch.tensor(key).requires_grad_()
    found = attend_grouped(torch.tensor(query), seen, torch.tensor(value))
    (found * torch.tensor(query).cos()).sum().backward()
    seen_tf = tf.constant(key)
    with tf.GradientTape() as tape:
        tape.watch(seen_tf)
        found_tf = attend_grouped_tf(query, seen_tf, value) * np.cos(query)
    gradient = tape.gradient(found_tf, seen_tf)
    np.testing.assert_allclose(gradient, seen.grad, atol=1e-5)
