"""The checkers of decoder: what they accept and what they say.

Each checker is tried on one wrong answer for each thing that it claims to
notice; test_exercises.py tries it on the stub and the solution.
"""

import numpy as np
import pytest

pytestmark = pytest.mark.xdist_group("frameworks")


def padded(*both):
    """Return an answer of exercise 1 that makes rows of each sentence."""

    def rows(sentences, start, end):
        lists = [[make(s, start, end) for s in sentences] for make in both]
        width = max(len(row) for of_one in lists for row in of_one)
        return np.array(
            [[r + [0] * (width - len(r)) for r in rs] for rs in lists]
        )

    return rows


def read(s, start, end):
    return [start, *s]


def say(s, start, end):
    return [*s, end]


def whole(s, start, end):
    return [start, *s, end]


def bare(s, start, end):
    return [*s]


def shifted_twice(sentences, start, end):
    right = padded(read, say)(sentences, start, end)
    right[1, :, :-1], right[1, :, -1] = right[1, :, 1:], 0
    return right


def sliced(sentences, start, end):
    """The whole rows, padded and cut: short inputs keep their end."""
    rows = padded(whole)(sentences, start, end)[0]
    return np.stack([rows[:, :-1], rows[:, 1:]])


def mask(allowed):
    """Return an answer of exercise 2: allowed(key, query, past)."""

    def answer(source, target):
        shape = (*target.shape, source.shape[1])
        key, query = (source != 0)[:, None], (target != 0)[..., None]
        past = np.tri(*shape[1:]) > 0
        return np.broadcast_to(allowed(key, query, past), shape)

    return answer


def of_target(source, target):
    if source.shape != target.shape:
        return mask(lambda key, query, past: key)(source, target)
    return mask(lambda key, query, past: key)(target, target)


def loop(row=-1, first=None, stop=True, keep=slice(1, None), more=0, sign=1):
    """Return an answer of exercise 3, with a mistake."""

    def answer(next_logits, start, end, most):
        ids = [start if first is None else first]
        for _ in range(most + more):
            ids.append(int((sign * next_logits(ids)[row]).argmax()))
            if stop and ids[-1] == end:
                break
        return ids[keep]

    return answer


def of_last_id(next_logits, *given):
    return loop()(lambda ids: next_logits(ids[-1:]), *given)


def filled_up(next_logits, start, end, most):
    ids = loop()(next_logits, start, end, most)
    return ids + [0] * (most - len(ids))


def without_end(*given):
    ids = loop()(*given)
    return ids[:-1] if ids[-1] == given[2] else ids


def count(norms=4, second=None, third=6, linear=0, tables=None, sides=2):
    """Return an answer of exercise 4, with a mistake."""

    def answer(N, layers, D, hidden, tied):
        inner = 2 * D * hidden + hidden + D
        one = 4 * D * D + 4 * D + inner + 4 * D
        other = 8 * D * D + 8 * D + inner + third * D
        if second is not None:
            other = one
        if sides == 1:
            one = 0
        shared = 2 - tied if tables is None else tables(tied)
        return layers * (one + other) + norms * D + shared * N * D + linear * N

    return answer


WRONG = {
    "inputs_and_targets": [
        ("not shifted; the targets are what is read", padded(read, read)),
        ("not shifted; the inputs are what should be said", padded(say, say)),
        ("the targets are the inputs; exchange them", padded(say, read)),
        ("the targets begin with the start", padded(whole, whole)),
        ("the targets lack the end", padded(read, bare)),
        ("the inputs lack the start", padded(bare, say)),
        ("shifted twice", shifted_twice),
        ("short inputs end with the end; put a zero there", sliced),
    ],
    "cross_mask": [
        (
            "inverted; True means may attend",
            mask(lambda key, query, past: ~key),
        ),
        (
            "the source is known as a whole; nothing is causal",
            mask(lambda key, query, past: key & past),
        ),
        (
            "only a triangle; the pads of the source are not blocked",
            mask(lambda key, query, past: past),
        ),
        (
            "the queries are masked, and the keys are not",
            mask(lambda key, query, past: query),
        ),
        (
            "queries are masked too; a pad's row may attend",
            mask(lambda k, query, past: k & query),
        ),
        ("made from the target; the keys are the source", of_target),
    ],
    "decode_one": [
        ("the start is part of it", loop(keep=slice(None))),
        ("it does not stop at the end", loop(stop=False)),
        ("the end is missing", without_end),
        (
            "the first row is read; the next word is the last row's",
            loop(row=0),
        ),
        ("it begins with zero, not with start_id", loop(first=0)),
        ("the model gets the last id only", of_last_id),
        ("zeros follow the end; stop there", filled_up),
        ("one id too many", loop(more=1)),
        ("one id too few", loop(more=-1)),
        ("the smallest logit is taken", loop(sign=-1)),
    ],
    "count_model": [
        ("each stack ends with a norm", count(norms=0)),
        ("a norm has a scale and a shift", count(norms=2)),
        ("our last layer has no bias", count(linear=1)),
        (
            "two tables; source and target share one",
            count(tables=lambda tied: 3 - tied),
        ),
        (
            "a decoder layer has a second attention and a third norm",
            count(second=0),
        ),
        ("a decoder layer has a third norm", count(third=4)),
        ("the layers of one side only", count(sides=1)),
        ("as if the last layer were tied", count(tables=lambda tied: 1)),
        ("as if the last layer were not tied", count(tables=lambda tied: 2)),
    ],
}


def test_wrong_answer_is_named(chapter, name, says, answer):
    check = chapter("decoder")[f"check_{name}"]
    assert check(answer) == f"{says}."


def test_odd_answer_is_refused(chapter, odd, number, name):
    answer, says = odd
    check = chapter("decoder")[f"check_{name}"]
    assert check(answer) == f"Exercise {number}: {says}."


def test_a_model_with_a_mistake_is_drawn_from_its_seed(chapter):
    book = chapter("decoder")
    (model, _), (again, _), (other, _) = (
        book["mistaken_model"]("no mistake", seed) for seed in (5, 5, 6)
    )
    numbers, same, unlike = (
        np.concatenate([p.detach().numpy().ravel() for p in m.parameters()])
        for m in (model, again, other)
    )
    assert np.array_equal(numbers, same)
    assert not np.array_equal(numbers, unlike)
