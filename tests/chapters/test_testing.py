"""The chapter on testing: its questions and its bugs."""

import numpy as np
import pytest
import torch

from cellbycell.checks import CHECKS

pytestmark = pytest.mark.xdist_group("frameworks")


@pytest.mark.parametrize("kind", [int, np.bool_, np.array])
def test_true_and_false_of_any_kind_are_taken(book, kind):
    solution = book["is_causal_solution"]
    verdict = book["check_is_causal"](lambda *given: kind(solution(*given)))
    assert verdict == "Exercise 2: correct."


@pytest.mark.parametrize("kind", [list, frozenset, iter])
def test_names_of_any_kind_are_taken(book, kind):
    solution = book["fewest_solution"]
    verdict = book["check_fewest"](lambda seen: kind(solution(seen)))
    assert verdict == "Exercise 4: correct."


# What the chapter's functions promise


def test_a_planted_bug_is_gone_afterwards(book):
    """Also if the block raises, and with another bug in the same function."""
    attend = book["book"].attend
    before = attend.__code__

    def planted(name):
        return book["BUGS"][name].planted(book["space"])

    query, key = torch.zeros(3, 2), torch.zeros(2, 2)
    with pytest.raises(ArithmeticError):
        with planted("softmax over the queries"):
            with planted("blocked scores are 1e-9"):
                weights = attend(query, key, key, torch.zeros(3, 2).bool())[1]
                assert torch.allclose(weights, torch.tensor(1 / 3))
            weights = attend(query, key, key)[1]
            assert torch.allclose(weights, torch.tensor(1 / 3))
            raise ArithmeticError
    assert attend.__code__ is before


@pytest.mark.parametrize("old", ["no such piece", "query"])
def test_a_piece_has_to_stand_there_once(book, old):
    with pytest.raises(ValueError, match="is there"):
        with book["planted"](book["book"].attend, old, ""):
            pass


def test_every_bug_can_be_planted(book):
    for bugs, space in (("BUGS", "space"), ("BUGS_TF", "space_tf")):
        for bug in book[bugs].values():
            with bug.planted(book[space]):
                assert bug.old != bug.new


def test_the_bank_says_which_check_sees_each_bug(book):
    seen, missed = book["seen"], book["unseen"]
    for name, bug in book["BUGS"].items():
        if bug.check == "nothing":
            assert name in missed
        else:
            assert name in seen[bug.check]


def logits_with(book, bug, space, model, ask, ids, error):
    """Return the logits of a model with a bug; None if it raises."""
    with bug.planted(book[space]):
        if bug.place.endswith("__init__"):
            kind, twin = type(model), type(model).__name__[-2:] == "TF"
            model = kind(13, 2, 12, 3, 20)
            book["draw_model_tf" if twin else "draw_model"](model, seed=6)
        try:
            return ask(model, *ids)
        except error:
            return None


def test_bugs_give_the_same_wrong_logits_in_both_frameworks(book):
    """Of the models; dropout is drawn, and training and decoding differ."""
    ids = book["source_ids"], book["input_ids"]
    own = {"loss_over_tokens", "shift_by_one", "greedy_decode", "overfit"}
    names = [n for n, bug in book["BUGS"].items() if bug.place not in own]
    names.remove("dropout in evaluation")
    assert len(names) == 46 and len(book["BUGS"]) == 54
    assert book["BUGS"].keys() - book["BUGS_TF"] == {"gradients never cleared"}
    for name in names:
        wrong = logits_with(
            book,
            book["BUGS"][name],
            "space",
            book["model"],
            book["ask"],
            ids,
            RuntimeError,
        )
        twin = logits_with(
            book,
            book["BUGS_TF"][name],
            "space_tf",
            book["model_tf"],
            book["ask_tf"],
            ids,
            book["tf"].errors.InvalidArgumentError,
        )
        if wrong is None or twin is None:
            assert wrong is twin, name
        else:
            assert np.allclose(wrong, twin, atol=1e-4, equal_nan=True), name


def test_the_kit_says_the_same_of_the_tensorflow_model(book):
    with book["BUGS_TF"]["no causal mask"].planted(book["space_tf"]):
        found = book["check_model"](
            book["model_tf"],
            book["source_ids"],
            book["input_ids"],
            pad_id=0,
            targets=book["target_ids"],
            loss=book["loss_over_tokens_tf"],
        ).failed
    wanted = book["reports"]["no causal mask"].failed
    assert found == [check for check in wanted if check != "reference_parity"]


def test_pytest_would_run_the_three_models_and_fail_none(book):
    for name in ("test_transformer", "test_transformer_tf"):
        (mark,) = book[name].pytestmark
        ran = 0
        for case in mark.args[1]:
            try:
                book[name](*case.values)
            except pytest.skip.Exception:
                continue
            ran += 1
        assert ran > 40


@pytest.mark.parametrize("seed", [0, 1])
def test_a_correct_model_passes_with_other_weights(book, monkeypatch, seed):
    """All checks that the chapter asks."""
    new = book["new_model"]
    monkeypatch.setitem(book, "new_model", lambda layers: new(layers, seed))
    report = book["ask_everything"](num_layers=2)
    wanted = [c for c in CHECKS if c not in NOT_ASKED]
    assert report.passed == wanted


# Of a model without a cache, and of how a model trains.
NOT_ASKED = {"cache_consistency", "training_gradients", "weights_move"}
# The bugs that torchtest2 0.1.0 saw when it was asked about each of the 54.
TORCHTEST2 = """softmax over the queries
mask inverted
dropout in evaluation
one projection for query and key
no output projection
norm without shift
no residual connection
no norm
the last layer is skipped
no norm after the stack
decoder reads itself
memory never read
queries masked, not keys
memory detached
causal mask without diagonal
softmax before the loss"""


def test_five_questions_see_what_torchtest2_sees(book):
    found = book["together"](book["like_torchtest2"], book["seen"])
    assert found == {*TORCHTEST2.split("\n")}


def test_the_matrix_has_every_check_once(book):
    """Except those that the chapter does not ask."""
    groups = sum(book["GROUPS"].values(), [])
    assert sorted([*groups, *NOT_ASKED]) == sorted(CHECKS)


def test_a_library_is_told_from_a_model_with_another_weight(book):
    model, gap = book["new_model"](), book["gap"]
    assert gap(model) < 1e-5
    with book["BUGS"]["no ReLU"].planted(book["space"]):
        assert gap(model) > 1e-2
