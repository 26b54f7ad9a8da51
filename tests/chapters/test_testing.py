"""The chapter on testing: its kit, its bugs and its checkers.

Each checker is tried on one wrong answer for each thing that it claims to
notice; test_exercises.py tries it on the stub and the solution.
"""

import numpy as np
import pytest

pytestmark = pytest.mark.xdist_group("frameworks")


@pytest.fixture(scope="session")
def book(chapter):
    """The variables of the chapter after a run; not to be changed."""
    return chapter("testing")


# Wrong answers by exercise: the verdict after its number, and the answer.


def causal_if(says):
    """Return an answer of exercise 2: says(model, ids, changed) for each."""

    def answer(model, ids):
        for place in range(1, len(ids)):
            other = ids.copy()
            other[place] = (ids[place] + 1) % 10
            if not says(model(ids), model(other), place):
                return False
        return True

    return answer


def in_order(*names):
    """Return an answer of exercise 3 that asks in a fixed order."""

    def answer(ask):
        for check, bug in names:
            if not ask(check):
                return bug
        return "pads in the loss"

    return answer


def ask_all(ask):
    verdicts = [ask(c) for c in ("library", "steps", "pads", "future")]
    return "memory detached" if all(verdicts) else "no causal mask"


def largest(seen, size):
    return sorted(seen, key=lambda name: -len(seen[name]))[:size]


def greedy(seen, size):
    found = []
    for _ in range(size):
        have = set().union(*(seen[name] for name in found))
        rest = [name for name in seen if name not in found]
        found.append(max(rest, key=lambda name: len(seen[name] - have)))
    return found


WRONG = {
    "name_bug": [
        ("it returns int, not a name", lambda: 3),
        ("the matrix has no bug of this name", lambda: "no mask"),
        ("a model with this bug fails 'training'", lambda: "no causal mask"),
        ("a model with this bug passes 'future'", lambda: "no ReLU"),
        (
            "a model with this bug fails 'training'",
            lambda: "causal mask off by one",
        ),
        ("a model with this bug passes 'future'", lambda: "not shifted"),
    ],
    "is_causal": [
        ("it returns int, not True or False", lambda model, ids: 1),
        (
            "a model that sees everything is called causal",
            lambda model, ids: True,
        ),
        (
            "a model that looks at the past is called not causal",
            lambda model, ids: False,
        ),
        (
            "a model that looks at the past is called not causal",
            causal_if(lambda a, b, t: np.allclose(a[: t + 1], b[: t + 1])),
        ),
        (
            "a model off by one is called causal",
            causal_if(lambda a, b, t: np.allclose(a[: t - 1], b[: t - 1])),
        ),
        (
            "a model whose first place sees the last id is called causal",
            causal_if(lambda a, b, t: np.allclose(a[1:t], b[1:t])),
        ),
        (
            "a model whose rows have the same sum is called causal",
            causal_if(lambda a, b, t: np.allclose(a[:t].sum(1), b[:t].sum(1))),
        ),
    ],
    "find_bug": [
        ("it returns '3', which is no candidate", lambda ask: 3),
        (
            "it takes 'no causal mask' for 'memory detached'",
            lambda ask: "memory detached",
        ),
        (
            "your function raises ValueError: the kit has no check 'mask'",
            lambda ask: ask("mask"),
        ),
        ("it calls 4 checks for 'no causal mask'", ask_all),
        (
            "it takes 'one position for all' for 'no causal mask'",
            in_order(("steps", "no causal mask")),
        ),
        (
            "it takes 'one position for all' for 'encoder without its mask'",
            in_order(
                ("future", "no causal mask"),
                ("pads", "encoder without its mask"),
            ),
        ),
    ],
    "choose": [
        ("it returns str, not a list", lambda seen, size: "library"),
        ("it returns names that are no checks", lambda seen, size: ["y", "z"]),
        ("it returns 1 names, not 2 different", lambda seen, size: ["a"]),
        (
            "it returns 2 names, not 2 different",
            lambda seen, size: [[*seen][0]] * 2,
        ),
        ("the largest sets see the same bugs", largest),
        ("these see 9 bugs, and others see 10", greedy),
        ("these see 6 bugs, and others see 10", lambda s, n: [*s][1::2][:n]),
    ],
}


def test_wrong_answer_is_named(book, name, says, answer):
    assert book[f"check_{name}"](answer) == f"{says}."


def test_odd_answers_are_told(book, odd, number, name):
    answer, _ = odd
    verdict = book[f"check_{name}"](answer)
    assert verdict.startswith(f"Exercise {number}: ")
    assert not verdict.endswith("correct.")


# What the chapter's functions promise


def test_a_planted_bug_is_gone_afterwards(book):
    attend, before = book["attend"], book["attend"].__code__
    with pytest.raises(ArithmeticError):
        with book["planted"](attend, "softmax(dim=-1)", "softmax(dim=-2)"):
            assert attend.__code__ is not before
            raise ArithmeticError
    assert attend.__code__ is before


@pytest.mark.parametrize("old", ["no such piece", "query"])
def test_a_piece_has_to_stand_there_once(book, old):
    with pytest.raises(ValueError, match="stands there"):
        with book["planted"](book["attend"], old, ""):
            pass


def test_every_bug_changes_its_function(book):
    for bugs in (book["BUGS"], book["BUGS_TF"]):
        for function, old, new in bugs.values():
            before = function.__code__
            with book["planted"](function, old, new):
                assert function.__code__.co_code != before.co_code or (
                    function.__code__.co_consts != before.co_consts
                    or function.__code__.co_names != before.co_names
                )


@pytest.mark.parametrize("seed", [1, 3, 11])
def test_a_sound_model_passes_with_other_weights(book, seed):
    found = book["run_kit"](book["probe_of"](seed=seed), book["KIT"])
    assert all(found.values()), found


def test_a_model_that_ignores_everything_is_seen(book):
    torch = book["torch"]

    class Constant(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(13, 12)

        def forward(self, source_ids, input_ids):
            return torch.zeros(*input_ids.shape, 13)

    p = book["Probe"](Constant(), *book["ROWS"], vocab_size=13)
    names = book["KIT"].keys() - {"count", "library"}
    found = book["run_kit"](p, {n: book["KIT"][n] for n in names})
    wrong = {name for name, passed in found.items() if not passed}
    assert {"order", "source", "gradients"} <= wrong


def test_an_error_is_a_check_that_fails(book):
    assert not book["passes_check"](lambda p: 1 / 0, None)


def test_the_best_sets_are_the_best(book):
    seen = {"a": {1, 2}, "b": {2, 3}, "c": {3}, "d": {1}}
    assert book["best_sets"](seen, 2) == [
        ("a", "b"),
        ("a", "c"),
        ("b", "d"),
    ]
