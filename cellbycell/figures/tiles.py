"""The moving pictures of *Attention in tiles*."""

from .moving import show_mistake


def show_first_tile(attend, given, whole, falls, held_out, written):
    """Return the bet on the mask of the first tile.

    Parameters
    ----------
    attend
        A function: query, key, value, the size of a tile, and whether the
        mask begins from zero in each -> the output.
    given
        Query, key and value of PyTorch, (..., T, K); T is 7.
    whole
        The output of attention, (..., T, V).
    falls, held_out
        The losses while training, and of held-out rows, by the mistake.
    written
        What each model writes, by the mistake.

    Returns
    -------
    IPython.display.HTML
        What a notebook shows.
    """
    passed = []
    for from_zero, name in enumerate(written):
        eights, threes = (attend(*given, n, bool(from_zero)) for n in (8, 3))
        gaps = [(x - whole).abs().max().item() for x in (eights, threes)]
        is_whole = eights.shape == whole.shape and not eights.isnan().any()
        passed.append(
            {
                "the output's shape, and no NaN": bool(is_whole),
                "seven tokens, tiles of eight, against attend": gaps[0] < 1e-3,
                "seven tokens, tiles of three, against attend": gaps[1] < 1e-3,
                "the training loss falls": falls[name][-1]
                < falls[name][0] - 0.5,
                "the held-out loss is below 2.5": held_out[name] < 2.5,
            }
        )
    return show_mistake(
        "tiles-mistake",
        *([[text] for text in texts] for texts in written.values()),
        passed,
        "The held-out loss is even better: from the eighth token on, a query "
        "sees the next letter, in a tile after the first, and copies it.",
    )
