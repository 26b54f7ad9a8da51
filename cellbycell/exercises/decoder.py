"""The exercises of *The decoder*."""

import numpy as np

from . import Exercise

# 1: inputs and targets


def rows_of(*both):
    """Return an answer that makes both rows of each sequence, with pads."""

    def inputs_and_targets(sequences, start_id, end_id):
        lists = [
            [make(list(s), start_id, end_id) for s in sequences]
            for make in both
        ]
        width = max(len(row) for rows in lists for row in rows)
        padded = [[r + [0] * (width - len(r)) for r in rows] for rows in lists]
        return np.array(padded)

    return inputs_and_targets


def read(s, start, end):
    return [start, *s]


def say(s, start, end):
    return [*s, end]


def whole(s, start, end):
    return [start, *s, end]


def bare(s, start, end):
    return s


def uncut(sequences, start_id, end_id):
    """Cut the last column of whole rows, where short ones have their end."""
    found = rows_of(read, say)(sequences, start_id, end_id)
    found[0] = rows_of(whole)(sequences, start_id, end_id)[0, :, :-1]
    return found


check_inputs_and_targets = Exercise(
    number=1,
    right=rows_of(read, say),
    cases=lambda: [([[5, 6, 7], [8]], 1, 2), ([[4], [9, 3]], 12, 13)],
    mistakes={
        "not shifted; the targets are what is read": rows_of(read, read),
        "not shifted; the inputs are what should be predicted": rows_of(
            say, say
        ),
        "the targets are the inputs; exchange them": rows_of(say, read),
        "the targets begin with the start": rows_of(whole, whole),
        "the targets lack the end": rows_of(read, bare),
        "the inputs lack the start": rows_of(bare, say),
        "shifted twice": rows_of(read, lambda *x: say(*x)[1:]),
        "short inputs end with the end; put a zero there": uncut,
    },
    otherwise="{} is wrong",
)


# 2: the mask of the source


def mask(allowed):
    """Return an answer: a test of ids of keys, of queries, and the past."""

    def cross_mask(source_ids, input_ids):
        shape = (*input_ids.shape, source_ids.shape[1])
        past = np.tri(*shape[1:]) > 0  # (T, S)
        key, query = source_ids[:, None], input_ids[..., None]
        return np.broadcast_to(allowed(key, query, past), shape)

    return cross_mask


def of_target(source_ids, input_ids):
    return mask(lambda key, query, past: key != 0)(input_ids, input_ids)


def ids():
    source = np.array([[4, 1, 0], [5, 0, 0]])
    same, long = [[1, 7, 8], [1, 0, 0]], [[1, 7, 8, 0]] * 2
    return [(source, np.array(same)), (source, np.array(long))]


check_cross_mask = Exercise(
    number=2,
    right=mask(lambda key, query, past: key != 0),
    cases=ids,
    mistakes={
        "inverted; True means may attend": mask(
            lambda key, query, past: key == 0
        ),
        "the source is known as a whole; nothing is causal": mask(
            lambda key, query, past: (key != 0) & past
        ),
        "only a triangle; the pads of the source are not blocked": mask(
            lambda key, query, past: past
        ),
        "id 1 is a token; only zeros are pads": mask(
            lambda key, query, past: key > 1
        ),
        "the queries are masked, and the keys are not": mask(
            lambda key, query, past: query != 0
        ),
        "queries are masked too; a pad's row may attend": mask(
            lambda key, query, past: (key != 0) & (query != 0)
        ),
        "made from the target; the keys are the source": of_target,
    },
    otherwise="{} is wrong",
)


# 3: a loop that writes


def loop(row=-1, stop=True, keep=slice(1, None), more=0, **changed):
    """Return an answer with one thing changed.

    row: of the logits; stop: at the end; keep: of the ids; more: ids than
    allowed; never_start, first, last_only, least, pad: see the mistakes.
    """

    def decode_one(next_logits, start_id, end_id, max_len):
        ids = [changed.get("first", start_id)]
        for _ in range(max_len + more):
            given = ids[-1:] if "last_only" in changed else ids
            logits = np.array(next_logits(given)[row])
            if "never_start" in changed:
                logits[start_id] = -np.inf
            best = logits.argmin() if "least" in changed else logits.argmax()
            ids.append(int(best))
            if stop and ids[-1] == end_id:
                break
        missing = max_len + 1 - len(ids) if "pad" in changed else 0
        return (ids + [0] * missing)[keep]

    return decode_one


def without_end(next_logits, start_id, end_id, max_len):
    found = loop()(next_logits, start_id, end_id, max_len)
    return found[:-1] if found[-1] == end_id else found


def tables():
    for seed, end, most in [(9, 2, 6), (12, 4, 5), (1, 7, 7), (27, 2, 6)]:
        table = np.random.default_rng(seed).normal(size=(9, 9))  # (N, N)

        def next_logits(ids, table=table):
            return table[np.array(ids)].cumsum(axis=0)  # (T, N)

        yield next_logits, 1, end, most


check_decode_one = Exercise(
    number=3,
    right=loop(),
    cases=tables,
    mistakes={
        "the start is part of it": loop(keep=slice(None)),
        "it does not stop at the end": loop(stop=False),
        "the end is missing": without_end,
        "the first row is read; the next token is the last row's": loop(row=0),
        "it begins with zero, not with start_id": loop(first=0),
        "the model gets the last id only": loop(last_only=True),
        "the start may be written, too": loop(never_start=True),
        "zeros follow the end; stop there": loop(pad=True),
        "one id too many": loop(more=1),
        "one id too few": loop(more=-1),
        "the smallest logit is taken": loop(least=True),
    },
    otherwise="{} is wrong",
)


# 4: count what is learned


def count(norms=4, decoder=3, attentions=2, sides=2, tables=None, more=0):
    """Return an answer that counts otherwise.

    norms: numbers of the last norms, in D; decoder: norms of its layer;
    attentions: of its layer; sides: stacks whose layers count; tables: by
    tied; more: added, in N.
    """

    def count_model(vocab_size, num_layers, d_model, d_ff, tied):
        attention = 4 * d_model * d_model + 4 * d_model
        inner = 2 * d_model * d_ff + d_ff + d_model
        one = attention + inner + 4 * d_model
        other = attentions * attention + inner + 2 * decoder * d_model
        layers = num_layers * (other + (sides - 1) * one)
        shared = tables(tied) if tables else 2 - tied
        shared = (shared * d_model + more) * vocab_size
        return layers + norms * d_model + shared

    return count_model


check_count_model = Exercise(
    number=4,
    right=count(),
    cases=lambda: [(14, 3, 12, 20, False), (50, 4, 16, 40, True)],
    mistakes={
        "each stack ends with a norm": count(norms=0),
        "a norm has a scale and a shift": count(norms=2),
        "our last layer has no bias": count(more=1),
        "a decoder layer has a second attention and a third norm": count(
            attentions=1, decoder=2
        ),
        "a decoder layer has a third norm": count(decoder=2),
        "the layers of one side only": count(sides=1),
        "as if the last layer were tied": count(tables=lambda tied: 1),
        "as if the last layer were not tied": count(tables=lambda tied: 2),
        "two tables; source and target share one": count(
            tables=lambda tied: 3 - tied
        ),
    },
    otherwise="{} is wrong",
)
