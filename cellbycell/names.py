"""Names of places, languages and currencies, to train small models.

There are 9,142 names in twelve languages, from the Unicode CLDR. A few
thousand letters show that each part of a Transformer lowers the loss. This
module needs no framework. The book's first chapter has the training loop:
`cellbycell.pytorch.learn` and `cellbycell.tensorflow.learn_tf`.
"""

import random
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

# The dot has id 0. It begins a name, ends it, and fills the rest of its row.
LETTERS = ".abcdefghijklmnopqrstuvwxyz -'"
_IDS = {letter: i for i, letter in enumerate(LETTERS)}
_FILE = Path(__file__).parent / "data" / "names.txt"


def read_names() -> dict[str, list[str]]:
    """Return the names of each thing.

    Returns
    -------
    dict
        As in {"territory FI": ["finland", "finlandia", ...], ...}; a name
        may belong to several things.
    """
    lines = _FILE.read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return {thing: names for thing, *names in rows}


def plain(text: str) -> str:
    """Return a text in lower case, without accents.

    Parameters
    ----------
    text
        As in "Österreich".

    Returns
    -------
    str
        As in "osterreich"; other characters do not change.
    """
    parts = unicodedata.normalize("NFD", text.lower())
    return "".join(c for c in parts if not unicodedata.combining(c))


def encode_names(names: Iterable[str], length: int | None = None):
    """Return names as rows of ids: a dot, the letters, then dots.

    Parameters
    ----------
    names
        Strings of letters in LETTERS.
    length
        The length of a row; None for the longest name and two dots.

    Returns
    -------
    numpy.ndarray
        (B, length), int64.

    Raises
    ------
    ValueError
        A character has no id, or a name is empty or too long.
    """
    names = list(names)
    if "" in names:
        raise ValueError("a name is empty: leave it out.")
    odd = {c: name for name in names for c in name if not _IDS.get(c)}
    if odd:
        some = ", ".join(f"{c!r} in {name!r}" for c, name in odd.items())
        raise ValueError(
            f"these models do not know {some}. They know a to z, space, - and "
            "'. cellbycell.names.plain makes lower case without accents; "
            "replace other characters, or leave those names out."
        )
    longest = max(map(len, names), default=0) + 2
    length = length or longest
    if longest > length:
        raise ValueError(
            f"a name of {longest - 2} letters and its two dots do not fit "
            f"into length={length}: make length larger, or leave the name out."
        )
    rows = np.zeros((len(names), length), dtype=np.int64)
    for row, name in zip(rows, names, strict=True):
        row[1 : len(name) + 1] = [_IDS[letter] for letter in name]
    return rows


def decode_names(rows: Iterable[Sequence[int]]) -> list[str]:
    """Return the names in rows of ids, each up to the dot that ends it.

    Parameters
    ----------
    rows
        (B, T): a dot's id, then letters; an array or a tensor.

    Returns
    -------
    list
        The names, without dots.
    """
    texts = ("".join(LETTERS[int(i)] for i in row) for row in rows)
    return [text.removeprefix(".").split(".")[0] for text in texts]


def split_names(
    names: Mapping[str, Sequence[str]] | Sequence[str],
    share: float = 0.1,
    seed: int = 0,
):
    """Hold out a share of the things, with all their names.

    A model that has read "finland" knows half of "finlandia". So no name of a
    held-out thing is in a training row.

    Parameters
    ----------
    names
        The names of each thing, as from read_names(); in a plain list, each
        name is a thing of its own.
    share
        The share of things to hold out.
    seed
        The seed of the choice.

    Returns
    -------
    train_rows, held_rows : numpy.ndarray
        (B, T + 1), int64, with the same T.

    Raises
    ------
    ValueError
        As in encode_names, or one of the two would be empty.
    """
    if isinstance(names, str):
        raise ValueError("names should be a list of strings, not one string.")
    if not isinstance(names, Mapping):
        names = {name: [name] for name in names}
    things = sorted(names)
    random.Random(seed).shuffle(things)
    out = things[: int(share * len(things))]
    held = {name for thing in out for name in names[thing]}
    every = sorted({name for found in names.values() for name in found})
    random.Random(seed).shuffle(every)
    length = len(encode_names(every)[0]) if every else 0
    two = [[n for n in every if (n in held) == is_held] for is_held in (0, 1)]
    if not all(two):
        raise ValueError(
            f"share={share} of {len(names)} thing(s) leaves "
            f"{len(two[0])} names for training and {len(two[1])} held out: "
            "give more names, or another share."
        )
    return tuple(encode_names(rows, length) for rows in two)


def initialise(model, seed: int = 0) -> None:
    """Initialise a model of the book, the same in both frameworks.

    Matrices are initialised as in Glorot and Bengio 2010, rows of tables with
    a norm of about 1. Scales become 1 and other vectors 0.

    Parameters
    ----------
    model
        A PyTorch module, or a Keras layer that reads ids (B, T).
    seed
        The seed of the weights.
    """
    rng = np.random.default_rng(seed)
    if hasattr(model, "named_modules"):
        for module in model.modules():
            is_table = "Embedding" in type(module).__name__
            for name, weight in module.named_parameters(recurse=False):
                shape = tuple(weight.shape)  # for a matrix, (out, in)
                if is_table or len(shape) == 1:
                    values = _first_values(rng, shape, is_table, name)
                else:
                    values = _first_values(rng, shape[::-1], False, name).T
                weight.data.copy_(weight.new_tensor(values))
        return
    if not model.built:
        model(np.zeros((1, 2), dtype=np.int64))  # Keras builds at a call
    for weight in model.trainable_variables:
        is_table = "embeddings" in weight.name
        shape = tuple(weight.shape)
        weight.assign(_first_values(rng, shape, is_table, weight.name))


def _first_values(rng, shape, is_table, name):
    if len(shape) == 1:
        return np.full(shape, float(name in ("scale", "gamma", "weight")))
    values = rng.standard_normal(shape)
    return values * np.sqrt(1 / shape[1] if is_table else 2 / sum(shape))


def five_names(
    run: Callable[[np.ndarray], np.ndarray],
    starts: str = "bkmns",
    seed: int = 8,
) -> list[str]:
    """Return a name for each start, drawn as in *One evening*.

    All models draw with the same random numbers, so that a name can be
    followed from model to model.

    Parameters
    ----------
    run
        A function from ids (B, T) to logits (B, T, N), both NumPy arrays.
    starts
        The first letters.
    seed
        Of the random numbers.

    Returns
    -------
    list of str
        Names of 21 letters at most.
    """
    ids = np.array([[0, LETTERS.index(start)] for start in starts])
    for draw in np.random.default_rng(seed).random((20, len(starts), 1)):
        logits = run(ids)[:, -1].astype("float64")  # (B, N)
        shares = np.exp(logits - logits.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        new = (shares.cumsum(-1) < draw).sum(-1, keepdims=True)  # (B, 1)
        ids = np.hstack([ids, new.clip(max=len(LETTERS) - 1)])  # (B, T)
    return decode_names(ids)
