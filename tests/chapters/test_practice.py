"""The chapter on a model at work: its rows and its functions."""

import datetime
import math

import numpy as np
import pytest
import torch

from cellbycell.breaks import ask_smol
from cellbycell.smol import read_smol
from tools.settings import without_model

pytestmark = pytest.mark.xdist_group("frameworks")


# The rows.


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
    texts = ["a", " a b", "1-2, é", "d  c"]
    assert (
        tokenizer.decode_batch(book["encode_texts"](tokenizer, texts)) == texts
    )


# The training.


def test_rate_rises_and_falls_to_zero(book):
    shares = [book["rate_share"](step, 400) for step in range(1, 401)]
    assert shares[0] == 1 / 50 and max(shares) < 1
    assert shares[199] == pytest.approx(0.5) and shares[-1] < 1e-9
    assert 40 < np.argmax(shares) < 50


@pytest.fixture(params=["", "_tf"])
def small(request, book, tmp_path):
    """Return two functions: one makes a small model, the other trains it."""
    kind, pairs = request.param, book["validation_pairs"]

    def make(seed=0, **changes):
        return book[f"make_model{kind}"](book["small"] | changes, seed)

    def fit(model, rows=pairs[:120], **how):
        how = dict(num_steps=2, every=1) | how
        return book[f"fit{kind}"](
            model, rows, pairs[:20], tmp_path / "run", **how
        )

    return make, fit


def weights_of(model):
    """Return a model's weights as arrays."""
    if hasattr(model, "get_weights"):
        return model.get_weights()
    return [weight.detach().numpy() for weight in model.parameters()]


def test_both_frameworks_take_the_same_first_steps(book, tmp_path):
    """In float64, whose rounding does not show in ten steps."""
    policy = book["keras"].config.set_dtype_policy
    policy("float64")
    try:
        twin = book["make_model_tf"](book["sizes"])
    finally:
        policy("float32")
    models = {
        "fit": book["make_model"](book["sizes"]).double(),
        "fit_tf": twin,
    }
    some = book["training_pairs"], book["validation_pairs"][:50]
    found = [
        book[fit](model, *some, tmp_path / fit, 10, every=1, patience=10)
        for fit, model in models.items()
    ]
    losses = [[loss for _, loss, *_ in history] for history in found]
    assert np.allclose(*losses, rtol=0, atol=1e-5)


def test_fit_stops_early_and_keeps_the_best_weights(small):
    """With a rate of zero no loss is lower than the first."""
    make, fit = small
    brief = dict(num_steps=6, patience=2, peak=0.0)
    model, again = make(), make(seed=3)
    first = [weight.copy() for weight in weights_of(model)]
    history = fit(model, **brief)
    assert [step for step, *_ in history] == [1, 2, 3]
    assert all(map(np.array_equal, weights_of(model), first))
    # It has ended, so that one more call changes nothing.
    assert fit(again, **brief) == history
    assert all(map(np.array_equal, weights_of(again), first))


def test_fit_goes_on_with_the_same_rows_and_arguments_alone(book, small):
    make, fit = small
    fit(make())
    for sizes, how in [
        ({}, {"rows": book["validation_pairs"][1:121]}),
        ({}, {"batch_size": 7}),
        ({}, {"peak": 1.0}),
        ({"d_ff": 64}, {}),
        ({"dropout": 0.2}, {}),
    ]:
        with pytest.raises(ValueError, match="another training's"):
            fit(make(**sizes), **how)


def test_a_loss_that_is_not_finite_is_named(small):
    make, fit = small
    with pytest.raises(FloatingPointError, match="not a finite number"):
        fit(make(), peak=math.inf)


@pytest.mark.parametrize("text", ["", "MM🎉", "<pad>", "M▁", "<unk>"])
def test_the_program_refuses_what_encode_texts_refuses(
    book, text, tmp_path, monkeypatch
):
    """It is refused before a model is read, so the tokenizer is enough."""
    with pytest.raises(ValueError):
        book["encode_texts"](book["own_tokenizer"], [text])
    book["own_tokenizer"].save(str(tmp_path / "tokenizer.json"))
    monkeypatch.setattr("sys.argv", ["-c", str(tmp_path), text])
    for program in ("PROGRAM", "PROGRAM_TF"):
        with pytest.raises(SystemExit, match="no ids for"):
            exec(book[program], {})


def test_a_kill_while_saving_leaves_the_file_before(
    book, tmp_path, monkeypatch
):
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    save, load = book["save_run"], book["load_run"]
    run = book["new_run"](1)
    save(tmp_path / "run", model, optimizer, run | {"step": 5})

    def half(state, path):
        open(path, "w").close()
        raise KeyboardInterrupt

    monkeypatch.setattr(torch, "save", half)
    with pytest.raises(KeyboardInterrupt):
        save(tmp_path / "run", model, optimizer, run | {"step": 10})
    load(tmp_path / "run", model, optimizer, run)
    assert run["step"] == 5


def test_parts_take_the_step_of_the_whole_batch(book):
    model = book["make_model"](book["sizes"]).double()
    pairs, gradient_of = book["training_pairs"][:200], book["gradient_of"]
    whole, added = (gradient_of(model, pairs, parts=n) for n in (1, 7))
    assert torch.allclose(added, whole, rtol=1e-9, atol=1e-12)


def test_batches_go_on_where_they_stopped(book):
    pairs = [([5] * (1 + n % 9), [2]) for n in range(100)]
    straight = book["batches_from"](pairs, 7)
    straight = [next(straight) for _ in range(50)]
    for done in (0, 1, 14, 15, 16, 33, 45):
        later = book["batches_from"](pairs, 7, done=done)
        assert [next(later) for _ in range(50 - done)] == straight[done:]


@pytest.mark.parametrize("kind", ["", "_tf"])
def test_a_folder_writes_what_was_saved(book, kind, tmp_path):
    sizes = book["sizes"] | {"vocab_size": book["vocab_size"]}
    model = book[f"make_model{kind}"](sizes, seed=4)
    book[f"save_model{kind}"](tmp_path, model, book["tokenizer"], sizes)
    loaded, tokenizer = book[f"load_model{kind}"](tmp_path)
    assert all(map(np.array_equal, weights_of(loaded), weights_of(model)))
    assert tokenizer.to_str() == book["tokenizer"].to_str()


@pytest.mark.parametrize("kind", ["", "_tf"])
def test_answers_that_cannot_be_divided_are_named(book, kind, tmp_path):
    rows = [(f"{n} ?", "yes" if n % 2 else "no") for n in range(99)]
    with pytest.raises(ValueError, match="try by=0"):
        book[f"train_on{kind}"](rows, tmp_path)


def test_roman_numbers(book):
    numbers = {1: "I", 4: "IV", 1994: "MCMXCIV", 3999: "MMMCMXCIX"}
    assert {number: book["roman"](number) for number in numbers} == numbers


# The changes.

asks_smol = pytest.mark.skipif(bool(without_model()), reason="no model file")


@asks_smol
def test_a_curve_costs_more_than_a_block():
    """As *Break a real one* tells it; and no answer hangs by a hair."""
    curve = ask_smol("F.silu(", "F.gelu(")
    block = ask_smol("(self.blk)", "(self.blk[:10] + self.blk[11:])")
    whole = ask_smol()
    assert curve.loss - whole.loss > 2 * (block.loss - whole.loss) > 0.5
    assert "Paris" not in curve.answer and "Paris" in block.answer
    assert min(curve.gap, block.gap, whole.gap) > 0.02


@asks_smol
def test_the_curve_hardly_shows_in_one_block_alone():
    """*Break a real one* says so, and that all cost more than the sum."""
    tensors = read_smol()[1]
    whole, costs = ask_smol().loss, []
    for i in range(30):
        first = float(tensors[f"blk.{i}.ffn_gate.weight"][0, 0])
        here = f"self.ffn_gate.weight[0, 0].item() == {first!r}"
        once = f"(F.gelu if {here} else F.silu)("
        costs.append(ask_smol("F.silu(", once).loss - whole)
    assert 0.03 < max(costs) < 0.1
    assert sum(costs) < 0.7 * (ask_smol("F.silu(", "F.gelu(").loss - whole)


def test_the_stored_changes_are_what_the_program_trains(book):
    """Each model has the stored size, and a gradient for each weight."""
    from benchmarks.changes import MODELS, make

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
    from benchmarks.changes import MODELS, make

    model, _, _ = make(book, MODELS[name], 0)
    ids = [[5, 8, 30, 9, 41, 7, 6, 12], [9, 14, 7, 6, 11, 0, 0, 0]]
    report = book["check_model"](model, ids, pad_id=0, causal=True)
    assert report.failed == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "'' is not a string"),
        (7, "7 is not a string"),
        ("am ▁ 4. Mai", "Replace ▁ in"),
        ("<pad>", "Replace <pad> in"),
        ("<start> 4", "Replace <start> in"),
        ("4. Mai <end>", "Replace <end> in"),
        ("4. <unk>", "Replace <unk> in"),
        ("4. Mai 🎉", r"has \{'🎉'\}: '4. Mai 🎉'"),
        ("29 июня", "has "),
    ],
)
def test_texts_without_ids_are_refused_by_name(book, text, says):
    tokenizer = book["tokenizer"]
    assert len(book["encode_texts"](tokenizer, ["am 4. Mai"])) == 1
    for rows in ([(text, "2026-05-04")], [("4. Mai", text)]):
        with pytest.raises(ValueError, match=says):
            book["encode_rows"](tokenizer, rows)
    with pytest.raises(ValueError, match=says):
        book["write"](None, tokenizer, ["4. Mai", text])
