"""The exercises of *A thousand requests*."""

from . import Exercise

# 1: how many texts a machine answers at once


def balanced(answer=lambda operations, numbers: operations / numbers / 2):
    """Return an answer of operations and numbers, of a second each."""
    return lambda operations, bandwidth, size: answer(
        operations, bandwidth / size
    )


check_balance = Exercise(
    number=1,
    right=balanced(),
    cases=lambda: [(989e12, 3.35e12, 2), (2e12, 1e11, 4), (6e13, 1e12, 1)],
    mistakes={
        "each weight is multiplied and added: two operations a text": balanced(
            lambda operations, numbers: operations / numbers
        ),
        "the memory gives bytes; how many of them has a weight?": (
            lambda operations, bandwidth, size: operations / bandwidth / 2
        ),
        "this is upside down: a fast memory needs fewer texts": balanced(
            lambda operations, numbers: 2 * numbers / operations
        ),
        "each text needs two operations, not half of one": balanced(
            lambda operations, numbers: 2 * operations / numbers
        ),
        "divide the bandwidth by the bytes of a weight": (
            lambda operations, bandwidth, size: (
                operations / (bandwidth * size) / 2
            )
        ),
    },
    otherwise="operations over weights that are fetched in the time, over two",
)


# 2: the pages of a text


def pages(tokens=lambda prompt, written: prompt + written - 1, up=True):
    """Return an answer with other tokens, or rounded down."""
    return lambda prompt, written, size: (
        (tokens(prompt, written) + (size - 1) * up) // size
    )


check_pages_of = Exercise(
    number=2,
    right=pages(),
    cases=lambda: [
        (5, 4, 4),
        (5, 5, 4),
        (7, 1, 4),
        (9, 8, 16),
        (3, 30, 8),
        (6, 3, 1),
    ],
    mistakes={
        "the last token is written and never read": pages(
            lambda prompt, written: prompt + written
        ),
        "a page that is not full is a page": pages(up=False),
        "the prompt has keys and values, too": pages(
            lambda prompt, written: written - 1
        ),
        "what is written has keys and values, too": pages(
            lambda prompt, written: prompt
        ),
        "these are slots that are used; how many pages is that?": (
            lambda prompt, written, size: prompt + written - 1
        ),
    },
    otherwise="all tokens but the last need a slot; round the pages up",
)


# 3: what has to be read


def read_in_all(key=lambda ids, stop, size: ids[:stop], spare=1, part=False):
    """Return an answer with another key, or that leaves fewer ids."""

    def count(prompts, size):
        known, read = set(), 0
        for ids in prompts:
            step, shared = 1 if part else size, 0
            for stop in range(step, len(ids) - spare + 1, step):
                if tuple(key(ids, stop, size)) not in known:
                    break
                shared = stop
            read += len(ids) - shared
            known |= {
                tuple(key(ids, stop, size))
                for stop in range(step, len(ids) + 1, step)
            }
        return read

    return count


def of_prompt(prompts, size):
    """Share a prompt with those that begin as it does, in whole."""
    known, read = set(), 0
    for ids in prompts:
        read += 1 if tuple(ids) in known else len(ids)
        known.add(tuple(ids))
    return read


def anywhere(prompts, size):
    """Count pages, wherever they stand."""
    whole = [
        tuple(ids[stop - size : stop])
        for ids in prompts
        for stop in range(size, len(ids) + 1, size)
    ]
    return sum(map(len, prompts)) - size * (len(whole) - len({*whole}))


check_read_in_all = Exercise(
    number=3,
    right=read_in_all(),
    cases=lambda: [
        ([[1, 2, 3, 4, 5], [1, 2, 3, 4, 6, 7], [1, 2, 9, 4, 6, 7]], 2),
        ([[1, 2, 3, 4], [1, 2, 3, 4]], 2),
        ([[1, 2, 3, 4, 5], [6, 2, 3, 7, 8], [1, 2, 3, 7, 8]], 1),
        ([[1, 2, 3, 4, 5, 6], [7, 8, 9, 4, 5, 6], [7, 8, 9, 4, 5, 6, 1]], 3),
        ([[1, 2, 7, 8, 5], [3, 4, 5, 6, 5], [1, 2, 5, 6, 5]], 2),
        ([[1, 2, 3], [1, 2, 3, 4]], 4),
    ],
    mistakes={
        "one id has to be read for its logits, even if all are known": (
            read_in_all(spare=0)
        ),
        "a page is known by all ids up to its end, not by its own": (
            read_in_all(lambda ids, stop, size: ids[stop - size : stop])
        ),
        "only full pages are kept": read_in_all(part=True),
        "nothing is shared here": lambda prompts, size: sum(map(len, prompts)),
        "prompts may share a beginning without being the same": of_prompt,
        "a page is shared only behind the same beginning": anywhere,
    },
    otherwise="each prompt lacks what no known page of its beginning holds",
)


# 4: how many steps


def steps(wait=False, idle=0):
    """Return an answer whose free places wait, or stay free for a time."""

    def count(lengths, places):
        ends = [0] * places
        for start, length in enumerate(lengths):
            if wait and start % places == 0:
                ends = [max(ends)] * places
            place = ends.index(min(ends))
            ends[place] += length + (idle if ends[place] else 0)
        return max(ends)

    return count


check_steps_needed = Exercise(
    number=4,
    right=steps(),
    cases=lambda: [
        ([2, 6, 3, 1, 4], 2),
        ([5, 1, 1, 1, 1], 2),
        ([3, 3, 3], 3),
        ([4, 4, 9], 1),
        ([1, 7, 2, 2, 5, 3, 1, 8], 3),
        ([2], 4),
    ],
    mistakes={
        "a place that is free is taken at once; no batch has to end": steps(
            wait=True
        ),
        "whoever waits joins in the next step already": steps(idle=1),
        "not all places are taken all the time": (
            lambda lengths, places: -(-sum(lengths) // places)
        ),
        "there are several places": lambda lengths, places: sum(lengths),
        "not all find a place at the start": (
            lambda lengths, places: max(lengths)
        ),
        "they come in their order, not the longest first": (
            lambda lengths, places: steps()(
                sorted(lengths, reverse=True), places
            )
        ),
    },
    otherwise="each takes the place that is free first",
)
