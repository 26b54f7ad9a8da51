"""The moving pictures of *From words to vectors*."""

import math
from html import escape

from .moving import show_mistake, show_states
from .parts import table_cell


def show_apart(entries, chosen):
    """Return how far each entry of a vocabulary is from a chosen one.

    Parameters
    ----------
    entries
        The N tokens, in the order of their ids.
    chosen
        The id that is chosen at the start.

    Returns
    -------
    IPython.display.HTML
        A table: the one-hot vector, upright, and the distances as ids and as
        rows.
    """
    radio = {"type": "radio", "choices": entries, "chosen": [chosen]}

    def draw(parts):
        rows = (
            '<tr><th style="width:10%">id<th class="head">entry'
            "<th>row with a 1<th>away, as ids<th>away, as rows"
        )
        for n, entry in enumerate(entries):
            rows += f'<tr><td>{n}<th class="head">{escape(entry)}'
            for column in ("one", "steps", "apart"):
                rows += table_cell(f"{column}-{n}", *parts[f"{column}-{n}"])
        return f"<table>{rows}</table>"

    return show_states(
        "apart",
        [{"label": "token", "name": "token", **radio}],
        lambda token: apart_state(entries, token),
        draw,
    )


def apart_state(entries, token):
    """Return what the picture shows for a token (sentence, parts)."""
    last, parts = len(entries) - 1, {}
    for n in range(len(entries)):
        one, steps = int(n == token), abs(n - token)
        parts[f"one-{n}"] = str(one), one
        parts[f"steps-{n}"] = str(steps), round(steps / last, 3)
        parts[f"apart-{n}"] = f"{math.sqrt(2) * (1 - one):.2f}", 1 - one
    far = 0 if 2 * token > last else last
    near = token + 1 if token < last else token - 1
    return (
        f"“{entries[token]}” has id {token}. As ids, “{entries[far]}” is "
        f"{abs(far - token)} away and “{entries[near]}” 1; as rows with a 1, "
        "both are 1.41 away.",
        parts,
    )


def show_pad_id_taken(words, right, wrong, decode):
    """Return the bet on a padding id that is also a word.

    Parameters
    ----------
    words
        The tokens, three.
    right, wrong
        A vocabulary, and the five ids that it gives them, with padding.
    decode
        The chapter's: ids, vocabulary -> tokens.

    Returns
    -------
    IPython.display.HTML
        What a notebook shows.
    """
    shown, passed = [], []
    for vocabulary, token_ids in (right, wrong):
        ids = [int(token_id) for token_id in token_ids]
        kept = ["no" if token_id == 0 else "yes" for token_id in ids]
        shown.append([list(map(str, ids)), kept])
        passed.append(
            {
                "five ids, all whole numbers": "int" in str(token_ids.dtype)
                and len(ids) == 5,
                "the ids decode to the three words": decode(
                    ids[:3], vocabulary
                )
                == words,
                "every id has a row": 0 <= min(ids)
                and max(ids) < len(vocabulary),
                "no id below the size is missing": set(range(len(vocabulary)))
                <= set(vocabulary.values()),
                "the mask keeps three tokens": kept.count("yes") == len(words),
            }
        )
    return show_mistake(
        "embedding-mistake",
        *shown,
        passed,
        "The ids are fine by themselves, and so they pass; the mistake is in "
        "what the mask takes for a pad. The second row says which ids it "
        "keeps.",
    )
