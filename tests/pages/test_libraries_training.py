"""What libraries.md says of training is what the libraries give."""

import numpy as np
import pytest

pytestmark = pytest.mark.xdist_group("frameworks")


def test_the_gradient_of_a_lookup(check_numbers):
    import keras
    import tensorflow as tf
    import torch

    ids = [2, 2, 2, 2]
    table = torch.nn.Embedding(3, 1, _weight=torch.zeros(3, 1))
    table(torch.tensor(ids)).sum().backward()
    torch.optim.Adam(table.parameters(), lr=0.01).step()

    def move(repair):
        """Return how far Keras' Adam moves the row, by what gradient."""
        table = keras.Variable(tf.zeros((3, 1)))
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(table.value, ids))
        gradient = repair(tape.gradient(loss, table.value))
        keras.optimizers.Adam(0.01).apply([gradient], [table])
        return -table[2, 0]

    check_numbers(
        lookup_move_torch=-table.weight[2].item(),
        lookup_move_keras=move(lambda gradient: gradient),
        lookup_move_repaired_keras=move(tf.convert_to_tensor),
    )


def test_the_epsilon_of_adam(check_numbers):
    import keras
    import tensorflow as tf
    import torch

    weight = torch.zeros(1, requires_grad=True)
    weight.grad = torch.full((1,), 1e-6)
    torch.optim.Adam([weight], lr=0.01).step()
    weight_keras = keras.Variable([0.0])
    keras.optimizers.Adam(0.01).apply([tf.constant([1e-6])], [weight_keras])
    check_numbers(
        first_step_torch=-weight.item(), first_step_keras=-weight_keras[0]
    )


def test_what_a_loss_is_divided_by(check_numbers):
    import keras
    import torch

    # Logits of two tokens with the same score cost ln 2; in units of that.
    logits, targets = np.zeros((4, 2)), np.array([1, 1, 0, 0])
    loss = torch.nn.functional.cross_entropy(
        torch.tensor(logits), torch.tensor(targets), ignore_index=0
    )

    def mean_loss(**options):
        loss = keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, **options
        )
        mean = loss(targets, logits, sample_weight=targets != 0)
        return float(mean) / np.log(2)

    check_numbers(
        mean_loss_torch=loss / np.log(2),
        mean_loss_keras=mean_loss(),
        mean_loss_weighted_keras=mean_loss(
            reduction="mean_with_sample_weight"
        ),
    )
