"""Attention: its pytorch part, for what comes after it.

Built and explained in the chapter *Attention* of the book.
Written by `make package`: change it in the chapter.
"""

import math

import torch


def attend(query, key, value, attention_mask=None, dropout=None):
    """Scaled dot-product attention: return the output and the weights.

    query (..., T, K), key (..., S, K), value (..., S, V);
    attention_mask broadcasts to (..., T, S), True = may attend.
    dropout: a function that is applied to the weights before they mix the
    values; the weights that are returned come from before it.
    Source: Vaswani et al. 2017, section 3.2.1.
    """
    scores = query @ key.transpose(-2, -1)  # (..., T, S)
    scores = scores / math.sqrt(query.shape[-1])
    if attention_mask is not None:
        scores = scores.masked_fill(~attention_mask, -torch.inf)
    weights = scores.softmax(dim=-1)  # (..., T, S)
    dropped = weights if dropout is None else dropout(weights)  # (..., T, S)
    return dropped @ value, weights  # (..., T, V), (..., T, S)


def _output_and_gradients(function, *inputs):
    """Return the output, then the gradients of the sum of its squares."""
    inputs = [x.clone().requires_grad_() for x in inputs]
    output = function(*inputs)
    gradients = torch.autograd.grad(output.square().sum(), inputs)
    return [output.detach(), *gradients]
