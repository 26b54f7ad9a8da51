"""What libraries.md says of sampling is what the libraries give."""

import numpy as np
import pytest

pytestmark = pytest.mark.xdist_group("frameworks")


def by_transformers(probs, *warpers):
    """Return how many tokens are kept of probabilities."""
    import torch

    logits = torch.tensor(probs).log()[None]
    for warper in warpers:
        logits = warper(None, logits)
    return int(logits.isfinite().sum())


def by_keras_hub(probs, p, k=None):
    """Return how many tokens are ever drawn of probabilities."""
    from keras_hub.samplers import TopPSampler

    rows = np.repeat([probs], 1000, axis=0).astype("float32")
    return len(np.unique(TopPSampler(p, k=k, seed=0).get_next_token(rows)))


def test_top_k_and_top_p_together(check_numbers):
    from transformers import TopKLogitsWarper, TopPLogitsWarper

    four = [0.4, 0.3, 0.2, 0.1]
    both = TopKLogitsWarper(3), TopPLogitsWarper(0.75)
    check_numbers(
        kept_by_transformers=by_transformers(four, *both),
        kept_by_keras_hub=by_keras_hub(four, 0.75, k=3),
    )


def test_ties_and_sums_that_equal_p(check_numbers):
    import torch
    from keras_hub.samplers import TopKSampler
    from transformers import TopKLogitsWarper, TopPLogitsWarper

    tied = np.exp([2.0, 1.0, 1.0, 1.0, 0.0])
    halves = [0.5, 0.25, 0.25]
    check_numbers(
        tied_by_transformers=by_transformers(tied, TopKLogitsWarper(2)),
        border_by_transformers=by_transformers(halves, TopPLogitsWarper(0.5)),
        border_by_keras_hub=by_keras_hub(halves, 0.5),
    )
    assert torch.tensor(tied).topk(2).values.numel() == 2
    rows = np.repeat([tied / tied.sum()], 1000, axis=0).astype("float32")
    drawn = TopKSampler(2, seed=0).get_next_token(rows)
    assert len(np.unique(drawn)) == 2
    assert by_transformers(halves, TopPLogitsWarper(0.0)) == 1
    assert by_keras_hub(halves, 0.0) == 1


def test_the_same_seed_other_tokens():
    import tensorflow as tf
    import torch

    torch.manual_seed(0)
    tf.random.set_seed(0)
    one = torch.multinomial(torch.ones(100, 5), 1)
    other = tf.random.categorical(tf.zeros((100, 5)), 1)
    assert not np.array_equal(one, other)


def test_what_a_draft_proposes(check_numbers):
    import tensorflow as tf
    from keras_hub.samplers import RandomSampler, SpeculativeSampler

    logits = tf.math.log([[0.5, 0.25, 0.25]])
    sampler = SpeculativeSampler(
        num_speculative_tokens=1, base_sampler=RandomSampler(), seed=0
    )

    def reads(prompt, cache, index):
        return logits, None, cache

    def proposed():
        prompt, mask = tf.zeros((1, 2), tf.int32), tf.constant([[True, False]])
        row = sampler(reads, prompt, index=1, mask=mask, draft_next=reads)
        return int(row[0, 1])

    check_numbers(kinds_by_keras_hub=len({proposed() for _ in range(60)}))
