"""The chapter on a model at work: its checkers, its rows and its functions.

test_exercises.py tries each checker on the stub and the solution.
"""

import datetime
import math

import numpy as np
import pytest
import torch

pytestmark = pytest.mark.xdist_group("frameworks")


def positions(test):
    """Return an answer of exercise 2: a test of position, start and end."""

    def answer(asked, said):
        at = np.arange((asked + said).max())
        return 1 * test(at, asked[:, None], (asked + said)[:, None])

    return answer


def entropy(mix):
    """Return an answer of exercise 4: a mix of counts and costs."""

    def answer(counts):
        share = counts / counts.sum(axis=1, keepdims=True)
        return mix(counts, share, -np.log(np.where(share > 0, share, 1)))

    return answer


WRONG = {
    "pads_needed": {
        "all positions": lambda n: len(n) * n.max(),
        "the tokens": lambda n: n.sum(),
        "a share": lambda n: 1 - n.mean() / n.max(),
        "shortest sequence": lambda n: n.max() - n.min(),
        "8 is wrong for [5 9 2 6]": lambda n: 8,
    },
    "answer_positions": {
        "where <start> is read": positions(lambda t, a, b: (t > a) & (t < b)),
        "prompt is counted": positions(lambda t, a, b: t < b),
        "pads are counted": positions(lambda t, a, b: t >= a),
        "exchanged": positions(lambda t, a, b: (t < a) | (t >= b)),
        "its <end> already": positions(lambda t, a, b: (t >= a) & (t <= b)),
        "predicts nothing": positions(lambda t, a, b: (t >= a - 1) & (t < b)),
        "one position early": positions(
            lambda t, a, b: (t >= a - 1) & (t < b - 1)
        ),
        "prompts [3 1 4], answers [2 5 3]": positions(
            lambda t, a, b: (t >= a) & (t < 0)
        ),
    },
    "joint_gradient": {
        "by batches": lambda g, n: g.mean(axis=0),
        "gradient of a sum": lambda g, n: n @ g,
        "not divided at all": lambda g, n: g.sum(axis=0),
        "tokens of all": lambda g, n: g.sum(axis=0) / n.sum(),
        "by the parts": lambda g, n: n @ g / len(n),
        "counts more here": lambda g, n: (1 / n) @ g / (1 / n).sum(),
        "wrong for [4 9 2] tokens": lambda g, n: 0 * g[0],
    },
    "least_loss": {
        "a minus in front": entropy(lambda n, q, c: -(n * c).sum() / n.sum()),
        "to base 2": entropy(
            lambda n, q, c: (n * c).sum() / n.sum() / math.log(2)
        ),
        "as it has rows": entropy(lambda n, q, c: (q * c).sum(axis=1).mean()),
        "sum over the rows": entropy(lambda n, q, c: (n * c).sum()),
        "read the question": lambda n: (
            entropy(lambda n, q, c: (n * c).sum())(n.sum(0, keepdims=True))
            / n.sum()
        ),
        "a bound of equation (1)": lambda n: 1 - n.max(axis=1).sum() / n.sum(),
        "zero has no logarithm": lambda n: (
            n * np.log(n.sum(axis=1, keepdims=True) / n)
        ).sum(),
        "wrong for the counts": lambda n: 7,
    },
}


def test_wrong_answer_is_named(verdict, says):
    assert says in verdict


# The rows.


def test_best_share_is_that_of_the_most_frequent_answers(book):
    rows = [*3 * [("a", "x")], ("a", "y"), *2 * [("b", "z")]]
    assert book["best_share"](rows) == pytest.approx(5 / 6)


def test_ambiguous_dates_are_those_of_two_orders(book):
    """Every twofold question has a day and a month that can be exchanged."""
    answers = {}
    for question, answer in book["year_rows"]:
        answers.setdefault(question, set()).add(answer)
    twofold = {q: found for q, found in answers.items() if len(found) > 1}
    assert {q[:-2] for q in twofold} == book["twofold"]
    for question, found in twofold.items():
        one, other = map(datetime.date.fromisoformat, found)
        assert (one.month, one.day) == (other.day, other.month)
        assert question[-2:] == "28"


@pytest.mark.parametrize("by", [0, 1])
def test_split_shares_no_key_and_loses_no_row(book, by):
    rows = [(str(n % 7), str(n % 11)) for n in range(77)]
    first, second = book["split_rows"](rows, 0.3, by)
    assert sorted(first + second) == sorted(rows)
    assert not {r[by] for r in first} & {r[by] for r in second}
    assert len({r[by] for r in second}) == round(0.3 * (7, 11)[by])


def test_epoch_has_each_row_once(book):
    pairs = [([5] * (1 + n % 9), [2]) for n in range(1000)]
    batches = book["batches_by_length"](pairs, 7, np.random.default_rng(0))
    assert sorted(sum(batches, [])) == list(range(1000))
    spread = [np.ptp([len(pairs[i][0]) for i in batch]) for batch in batches]
    assert np.mean(spread) < 1


def test_batch_is_shifted_and_padded(book):
    source, inputs, target = book["make_batch"]([([5, 6], [7, 2]), ([8], [2])])
    assert source.tolist() == [[5, 6], [8, 0]]
    assert inputs.tolist() == [[1, 7], [1, 0]]
    assert target.tolist() == [[7, 2], [2, 0]]


def test_one_sequence_predicts_the_answer_alone(book):
    pairs = [([5, 6], [7, 2]), ([8], [2])]
    inputs, target = book["make_continued"](pairs)
    assert inputs.tolist() == [[5, 6, 1, 7], [8, 1, 0, 0]]
    assert target.tolist() == [[0, 0, 7, 2], [0, 2, 0, 0]]
    inputs, target = book["make_counted"](pairs)
    assert target.tolist() == [[6, 1, 7, 2], [1, 2, 0, 0]]


def test_any_text_of_known_characters_comes_back(book):
    tokenizer = book["train_tokenizer"](["a b-c, dé 12"] * 3, 40)
    for text in ("a", " a b", "1-2, é", "d  c"):
        assert tokenizer.decode(tokenizer.encode(text).ids) == text
    assert tokenizer.encode("z").ids == [3]


# The training.


def test_rate_rises_and_falls_to_zero(book):
    shares = [book["rate_share"](step, 400) for step in range(1, 401)]
    assert shares[0] == 1 / 50 and max(shares) < 1
    assert shares[199] == pytest.approx(0.5) and shares[-1] < 1e-9
    assert 40 < np.argmax(shares) < 50


def test_fit_stops_early_and_keeps_the_best_weights(book):
    class Scripted:
        """A trainer whose only weight counts its steps."""

        def __init__(self, losses):
            self.model = torch.nn.Linear(1, 1, bias=False)
            self.model.weight.data.zero_()
            self.losses = losses

        def step(self):
            self.model.weight.data += 1
            return 0.0

        def loss(self, model, pairs):
            return torch.tensor(self.losses[int(model.weight) - 1])

    trainer = Scripted([5.0, 3.0, 1.0, 2.0, 2.0, 0.0])
    history = book["fit"](
        trainer, [([5], [2])], 6, lambda *given: 0.0, every=1, patience=2
    )
    assert [found[2] for found in history] == [5, 3, 1, 2, 2]
    assert trainer.model.weight.item() == 3


def test_stored_rows_are_what_the_model_writes(book):
    """The picture's stored weights are near those of this training."""
    pairs, stored = [], []
    for date, rows in zip(
        book["STORED_DATES"], book["work_data"], strict=True
    ):
        assert date.isoformat() in {a for _, a in book["test_rows"]}
        for language, row in zip(book["LANGUAGES"], rows, strict=True):
            text = book["format_date"](date, "full", locale=language)
            pairs.append((text, date.isoformat()))
            stored.append(np.array(row["weights"]) / 100)
    model, tokenizer = book["model"], book["tokenizer"]
    written = book["write"](model, tokenizer, [q for q, _ in pairs])
    right = [w == a for w, (_, a) in zip(written, pairs, strict=True)]
    assert sum(right) >= len(pairs) - 3
    ids = book["encode_rows"](tokenizer, pairs)
    source, inputs, _ = book["to_tensors"](model, book["make_batch"](ids))
    weights = book["source_weights"](model, source, inputs).numpy()
    gaps = [
        np.abs(found[:6, : row.shape[1]] - row).max()
        for found, row in zip(weights, stored, strict=True)
    ]
    assert np.median(gaps) < 0.3


def test_roman_numbers(book):
    numbers = {1: "I", 4: "IV", 1994: "MCMXCIV", 3999: "MMMCMXCIX"}
    assert {number: book["roman"](number) for number in numbers} == numbers


# The table of changes.


def test_the_stored_changes_are_what_the_program_trains(book):
    """Each model has the stored size, and a gradient for each weight."""
    from research.changes import MODELS, make

    assert {*book["STORED_CHANGES"]} == {*MODELS}
    pairs = book["training_pairs"][:4]
    for name, changes in MODELS.items():
        model, loss, _ = make(book, changes, 0)
        weights = [*model.parameters()]
        size = sum(weight.numel() for weight in weights)
        assert size == book["STORED_CHANGES"][name][0]
        loss(model, pairs).backward()
        assert all(weight.grad is not None for weight in weights)


@pytest.mark.parametrize("name", ["2017", "Llama"])
def test_the_kit_finds_nothing_in_the_program_s_models(book, name):
    from research.changes import MODELS, make

    model, _, _ = make(book, MODELS[name], 0)
    ids = [[5, 8, 30, 9, 41, 7, 6, 12], [9, 14, 7, 6, 11, 0, 0, 0]]
    report = book["check_model"](model, ids, pad_id=0, causal=True)
    assert report.failed == []


@pytest.mark.parametrize("lost", ["▁", "<end>", "語"])
def test_what_the_tokenizer_does_not_write(book, lost):
    """The page names them, for rows of the reader's own."""
    tokenizer = book["tokenizer"]
    for text, kept in [("am 4. Mai", True), (f"am {lost} 4. Mai", False)]:
        written = tokenizer.decode(tokenizer.encode(text).ids)
        assert (written == text) == kept
