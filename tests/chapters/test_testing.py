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


def causal_if(part):
    """Return an answer of exercise 2 that compares this part of the rows."""

    def answer(model, ids):
        for place in range(1, len(ids)):
            other = ids.copy()
            other[place] = (ids[place] + 1) % 10
            both = [part(model(x), place) for x in (ids, other)]
            if not np.allclose(*both):
                return False
        return True

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
        ("the matrix has no bug of this name", lambda: "no mask"),
        ("a model with this bug fails 'training'", lambda: "no causal mask"),
        ("a model with this bug passes 'future'", lambda: "no ReLU"),
    ],
    "is_causal": [
        (
            "a model that sees everything is called causal",
            lambda model, ids: True,
        ),
        (
            "a model that looks at the past is called not causal",
            causal_if(lambda rows, t: rows[: t + 1]),
        ),
        (
            "a model off by one is called causal",
            causal_if(lambda rows, t: rows[: t - 1]),
        ),
        (
            "a model whose rows have the same sum is called causal",
            causal_if(lambda rows, t: rows[:t].sum(axis=1)),
        ),
    ],
    "find_bug": [
        ("it calls 4 checks for 'no causal mask'", ask_all),
        (
            "it takes 'one position for all' for 'no causal mask'",
            lambda ask: "no causal mask" if not ask("steps") else "",
        ),
    ],
    "choose": [
        ("it returns 2 names, not 2 different", lambda s, n: [*s][:1] * n),
        ("the largest sets see the same bugs", largest),
        ("these see 9 bugs, and others see 10", greedy),
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
    """Also if the block raises, and with another bug in the same function."""
    torch, attend = book["torch"], book["attend"]
    before, planted = attend.__code__, book["planted"]
    query, key = torch.zeros(3, 2), torch.zeros(2, 2)
    with pytest.raises(ArithmeticError):
        with planted(*book["BUGS"]["softmax over the queries"]):
            with planted(*book["BUGS"]["blocked scores are 1e-9"]):
                weights = attend(query, key, key, torch.zeros(3, 2).bool())[1]
                assert torch.allclose(weights, torch.tensor(1 / 3))
            weights = attend(query, key, key)[1]
            assert torch.allclose(weights, torch.tensor(1 / 3))
            raise ArithmeticError
    assert attend.__code__ is before


@pytest.mark.parametrize("old", ["no such piece", "query"])
def test_a_piece_has_to_stand_there_once(book, old):
    with pytest.raises(ValueError, match="stands there"):
        with book["planted"](book["attend"], old, ""):
            pass


def test_every_bug_can_be_planted(book):
    for function, old, new in (
        *book["BUGS"].values(),
        *book["BUGS_TF"].values(),
    ):
        with book["planted"](function, old, new):
            assert old != new


@pytest.mark.parametrize("seed", [1, 3, 11])
def test_a_sound_model_passes_with_other_weights(book, seed):
    found = book["run_kit"](book["probe_of"](seed=seed), book["KIT"])
    assert all(found.values()), found


# Each check of the kit fails for the fault that it is there for

TABLE = np.random.default_rng(0).normal(size=(13, 13)) / 40
PLACES = np.random.default_rng(1).uniform(1, 2, size=(20, 1))
WHOLE = np.array([[1, 10, 8, 12, 2, 0, 0], [1, 10, 8, 9, 11, 12, 2]])


def mixed(ids):
    """Return numbers for each id, (B, T, N), by its place; pads have none."""
    return TABLE[ids] * PLACES[: ids.shape[1]] * (ids != 0)[..., None]


def put(logits, where, number):
    """Return logits with another number there."""
    logits = logits.copy()
    logits[where] = number
    return logits


def toy(book, spoil=lambda p, logits, *ids: logits, rows=2):
    """Return a probe of a correct model in NumPy that spoil makes wrong.

    The model sees the past and the source, each in its order.
    """

    class Toy(book["Probe"]):
        def logits(self, *ids, training=False):
            self.runs, self.training = self.runs + 1, training
            logits = mixed(ids[-1]).cumsum(axis=1)  # (B, T, N)
            if ids[1:]:
                logits += mixed(ids[0]).sum(axis=1, keepdims=True)
            return np.float32(spoil(self, logits, *ids))

    facts = {"library": lambda model, *ids: p.logits(*ids), "vocab_size": 13}
    p = Toy(None, *book["ROWS"][-rows:], **facts)
    return p


def fails(book, check, p):
    """Tell whether a check fails for a probe; an error is an error."""
    return not (book["KIT"] | book["TRAINED"])[check](p)


def changed(p, inputs):
    return inputs.shape == (2, 6) and (inputs != p.inputs).any()


# Check: when no number may be another, and at which places.
STAYS = {
    "future": (lambda p, _, inputs: changed(p, inputs), range(3)),
    "training": (
        lambda p, _, inputs: p.training and changed(p, inputs),
        range(3),
    ),
    "steps": (lambda p, _, inputs: inputs.shape == (2, 6), range(1, 5)),
    "pads": (lambda p, source, _: source.shape == (2, 8), range(6)),
    "loss": (lambda p, _, inputs: inputs.shape == (2, 9), range(4)),
    "alone": (lambda p, _, inputs: len(inputs) == 2, range(6)),
    "twice": (lambda p, *ids: p.runs == 2, range(6)),
    "library": (lambda p, *ids: p.runs == 2, range(6)),
}


@pytest.mark.parametrize("check", STAYS)
def test_a_check_sees_one_number_that_moves(book, check):
    when, places = STAYS[check]
    assert not fails(book, check, toy(book))
    for b, t in np.argwhere(WHOLE[:, :-1]):
        if t in places:
            p = toy(
                book,
                lambda p, x, *ids, where=(b, t, 4): (
                    put(x, where, 1) if when(p, *ids) else x
                ),
            )
            assert fails(book, check, p), (b, t)


# Check, how many rows of ids, and the logits of a model that is wrong.
WRONG_LOGITS = [
    *(
        ("shape", 2, lambda p, x, *ids, n=n: put(x, (1, 5, 12), n))
        for n in (np.inf, -np.inf, np.nan)
    ),
    ("shape", 2, lambda p, x, *ids: x[..., 1:]),
    *(
        ("start", 2, lambda p, x, *ids, n=n: x + n * np.eye(13)[WHOLE[:, 1:]])
        for n in (5, -5)
    ),
    *(
        ("source", 2, lambda p, x, _, ids, b=b: put(x, b, mixed(ids)[b]))
        for b in (0, 1)
    ),
    # The sum of the source, and of the past, in any order.
    ("order", 2, lambda p, x, ids, _: 0 * x + TABLE[ids].sum(1)[:, None]),
    ("order", 1, lambda p, x, ids: TABLE[ids].cumsum(axis=1) + TABLE[ids]),
]


@pytest.mark.parametrize(("check", "rows", "spoil"), WRONG_LOGITS)
def test_a_check_sees_wrong_logits(book, check, rows, spoil):
    assert not fails(book, check, toy(book, rows=rows))
    assert fails(book, check, toy(book, spoil, rows))


ONE, TWO = np.eye(2), 2 * np.eye(2)
EARLY = np.isin(np.arange(13), [1, 8, 10])
# Check, what it asks of the probe, a right answer and wrong ones.
ANSWERS = [
    ("gradients", "pull", {"a": ONE, "b": ONE}, [{"a": ONE, "b": 0 * ONE}]),
    (
        "causal",
        "pull",
        {"table": EARLY},
        [{"table": put(EARLY, late, True)} for late in (2, 9, 11, 12)],
    ),
    (
        "count",
        "weights",
        {"a": ONE, "b": ONE[0]},
        [{"a": ONE}, {"a": ONE, "b": ONE}],
    ),
    ("layers", "weights", {"a": ONE, "b": TWO}, [{"a": ONE, "b": ONE}]),
    ("by heart", "learn", 0.05, [0.2]),
    ("writes", "write", WHOLE, [put(WHOLE, (1, t), 3) for t in range(1, 7)]),
]


@pytest.mark.parametrize(("check", "asked", "right", "wrong"), ANSWERS)
def test_a_check_sees_wrong_answers(book, check, asked, right, wrong):
    p = toy(book)
    p.facts["count"] = 6
    for answer in (right, *wrong):
        setattr(p, asked, lambda *given, answer=answer: answer)
        assert fails(book, check, p) == (answer is not right)


def test_every_check_of_the_kit_has_its_fault(book):
    tried = {*STAYS, *(check for check, *_ in WRONG_LOGITS + ANSWERS)}
    assert tried == {*book["KIT"], *book["TRAINED"]}


@pytest.mark.parametrize("kind", ["", "_tf"])
def test_both_probes_ask_the_model(book, kind):
    bugs, kit = book[f"BUGS{kind.upper()}"], book["KIT"]
    function, old, new = bugs["causal mask in training only"]
    reverse = function, old, new.replace(" if ", " if not ")
    for bug, check, other in [
        (bugs["causal mask in training only"], "future", "training"),
        (reverse, "training", "future"),
        (bugs["no causal mask"], "causal", "gradients"),
        (bugs["memory detached"], "gradients", "causal"),
        (bugs["pads in the loss"], "loss", "pads"),
    ]:
        probe = book[f"Probe{kind[1:].upper()}"]
        with book["planted"](*bug):
            p = probe(book[f"ours{kind}"], *book["ROWS"])
            assert kit[other](p) and not kit[check](p), check
        assert kit[check](probe(book[f"ours{kind}"], *book["ROWS"])), check
    assert np.array_equal(book["own"].write(), book["own_tf"].write())


def test_an_error_is_a_check_that_fails(book):
    assert not book["passes_check"](lambda p: 1 / 0, None)
