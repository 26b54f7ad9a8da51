"""What the kit is given: each bad argument gets a sentence that helps."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

from cellbycell.checks import (
    CHECKS,
    Failed,
    Warned,
    check_model,
    parametrize_with_checks,
)
from cellbycell.checks.model_io import as_rows, tokens_in

torch = pytest.importorskip("torch")
nn = torch.nn

IDS = [[3, 4, 5, 6, 7, 8], [9, 10, 3, 4, 0, 0]]


def model():
    """Return a model that passes: a sum over the tokens so far."""

    class Means(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.table, self.places = nn.Embedding(20, 8), nn.Embedding(8, 8)
            self.linear = nn.Linear(8, 20)

        def forward(self, input_ids):
            length = torch.arange(input_ids.shape[1])
            x = (self.table(input_ids) + self.places(length)).tanh()
            return self.linear(x + x.cumsum(1))

    return Means()


@pytest.mark.parametrize(
    ("ids", "says"),
    [
        ([[1, 2, 3], [4, 5]], "rows of 3, 2 ids: fill the shorter ones"),
        ([torch.tensor([1, 2, 3]), torch.tensor([4, 5])], "rows of 3, 2 ids"),
        (["hello world", "good bye"], "whole numbers"),
        ("hello", "whole numbers"),
        ([[1.0, 2.0]], "whole numbers"),
        (np.ones((2, 3, 4), int), "whole numbers"),
        ([], "whole numbers"),
        ({"attention_mask": [[1, 1]]}, "without input_ids"),
        ([[1, 2, -100]], "negative"),
        ([[4, 4, 4]], "two different tokens"),
    ],
)
def test_ids_that_do_not_fit(ids, says):
    with pytest.raises(ValueError, match=says):
        check_model(model(), ids)


def test_what_a_tokenizer_returns_is_taken():
    given = {"input_ids": torch.tensor(IDS), "attention_mask": torch.ones(2)}
    assert as_rows(given).tolist() == IDS
    assert as_rows([torch.tensor([1, 2]), torch.tensor([3, 4])]).shape == (
        2,
        2,
    )


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"pad_id": "0"}, TypeError, "pad_id should be a whole number"),
        ({"pad_id": False}, TypeError, "pad_id should be a whole number"),
        ({"causal": "no"}, TypeError, "causal should be True or False"),
        ({"untrained": 1}, TypeError, "untrained should be"),
        (
            {"only": ["futur"]},
            ValueError,
            "no check 'futur'; the checks are output_shape",
        ),
        ({"skip": ["x"]}, ValueError, "no check 'x'"),
        ({"skip": "x"}, ValueError, "no check 'x'"),
        (
            {"only": "padding_invariance", "skip": "padding_invariance"},
            ValueError,
            "leave no check",
        ),
        (
            {"expected_failures": ["padding_invariance"]},
            TypeError,
            "check: reason",
        ),
        ({"expected_failures": {"x": ""}}, ValueError, "no check 'x'"),
        ({"targets": [[1, 2, 3]]}, ValueError, r"targets are \(1, 3\)"),
        ({"decoder_ids": IDS[:1]}, ValueError, "decoder_ids 1: give a row"),
        ({"reference": {"a": 1}}, TypeError, "^reference should be an nn"),
    ],
)
def test_arguments_that_do_not_fit(given, error, says):
    with pytest.raises(error, match=says):
        check_model(model(), IDS, **given)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (nn.Linear, "the class Linear. Make an instance"),
        (lambda ids: ids, "give the model, and the function as call="),
        (None, "it is a NoneType"),
        ("gpt2", "it is a str"),
    ],
)
def test_what_is_no_model(given, says):
    with pytest.raises(TypeError, match=says):
        check_model(given, IDS)


def test_a_model_without_numbers():
    with pytest.raises(ValueError, match="load them first"):
        check_model(model().to("meta"), IDS)


def test_an_encoder_decoder_without_decoder_ids():
    class Pair(nn.Module):
        def forward(self, input_ids, decoder_input_ids=None):
            return input_ids

    with pytest.raises(ValueError, match="give decoder_ids"):
        check_model(Pair(), IDS)


def test_ids_by_keyword_alone():
    class Keyword(nn.Module):
        def __init__(self):
            super().__init__()
            self.inside = model()

        def forward(self, *, input_ids):
            return self.inside(input_ids)

    assert check_model(Keyword(), IDS, pad_id=0).failed == []


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        (
            "target_alignment",
            {"loss": lambda x, y: x.mean(-1)},
            "should be one number",
        ),
        (
            "target_alignment",
            {"loss": lambda x: x.mean()},
            "for logits (2, 6, 20)",
        ),
        (
            "target_alignment",
            {"loss": nn.CrossEntropyLoss()},
            "and targets (2, 6)",
        ),
        (
            "greedy_decoding",
            {"decode": lambda m, x: x[:, -1:]},
            "followed by the new ones",
        ),
        (
            "greedy_decoding",
            {"decode": lambda m, x: ["a b"]},
            "the result of decode=",
        ),
        ("output_shape", {"call": lambda m, x: m(x).tolist()}, "as a tensor"),
        ("output_shape", {"vocab_size": 50}, "vocab_size=50"),
    ],
)
def test_functions_that_do_not_fit(name, given, says):
    report = check_model(model(), IDS, pad_id=0, targets=IDS, **given)
    assert report[name].status in ("error", "failed")
    assert says in report[name].sentence


def test_what_was_assumed_of_pads_is_said():
    notes = " ".join(check_model(model(), IDS).notes)
    assert "every id counts as a token. If 0 at the end of a row" in notes
    assert "every id" not in " ".join(
        check_model(model(), IDS, pad_id=0).notes
    )


def test_a_decoder_begins_with_a_token():
    rows = np.array([[0, 5, 6, 0], [0, 0, 3, 4]])
    real = tokens_in(rows, 0, decoder=True)
    assert real.tolist() == [
        [True, True, True, False],
        [False] * 2 + [True] * 2,
    ]
    assert not tokens_in(rows, 0)[0, 0]


def test_checks_are_chosen():
    report = check_model(model(), IDS, only=["determinism", "output_shape"])
    assert [result.name for result in report] == [
        "output_shape",
        "determinism",
    ]
    skipped = ["output_shape", "duplicate_weights"]
    report = check_model(model(), IDS, skip=skipped)
    left = [name for name in CHECKS if name not in skipped]
    assert [result.name for result in report] == left


def test_failures_that_are_expected():
    leaky = model()
    whole = leaky.forward
    leaky.forward = lambda ids: whole(ids) + whole(ids).mean(1, True)
    expected = {"causality": "by design", "parameter_count": "not run"}
    report = check_model(leaky, IDS, expected_failures=expected)
    assert (
        "causality" in report.warnings
        and "prefix_consistency" in report.failed
    )
    assert report["parameter_count"].status == "not run"
    assert report["causality"].sentence.startswith(
        "Expected (by design): Changing"
    )
    report = check_model(
        model(), IDS, expected_failures={"position_dependence": "by design"}
    )
    assert report.ok and report.warnings == ["position_dependence"]
    assert (
        "Expected to fail (by design), but passed"
        in report["position_dependence"].sentence
    )


def test_reasons_may_come_from_a_function():
    def reason(name):
        return "by design" if name == "position_dependence" else None

    report = check_model(model(), IDS, expected_failures=reason)
    assert report.warnings == ["position_dependence"]


def test_checks_of_ones_own_are_asked_like_others():
    def is_small(context):
        size = sum(values.size for _, values in context.model.weights())
        if size > 10**6:
            raise Failed(f"There are {size:,} weights.")
        return f"There are {size:,} weights."

    def is_never_right(context):
        raise Warned(f"Ids are {context.rows.shape}.")

    own = [is_small, is_never_right]
    report = check_model(model(), IDS, also=own, skip=["determinism"])
    assert report["is_small"].status == "passed"
    assert report.warnings[-1] == "is_never_right"
    assert "determinism" not in [result.name for result in report]
    only = check_model(model(), IDS, also=own, only="is_never_right")
    assert len(only) == 1
    with pytest.raises(ValueError, match="is a check of your own"):
        only.explain("is_never_right")
    for wrong, error in (([is_small, is_small], ValueError), ("x", TypeError)):
        with pytest.raises(error):
            check_model(model(), IDS, also=wrong)


def test_an_error_is_said_once():
    report = check_model(model(), [[3, 4, 99, 5]])
    assert report.errors == ["output_shape"]
    assert isinstance(report["output_shape"].error, IndexError)
    assert (
        report["causality"].sentence
        == "the model raises an error; see output_shape."
    )


def test_each_check_is_a_test_of_pytest(tmp_path):
    test = tmp_path / "test_mine.py"
    test.write_text(
        "from tests_of_arguments import IDS, model\n"
        "from cellbycell.checks import parametrize_with_checks\n"
        "def leaky():\n"
        "    made = model()\n"
        "    made.linear.forward = lambda x: x + x.mean(1, True)\n"
        "    return made\n"
        "@parametrize_with_checks({\n"
        "    'mine': lambda: dict(model=model(), token_ids=IDS, pad_id=0),\n"
        "    'wrong': lambda: dict(model=leaky(), token_ids=IDS, pad_id=0),\n"
        "})\n"
        "def test_transformer(check):\n"
        "    check()\n"
    )
    here = open(__file__, encoding="utf-8").read()
    (tmp_path / "tests_of_arguments.py").write_text(here)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    said = subprocess.run(
        [*command, str(test)], cwd=tmp_path, capture_output=True, text=True
    ).stdout
    assert "test_transformer[wrong-causality]" in said
    assert "FAILED" in said and "mine-" not in said
    assert "skipped" in said and "CheckFailed" in said


def test_a_warning_of_a_check_is_one_of_python():
    unused = model()
    unused.more = nn.Linear(2, 2)
    expected = {"output_shape": "too many"}
    given = dict(token_ids=IDS, pad_id=0, vocab_size=5)
    decorate = parametrize_with_checks(
        {"it": lambda: dict(model=unused, expected_failures=expected, **given)}
    )
    checks = {p.id: p.values[0] for p in decorate.args[1]}
    with pytest.warns(UserWarning, match="gradient_flow: .*more.weight"):
        checks["it-gradient_flow"]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checks["it-causality"]()
    with pytest.raises(pytest.xfail.Exception, match="too many"):
        checks["it-output_shape"]()


def test_a_test_runs_its_own_check_alone():
    ran = []

    def seen(context):
        ran.append("seen")
        return "seen"

    def other(context):
        raise AssertionError

    decorate = parametrize_with_checks(
        {"it": lambda: dict(model=model(), token_ids=IDS, skip=["causality"])},
        also=[seen, other],
    )
    checks = {p.id: p.values[0] for p in decorate.args[1]}
    checks["it-seen"]()
    assert ran == ["seen"]
    with pytest.raises(pytest.skip.Exception, match="left out"):
        checks["it-causality"]()


def test_a_model_says_of_itself_what_calls_would_repeat():
    tagged = model()
    tagged.check_tags = {"pad_id": 0, "expected_failures": {"causality": "so"}}
    report = check_model(tagged, IDS, only=["causality", "padding_invariance"])
    assert "pass" in report["causality"].sentence
    assert report["padding_invariance"].status != "not run"
    tagged.check_tags = {"causal": False}
    report = check_model(tagged, IDS, only="causality")
    assert report["causality"].status == "not run"
    for wrong in ({"pads": 0}, ["pad_id"]):
        tagged.check_tags = wrong
        with pytest.raises(ValueError, match="check_tags .* at most"):
            check_model(tagged, IDS)


@pytest.mark.parametrize("name", ["loss", "decode", "step", "call"])
def test_what_is_no_function_is_refused(name):
    with pytest.raises(TypeError, match=f"{name} should be a function"):
        check_model(model(), IDS, **{name: True})


def test_decode_says_how_it_is_called():
    report = check_model(model(), IDS, decode=lambda ids: ids)
    said = report["greedy_decoding"].sentence
    assert "decode= is called as decode(model, ids)" in said
