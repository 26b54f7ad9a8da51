"""Each planted bug is seen by its check; the models without it pass.

What the chapter *Testing* plants is tested there.
"""

from importlib import import_module

import pytest

from cellbycell.checks import check_model
from cellbycell.checks.bugs import read_bugs

OF_TRANSFORMERS = ["gpt2", "llama", "bert"]
MODELS = {
    "decoder learned window experts encoder both": "torch",
    " ".join(OF_TRANSFORMERS): "torch",
    "keras-decoder keras-encoder keras-both": "keras",
}
MODELS = {
    model: framework
    for models, framework in MODELS.items()
    for model in models.split()
}
BUGS = [
    pytest.param(model, bug, id=bug.name)
    for model in MODELS
    for bug in read_bugs(model).values()
    if bug.check != "nothing"
]
# A part of what a check says.
SAYS = {
    "positions begin at zero in each call with a cache": "first in places "
    "(Embedding) or in its input",
    "with a cache the window is forgotten": "difference begins at position",
    "the window is cut before all of a chunk has read": "three tokens at a "
    "time",
    "each row has the first one's mask": "each row has its own mask",
    "without a padding mask there is no causal mask": "full rows, no mask",
}


def bank_of(model):
    """Return the module that has a model."""
    pytest.importorskip("tensorflow" if model[:5] == "keras" else "torch")
    if model in OF_TRANSFORMERS:
        pytest.importorskip("transformers")
    name = "keras" if MODELS[model] == "keras" else "pytorch"
    return import_module(f"cellbycell.checks.bugs.{name}")


@pytest.mark.parametrize("model", MODELS)
def test_a_correct_model_passes(model):
    case = bank_of(model).case(model)
    if MODELS[model] == "keras":  # whose calls take longer
        checks = {bug.check for bug in read_bugs(model).values()}
        case["only"] = checks - {"nothing"}
    report = check_model(**case)
    assert report.failed == report.errors == [], report


@pytest.mark.parametrize(("model", "bug"), BUGS)
def test_a_bug_is_seen_by_its_check(model, bug):
    bank = bank_of(model)
    with bug.planted(vars(bank)):
        report = check_model(**bank.case(model), only=[bug.check])
    found = report[bug.check]
    assert found.status in ("failed", "warning", "error"), report
    assert SAYS.get(bug.name, "") in found.sentence


def test_hardly_a_bug_is_missed():
    assert len(BUGS) >= 60
