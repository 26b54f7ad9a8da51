"""What surrounds the writing of a model: modes, gradients, the device.

Each test runs in both frameworks, or in the one that is installed.
"""

import numpy as np
import pytest

pytestmark = pytest.mark.xdist_group("frameworks")


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture
def model(torch):
    """A Transformer in training, but for its encoder, which is frozen."""
    from cellbycell.pytorch import Transformer, draw_model

    model = Transformer(12, 2, 8, 2, 16, dropout=0.5)
    draw_model(model, 0)
    model.encoder.eval()
    return model


@pytest.fixture
def model_tf(tf):
    from cellbycell.tensorflow import TransformerTF, draw_model_tf

    model = TransformerTF(12, 2, 8, 2, 16, dropout=0.5)
    model(tf.ones((1, 2), tf.int32), tf.ones((1, 2), tf.int32))
    draw_model_tf(model, 0)
    return model


SOURCE = np.array([[5, 3, 7, 2], [4, 9, 2, 0]])


def modes(model):
    return {name: part.training for name, part in model.named_modules()}


def watched(model, seen):
    """Make decode note the modes of the parts and whether gradients are on."""
    import torch

    decode = model.decode

    def noted(*given):
        seen.append(torch.is_grad_enabled() or any(modes(model).values()))
        return decode(*given)

    model.decode = noted


def test_each_part_gets_its_own_mode_back(torch, model):
    from cellbycell.pytorch import greedy_decode

    before, seen = modes(model), []
    assert {*before.values()} == {True, False}
    watched(model, seen)
    greedy_decode(model, torch.tensor(SOURCE), 1, 2, 5)
    assert modes(model) == before
    assert seen and not any(seen)
    assert torch.is_grad_enabled()


def test_after_an_error_too(torch, model):
    from cellbycell.pytorch import greedy_decode

    before = modes(model)
    with pytest.raises(IndexError):
        greedy_decode(model, torch.tensor(SOURCE), 99, 2, 5)
    assert modes(model) == before
    assert torch.is_grad_enabled()


def test_nothing_is_saved_for_gradients(torch, model):
    from cellbycell.pytorch import greedy_decode

    saved = []
    hooks = torch.autograd.graph.saved_tensors_hooks
    with hooks(lambda kept: saved.append(kept) or kept, lambda kept: kept):
        greedy_decode(model, torch.tensor(SOURCE), 1, 2, 5)
        assert not saved
        model.encode(torch.tensor(SOURCE))
    assert saved  # the hooks see what is kept


def test_what_was_written_can_be_learned_from(torch, model):
    """Ids that come from torch.inference_mode could not."""
    from cellbycell.pytorch import greedy_decode

    source = torch.tensor(SOURCE)
    written = greedy_decode(model, source, 1, 2, 5)
    model(source, written).sum().backward()
    assert model.embedding.weight.grad.abs().sum() > 0


def test_new_tensors_are_where_the_source_is(torch):
    """A tensor made without a device would have no numbers here."""
    from cellbycell.pytorch import greedy_decode

    class Model:
        def encode(self, source_ids):
            return None, None

        def decode(self, written, memory, memory_mask):
            return torch.eye(9, device="cpu")[(written + 1) % 9]

    with torch.device("meta"):
        source = torch.tensor([[3], [4]], device="cpu")
        written = greedy_decode(Model(), source, 1, 5, 7)
    assert written.tolist() == [[1, 2, 3, 4, 5]] * 2


def in_training(write):
    """Return a Keras layer that writes, and then has a dropout of its own."""
    import keras
    import tensorflow as tf

    class Learner(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.dropout = keras.layers.Dropout(0.5, seed=0)
            self.built = True

        def call(self, source_ids):
            try:
                written = write(source_ids)
            except tf.errors.InvalidArgumentError as error:
                written = error
            return written, self.dropout(tf.ones((1, 100)))

    return Learner()


def test_a_keras_call_in_training_writes_without_dropout(tf, model_tf):
    """And goes on in training behind it."""
    from cellbycell.tensorflow import greedy_decode_tf

    source = tf.constant(SOURCE)
    wanted = greedy_decode_tf(model_tf, source, 1, 2, 7)
    learner = in_training(lambda ids: greedy_decode_tf(model_tf, ids, 1, 2, 7))
    for training in (True, False):
        written, dropped = learner(source, training=training)
        np.testing.assert_array_equal(written, wanted)
        assert (dropped.numpy() == 0).any() == training


def test_a_keras_call_goes_on_in_training_after_an_error(tf, model_tf):
    from cellbycell.tensorflow import greedy_decode_tf

    learner = in_training(
        lambda ids: greedy_decode_tf(model_tf, ids, 99, 2, 7)
    )
    error, dropped = learner(tf.constant(SOURCE), training=True)
    assert isinstance(error, tf.errors.InvalidArgumentError)
    assert (dropped.numpy() == 0).any()
