"""Training a Transformer: its pytorch part, for what comes after it.

Built and explained in the chapter *Training a Transformer* of the book.
Written by `make package`: change it in the chapter.
"""

import torch
import torch.nn.functional as F


def smooth_targets(target_ids, vocab_size, smoothing=0.1, dtype=torch.float32):
    """Return the probabilities to predict, (B, T, N).

    target_ids (B, T); the framework raises its own error unless all of them
    are at least 0 and less than vocab_size. Code compiled by XLA checks
    nothing, and TensorFlow's ids have to fit into int32.
    """
    right = F.one_hot(target_ids.long(), vocab_size).to(dtype)  # (B, T, N)
    return (1 - smoothing) * right + smoothing / vocab_size


def smoothed_loss(logits, target_ids, smoothing=0.1):
    """Return the smoothed cross-entropy, the mean over the tokens, ().

    logits (B, T, N), computed in float32 or float64; target_ids (B, T),
    zeros are pads. The loss of a batch without tokens is zero.
    """
    dtype = torch.promote_types(logits.dtype, torch.float32)
    targets = smooth_targets(target_ids, logits.shape[-1], smoothing, dtype)
    logs = logits.to(dtype).log_softmax(dim=-1)  # (B, T, N)
    # With smoothing 0, a target of 0 times the log of 0 would be NaN.
    logs = logs.masked_fill(targets == 0, 0)
    losses = -(targets * logs).sum(dim=-1)  # (B, T)
    kept = losses[target_ids != 0]
    return kept.sum() / max(len(kept), 1)
