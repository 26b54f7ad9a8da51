"""The moving pictures of *A model at work*."""

import math

from .moving import show_break


def show_split(parts_of, leaked, vocab_size, is_ok):
    """Return the numbers of two splits, and the checks that see the wrong one.

    Parameters
    ----------
    parts_of
        The rows (text, date) for training and for validation, of either split.
    leaked
        {name of a split: its validation loss, and the shares of exact answers
        in validation and on new dates}.
    vocab_size
        How many tokens a guess chooses among.
    is_ok
        Whether the kit finds no mistake, by the name of a split.

    Returns
    -------
    IPython.display.HTML
        What a notebook shows.
    """
    passed = []
    for (name, found), parts in zip(leaked.items(), parts_of, strict=True):
        loss, exact_in_validation, exact_on_new = found
        one, other = ({date for _, date in part} for part in parts)
        gap = abs(exact_on_new - exact_in_validation)
        passed.append(
            {
                "no row is in both parts": not {*parts[0]} & {*parts[1]},
                "no date is in both parts": not one & other,
                "the validation loss beats guessing": loss
                < math.log(vocab_size),
                "the kit finds no mistake": is_ok[name],
                "new dates come out as validation says": gap < 0.1,
            }
        )
    return show_break(
        "practice-mistake",
        *(
            [["validation loss", f"{loss:.2f}"], ["exact", f"{share:.2f}"]]
            for loss, share, _ in leaked.values()
        ),
        passed,
        "Each row is new in its language or style, but its date is not. The "
        "kit is right, because the model is correct.",
    )
