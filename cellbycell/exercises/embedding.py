"""The exercises of *From words to vectors*."""

import numpy as np

from . import Exercise, Seen, Wrong, agree, to_numbers

# 1: how much does padding learn

check_pad_share_of_gradient = Exercise(
    number=1,
    right=lambda num_tokens, seq_len: 1 - num_tokens / seq_len,
    cases=lambda: [(4, 1024), (2, 5), (3, 3), (1, 8)],
    mistakes={
        "this is 0, as if padding learned nothing; it has a row, too": (
            lambda num_tokens, seq_len: 0.0
        ),
        "this is the share of the tokens": lambda num_tokens, seq_len: (
            num_tokens / seq_len
        ),
        "this is a percentage, not a share": lambda num_tokens, seq_len: (
            100 * (1 - num_tokens / seq_len)
        ),
        "this compares pads with tokens alone": lambda num_tokens, seq_len: (
            seq_len / num_tokens - 1
        ),
        "a share lies between 0 and 1; divide by seq_len": (
            lambda num_tokens, seq_len: seq_len - num_tokens
        ),
        "the same share for all lengths; count the pads": Seen(
            lambda answer: agree(answer(4, 1024), answer(2, 5)),
            lambda num_tokens, seq_len: 1020 / 1024,
        ),
    },
    otherwise="{} is not the share of padding; count the pads",
)


# 2: rare words


def build_vocabulary(tokens):
    """Return a dict from token to id: <pad>, <unk>, then sorted tokens."""
    entries = ["<pad>", "<unk>", *sorted({*tokens} - {"<pad>", "<unk>"})]
    return {token: token_id for token_id, token in enumerate(entries)}


def numbered(tokens):
    """Return <pad>, <unk>, and the tokens, numbered from two."""
    rest = {token: token_id for token_id, token in enumerate(tokens, 2)}
    return {"<pad>": 0, "<unk>": 1} | rest


def frequent(tokens, min_count):
    """Return the frequent tokens, as often as they occur."""
    return [token for token in tokens if tokens.count(token) >= min_count]


def vocabulary_of(choose=frequent, number=numbered):
    """Return an answer that chooses other tokens, or numbers otherwise."""
    return lambda tokens, min_count: number(
        sorted(set(choose(tokens, min_count)))
    )


def vocabulary_cases():
    rose = "a rose is a rose is a rose and a rose".split()
    yield rose, 2
    yield rose, 3
    yield "b a b c".split(), 2
    yield "b a b c".split(), 1


def in_some(fault):
    """Return what tells whether one of the vocabularies has a fault."""
    return lambda answer: any(
        fault(answer(*case)) for case in vocabulary_cases()
    )


def as_dict(found):
    if not isinstance(found, dict):
        raise Wrong(f"it returns {type(found).__name__}, not a dict")
    return found


def is_id(token_id):
    whole = isinstance(token_id, (int, np.integer))
    return whole and not isinstance(token_id, bool)


def has_holes(found):
    return not set(range(len(found))) <= set(found.values())


def in_another_order(answer):
    cases = list(vocabulary_cases())
    found = [answer(*case) for case in cases]
    right = [vocabulary_of()(*case) for case in cases]
    return found != right and list(map(set, found)) == list(map(set, right))


check_frequent_vocabulary = Exercise(
    number=2,
    right=vocabulary_of(),
    cases=vocabulary_cases,
    mistakes={
        "rare tokens have ids; each should have become <unk>": vocabulary_of(
            lambda tokens, min_count: tokens
        ),
        "min_count is not used": vocabulary_of(
            lambda tokens, min_count: frequent(tokens, 2)
        ),
        "a token that occurs min_count times is frequent: keep it": (
            vocabulary_of(
                lambda tokens, min_count: frequent(tokens, min_count + 1)
            )
        ),
        "an id is a whole number": Seen(
            in_some(lambda found: not all(map(is_id, found.values()))),
            vocabulary_of(
                number=lambda tokens: {
                    token: float(i) for token, i in numbered(tokens).items()
                }
            ),
            vocabulary_of(
                number=lambda tokens: {
                    token: str(i) for token, i in numbered(tokens).items()
                }
            ),
        ),
        "<pad> or <unk> is missing": Seen(
            in_some(lambda found: not {"<pad>", "<unk>"} <= set(found)),
            vocabulary_of(
                number=lambda tokens: {t: i for i, t in enumerate(tokens)}
            ),
        ),
        "two entries share an id: tokens, or a token and padding": Seen(
            in_some(lambda found: len(set(found.values())) < len(found)),
            vocabulary_of(
                number=lambda tokens: (
                    numbered(tokens) | {t: i for i, t in enumerate(tokens)}
                )
            ),
        ),
        "a repeated token is numbered more than once and leaves holes": Seen(
            in_some(has_holes),
            lambda tokens, min_count: numbered(
                sorted(frequent(tokens, min_count))
            ),
        ),
        "the order is <pad>, <unk>, then the tokens, sorted": Seen(
            in_another_order,
            vocabulary_of(number=lambda tokens: numbered(tokens[::-1])),
            lambda tokens, min_count: numbered(
                dict.fromkeys(frequent(tokens, min_count))
            ),
            vocabulary_of(
                number=lambda tokens: (
                    numbered(tokens) | {"<pad>": 1, "<unk>": 0}
                )
            ),
        ),
    },
    otherwise="{} has not the frequent tokens",
    close=lambda found, wanted: found == wanted,
    reads=as_dict,
)


# 3: a lookup that tells


def refusing(is_bad, says="no row for the id {}", error=ValueError):
    """Return an answer that refuses an id if is_bad(id, number of rows)."""

    def strict_lookup(token_ids, table):
        for token_id in token_ids:
            if is_bad(token_id, len(table)):
                raise error(says.format(token_id))
        return table[token_ids]

    return strict_lookup


def is_no_row(token_id, num_rows):
    return not 0 <= token_id < num_rows


def first_alone(token_ids, table):
    refusing(is_no_row)(token_ids[:1], table)
    return table[token_ids]


def becomes_of(bad, position, table):
    """Return a case: what an answer makes of an id without a row.

    [whether it raises ValueError, whether it names the id], or the row.
    """
    ids = np.array([1, 0, 1])  # (T,)
    ids[position] = bad

    def case(strict_lookup):
        try:
            return strict_lookup(ids.copy(), table.copy())[position].tolist()
        except Exception as error:
            raised = error.__cause__ if isinstance(error, Wrong) else error
            if raised is None:
                raise
            right_kind = isinstance(raised, ValueError)
            return [right_kind, right_kind and str(bad) in str(raised)]

    return case


def strict_cases():
    for num_rows, width in [(5, 3), (2, 4)]:
        starts = 10.0 + width * np.arange(num_rows)
        table = np.add.outer(starts, np.arange(width))  # (N, D)
        for ids in ([1, 0, 1], [0], [num_rows - 1]):
            yield np.array(ids), table
        for bad in (num_rows, 99, -1, -num_rows, -num_rows - 2):
            for position in (1, 0, 2):
                yield becomes_of(bad, position, table)


check_strict_lookup = Exercise(
    number=3,
    right=refusing(is_no_row),
    cases=strict_cases,
    mistakes={
        "an id without a row raises another error; raise ValueError": (
            lambda token_ids, table: table[token_ids],
            refusing(is_no_row, error=KeyError),
        ),
        "only the first id is looked at; look at each": first_alone,
        "the error does not name the id": refusing(is_no_row, "no such row"),
        "a negative id does not exist, and wraps round": refusing(
            lambda token_id, num_rows: token_id >= num_rows
        ),
        "an id without a row is moved to another row": (
            lambda token_ids, table: table[
                np.clip(token_ids, 0, len(table) - 1)
            ],
            lambda token_ids, table: table[token_ids % len(table)],
            lambda token_ids, table: refusing(lambda i, n: i < 0)(
                np.minimum(token_ids, len(table) - 1), table
            ),
        ),
        "an id without a row gives a row of zeros": lambda token_ids, table: (
            (token_ids[:, None] == np.arange(len(table))) @ table
        ),
        "an id may be N - 1 at most: N is one too many": refusing(
            lambda token_id, num_rows: not 0 <= token_id <= num_rows
        ),
    },
    otherwise="for an id of a row this row, and ValueError for any other; "
    "not {}",
)


# 4: the gradient by hand


def gradient_of(put, start=np.zeros):
    """Return an answer that puts a position's gradient into its row."""

    def table_gradient(token_ids, upstream, vocab_size):
        grad = start((vocab_size, upstream.shape[1]))  # (N, D)
        for token_id, row in zip(token_ids, upstream, strict=True):
            grad[token_id] = put(grad[token_id], row)
        return grad

    return table_gradient


def summed(token_ids, upstream, vocab_size):
    return gradient_of(np.add)(token_ids, upstream, vocab_size)


def turned(token_ids, upstream, vocab_size):
    """Keep the first position of each token."""
    last = gradient_of(lambda old, new: new)
    return last(token_ids[::-1], upstream[::-1], vocab_size)


def averaged(token_ids, upstream, vocab_size):
    times = np.bincount(token_ids, minlength=vocab_size)[:, None]  # (N, 1)
    return summed(token_ids, upstream, vocab_size) / np.maximum(times, 1)


def gradient_cases():
    for token_ids, width, vocab_size in [
        ([3, 1, 3, 0, 3], 2, 6),
        ([1, 1, 0], 4, 2),
        ([2], 1, 3),
    ]:
        positions = np.arange(len(token_ids))
        upstream = np.subtract.outer(positions, np.arange(width)) / 2 - 0.25
        yield np.array(token_ids), upstream, vocab_size


def absent_tokens_learn(answer):
    token_ids, upstream, vocab_size = next(gradient_cases())
    absent = np.setdiff1d(np.arange(vocab_size), token_ids)
    found = answer(token_ids, upstream, vocab_size)
    return to_numbers(found, (vocab_size, upstream.shape[1]))[absent].any()


check_table_gradient = Exercise(
    number=4,
    right=summed,
    cases=gradient_cases,
    mistakes={
        "of a repeated token only the last position counts": gradient_of(
            lambda old, new: new
        ),
        "of a repeated token only the first position counts": turned,
        "repeated tokens add up; no mean": averaged,
        "the positions add up; you took their mean": lambda ids, g, n: (
            summed(ids, g, n) / len(ids)
        ),
        "upstream is not used: every position counts as 1": gradient_of(
            lambda old, new: old + 1
        ),
        "the sign is that of a step downhill": gradient_of(np.subtract),
        "this is the gradient of each position; add it to its token's row": (
            lambda ids, upstream, n: upstream
        ),
        "a token that does not occur gets a row of zeros": Seen(
            absent_tokens_learn, gradient_of(np.add, start=np.ones)
        ),
    },
    otherwise="not the gradient of equation (4): {}",
)
