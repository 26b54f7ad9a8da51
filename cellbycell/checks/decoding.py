"""Does greedy decoding write what the model predicts?"""

from __future__ import annotations

import numpy as np

from .context import CheckContext
from .verdicts import Failed, MissingArgument, first_line


def greedy_decoding(context: CheckContext) -> str:
    """Does greedy decoding write what the model predicts?

    The model reads the result again in one pass: the largest logit at each
    position must be that of the next written token.
    """
    decode = context.decode
    if decode is None:
        raise MissingArgument(
            "give decode=, a function of the model and its ids.", "decode="
        )
    context.refuse_random()
    given, begins = context.ids[0], context.rows[:, :1]
    if len(context.ids) == 1:
        length = max(1, int(context.real.sum(axis=1).min()) // 2)
        given = begins = given[:, :length]
    try:
        written = context.copy().decode(given, decode)  # (B, L)
    except TypeError as error:
        raise TypeError(
            f"decode= is called as decode(model, ids): {first_line(error)}"
        ) from error
    length = begins.shape[1]
    if len(written) != len(begins) or not (
        written.shape[1] >= length and (written[:, :length] == begins).all()
    ):
        raise Failed(
            f"decode= returns a sequence that begins with "
            f"{written[0, :length]}, not with {begins[0]}: return these "
            "tokens, followed by the new ones."
        )
    read = written[:, : context.rows.shape[1]]
    logits = context.outputs(*context.ids[:-1], read)[:, :-1]
    chosen = np.take_along_axis(logits, read[:, 1:, None], 2)[..., 0]
    gap = (logits.max(axis=2) - chosen) / context.size  # (B, L - 1)
    late = np.arange(1, read.shape[1]) >= begins.shape[1]
    # Pads follow the end of a sequence.
    wrong = (gap > context.tolerance) & late & context.real_tokens(read[:, 1:])
    if wrong.any():
        row, position = np.argwhere(wrong)[0]
        raise Failed(
            f"decode= writes token {read[row, position + 1]} at position "
            f"{position + 1} of sequence {row}, but the model predicts "
            f"{logits[row, position].argmax()}: check which position the "
            "logits are taken from."
        )
    return "Greedy decoding writes what the model predicts."
