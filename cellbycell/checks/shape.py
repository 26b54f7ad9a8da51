"""Are the outputs finite numbers, one vector for each token?"""

from __future__ import annotations

import numpy as np

from .context import CheckContext
from .verdicts import Failed, Warned, listed

# Fewer outputs say nothing; a larger share of zeros is not by chance.
FEW, ZEROS = 8, 0.2


def output_shape(context: CheckContext) -> str:
    """Are the outputs finite numbers, (B, T, ...), that differ?"""
    found, rows = context.first, context.rows
    sizes = found.shape
    if sizes[:2] != rows.shape:
        raise Failed(
            f"Ids {rows.shape} give outputs {sizes}: {why_shape(sizes, rows)}"
        )
    vocab_size = context.vocab_size
    if vocab_size and sizes[2:] != (vocab_size,):
        raise Failed(f"Outputs are {sizes}, but vocab_size={vocab_size}.")
    wild = [
        name
        for name, weight in context.model.copy(as_is=True).weights()
        if not np.isfinite(weight).all()
    ]
    if wild:
        raise Failed(f"There is NaN or infinity in {listed(wild)}.")
    buffers = context.model.copy(as_is=True).buffers()
    empty = [name for name, x in buffers.items() if np.isnan(x).any()]
    if empty:
        raise Failed(
            f"There is NaN in the buffer {listed(empty)}: it was made without "
            "values, as on the device meta, and no file has filled it."
        )
    single = [name for name, x in buffers.items() if x.size == 1]
    if single:
        context.model.note(
            f"Buffers of one number, which a file may fill: {listed(single)}."
        )
    bad = np.isnan(found) | np.isposinf(found)
    bad = bad.reshape(*rows.shape, -1).any(axis=-1) & context.real
    if bad.any():
        row, position = np.argwhere(bad)[0]
        raise Failed(
            f"{bad.sum()} positions have outputs that are not finite, the "
            f"first is position {position} of sequence {row}: look for a "
            "query that may attend to no key."
        )
    said = f"Outputs are {sizes} and finite at every token."
    tokens = found.reshape(*rows.shape, -1)[context.real]
    if context.model.reinitialised and (tokens == tokens[0]).all():
        raise Warned(
            f"{said} They are equal for all tokens, as in a new model whose "
            "last layer or branches begin at zero. If the model was trained, "
            "it has lost weights."
        )
    return said + last_step(context, tokens)


def last_step(context: CheckContext, tokens: np.ndarray) -> str:
    """Return what follows the last layer, or raise Warned; tokens: (K, C)."""
    if tokens.shape[-1] < FEW or (tokens < 0).any():
        return ""
    if (zero := (tokens == 0).mean()) > ZEROS:
        raise Warned(
            f"{zero:.0%} of the outputs are exactly zero, and none is "
            "negative: is there a ReLU behind the last layer? Such logits "
            "cannot fall, and get no gradient."
        )
    if not np.allclose(tokens.sum(axis=-1), 1, atol=1e-3):
        return ""
    if context.model.gives_logits and context.loss is None:
        raise Warned(
            "The outputs of a token sum to one: are they probabilities? "
            "Cross-entropy and sampling take logits."
        )
    return " They are probabilities."


def why_shape(sizes: tuple[int, ...], rows: np.ndarray) -> str:
    """Return the usual cause of such a shape, and what to do."""
    size, length = rows.shape
    if sizes[:2] == (length, size) and length != size:
        return "the first two axes are exchanged: check batch_first."
    if sizes[0] == size and sizes[-1] == length and len(sizes) > 2:
        return "the last two axes are exchanged, as for a convolution."
    if sizes[:2] == (size, 1):
        return (
            "the model returns the logits of the last position only, as for "
            "generation. Give call=, which returns those of all positions."
        )
    if len(sizes) == 2 and sizes[0] == size:
        return (
            "the model returns one output for a sequence, as a classifier "
            "does. Give the model without its head, or call=, which returns "
            "one output for each token."
        )
    return "the outputs should be (B, T, ...), one for each token."
