"""The kit on Keras models: every situation of a reader's own model."""

import copy
import random
from functools import partial

import numpy as np
import pytest

from cellbycell import checks
from cellbycell.checks import where_it_differs

check_model = partial(checks.check_model, pad_id=0)
tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")
layers = keras.layers

IDS = [[3, 4, 5, 6, 7, 8, 9, 10], [11, 12, 3, 4, 5, 0, 0, 0]]
TARGETS = [[4, 5, 6, 7, 8, 9, 10, 11], [12, 3, 4, 5, 0, 0, 0, 0]]
VOCABULARY, WIDTH = 20, 16


class Model(keras.Model):
    """A small language model; its options are the situations."""

    def __init__(self, leak=False, positions=True, depth=1, **options):
        super().__init__(**options)
        self.leak = leak
        self.table = layers.Embedding(VOCABULARY, WIDTH)
        self.places = layers.Embedding(8, WIDTH) if positions else None
        self.stack = [
            layers.MultiHeadAttention(2, 8, dropout=0.2) for _ in range(depth)
        ]
        self.norm = layers.LayerNormalization()
        self.dropout = layers.Dropout(0.2)
        self.linear = layers.Dense(VOCABULARY)

    def call(self, ids, training=False):
        x = self.table(ids)
        if self.places is not None:
            x = x + self.places(tf.range(tf.shape(ids)[1]))
        x = self.dropout(x, training=training)
        for layer in self.stack:
            x = x + layer(
                x, x, use_causal_mask=not self.leak, training=training
            )
        return self.linear(self.norm(x))


class Wrapped(Model):
    """Return what a function makes of the logits."""

    def __init__(self, output, **options):
        super().__init__(**options)
        self.made = output

    def call(self, ids, training=False):
        return self.made(super().call(ids, training))


DropsInEvaluation = partial(Wrapped, lambda x: tf.nn.dropout(x, 0.2))


def functional(leak=False):
    """Return a functional model with a dict of inputs, as in KerasHub."""
    ids = keras.Input((None,), dtype="int32", name="token_ids")
    mask = keras.Input((None,), dtype="int32", name="padding_mask")
    x = layers.Embedding(VOCABULARY, WIDTH)(ids)
    x = x + layers.Conv1D(WIDTH, 2, padding="causal")(x)
    x = x + layers.MultiHeadAttention(2, 8)(
        x, x, attention_mask=mask[:, None, :], use_causal_mask=not leak
    )
    x = layers.Dense(VOCABULARY)(layers.LayerNormalization()(x))
    return keras.Model({"token_ids": ids, "padding_mask": mask}, x)


def frozen(**options):
    model = Model(**options)
    model.table.trainable = False
    return model


COLUMNS = np.arange(VOCABULARY) < 3
# A situation: what makes the model, and what the notes have to say of it.
SITUATIONS = {
    "not built": (Model, "not built"),
    "two layers": (partial(Model, depth=2), ""),
    "dict": (
        partial(Wrapped, lambda x: {"logits": x, "loss": None}),
        "output['logits']",
    ),
    "a dict of inputs": (functional, "gets padding_mask"),
    "frozen": (frozen, ""),
    "columns of -1e9": (
        partial(Wrapped, lambda x: tf.where(COLUMNS, -1e9, x)),
        "3 of 20 columns",
    ),
} | {
    dtype: (partial(Model, dtype=dtype), "tests it in float32")
    for dtype in ("bfloat16", "float16", "mixed_bfloat16", "mixed_float16")
}


@pytest.fixture(autouse=True)
def seeded():
    keras.utils.set_random_seed(0)


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_correct_model_passes(name):
    make, note = SITUATIONS[name]
    report = check_model(make(), IDS, targets=TARGETS, untrained=True)
    assert report.failed == report.errors == [], report
    assert note in " ".join(report.notes)


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_leak_is_found(name):
    make, _ = SITUATIONS[name]
    report = check_model(make(leak=True), IDS)
    leak = {
        "causality",
        "causality_train",
        "causality_grad",
        "prefix_consistency",
    }
    assert leak <= {*report.failed}, report
    assert report.errors == []
    sentence = report["causality"].sentence
    assert "multi_head_attention" in sentence
    assert "(MultiHeadAttention)" in sentence


def test_dropout_in_evaluation_is_asked_with_the_generator_fixed():
    report = check_model(DropsInEvaluation(), IDS)
    assert report.failed == ["determinism"] and report.errors == []
    assert "fixed seed" in " ".join(report.notes)
    report = check_model(DropsInEvaluation(leak=True), IDS)
    assert "causality" in report.failed


def test_a_mask_edited_in_place_is_found():
    class Cached(Model):
        mask = None

        def call(self, ids, training=False):
            if self.mask is None:
                self.mask = np.ones((1, ids.shape[1]), "float32")
            self.mask *= (ids.numpy() != 0).any(0)
            return super().call(ids, training) * self.mask[..., None]

    model = Cached()
    model(np.array(IDS))
    model.mask = None
    assert "determinism" in check_model(model, IDS[:1]).failed
    assert model.mask is None


def state(model):
    """Return all that a caller may notice of a model and the generators."""
    from tensorflow.python.eager import context

    return copy.deepcopy(
        (
            [v.numpy().tolist() for v in model.variables],
            [v.trainable for v in model.variables],
            [
                part.rate
                for part in model._flatten_layers()
                if "rate" in vars(part)
            ],
            context.context()._seed,
            context.context()._rng.getstate(),
            random.getstate(),
            np.random.get_state()[1].tolist(),  # noqa: NPY002
        )
    )


@pytest.mark.parametrize("make", [Model, DropsInEvaluation])
@pytest.mark.parametrize("ids", [IDS, [[3, 4, 99]]])
def test_everything_is_afterwards_as_it_was(make, ids):
    model = make()
    model(np.array(IDS), training=True)
    before = state(model)
    check_model(model, ids, targets=ids, overfit=3, untrained=True)
    assert state(model) == before
    tf.random.set_seed(3)
    drawn = tf.random.normal((3,)).numpy()
    tf.random.set_seed(3)
    check_model(model, ids)
    assert (tf.random.normal((3,)).numpy() == drawn).all()


def test_one_batch_is_overfit():
    asked = {"targets": TARGETS, "overfit": True}
    report = check_model(Model(), IDS, **asked)
    assert report["overfit_one_batch"].status == "passed"


def test_where_a_reference_differs():
    model, other = Model(depth=2), Model(depth=2)
    model(np.array(IDS)), other(np.array(IDS))
    other.set_weights(model.get_weights())
    assert check_model(model, IDS, reference=other).failed == []
    other.norm.gamma.assign(other.norm.gamma + 0.1)
    sentence = check_model(model, IDS, reference=other)[
        "reference_parity"
    ].sentence
    assert "layer_normalization" in sentence
    changes = [d.change for d in where_it_differs(model, other, IDS)]
    assert changes[0] == 0 < changes[-1]


# What models of other people showed


@pytest.mark.parametrize("leak", [False, True])
def test_a_last_layer_of_zeros_hides_nothing(leak):
    model = Model(leak=leak)
    model(np.array(IDS))
    model.linear.kernel.assign(tf.zeros_like(model.linear.kernel))
    report = check_model(model, IDS)
    assert ("causality" in report.failed) is leak
    assert "output_shape" in report.warnings and report.errors == []
    assert not model.linear.kernel.numpy().any()


@pytest.mark.parametrize("wrong", [False, True])
def test_a_model_of_keras_hub_is_read_with_its_cache(wrong):
    models = pytest.importorskip("keras_hub").models
    backbone = models.GPT2Backbone(
        vocabulary_size=VOCABULARY,
        num_layers=1,
        num_heads=2,
        hidden_dim=WIDTH,
        intermediate_dim=24,
        max_sequence_length=8,
    )
    model = models.GPT2CausalLM(backbone)
    if wrong:
        whole = model.call_with_cache
        model.call_with_cache = lambda ids, cache, start: whole(
            ids, cache, max(start - 1, 0)
        )
    report = check_model(model, IDS)
    assert ("cache_consistency" in report.failed) is wrong
    assert report.errors == []


@tf.custom_gradient
def too_small(x):
    """A backward pass of one's own, too small by half."""
    return x * 2, lambda grad: grad


def test_gradients_in_training_are_those_of_what_is_computed():
    def ask(model):
        only = "training_gradients"
        return check_model(model, IDS, only=only)[only]

    assert ask(Model()).status == "passed"
    found = ask(Wrapped(too_small))
    assert found.status == "failed"
    assert "by a difference quotient" in found.sentence


def test_an_optimizer_that_stands_still_is_seen():
    model = Model()
    assert check_model(model, IDS, only="weights_move").ok
    before = [v.numpy() for v in model.weights]
    report = check_model(
        model,
        IDS,
        only="weights_move",
        optimizer=lambda variables: keras.optimizers.SGD(0.0),
    )
    assert report.failed == ["weights_move"]
    after = [v.numpy() for v in model.weights]
    assert all(map(np.array_equal, before, after))


def test_outputs_may_be_probabilities():
    report = check_model(Wrapped(tf.nn.softmax), IDS, only="output_shape")
    assert report.passed == ["output_shape"]
    assert "probabilities" in report["output_shape"].sentence
