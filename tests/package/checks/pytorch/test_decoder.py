"""The decoder of the planted bugs, with changes that are correct, or small."""

from contextlib import ExitStack

import pytest

torch = pytest.importorskip("torch")

from cellbycell.checks import check_model  # noqa: E402
from cellbycell.checks.bugs import planted, pytorch  # noqa: E402

UNTURNED = ("if not learned:", "if False:")
SCORES = "scores = query @ key.mT / 8**0.5"
SOFTMAX = "scores.masked_fill(~allowed, -1e9).softmax(-1)"
SINKS = [
    (
        "self.last = Experts()",
        "self.sinks = nn.Parameter(torch.ones(1)); self.last = Experts()",
    ),
    (
        SOFTMAX,
        "torch.cat([scores.masked_fill(~allowed, -1e9), "
        "self.sinks.expand(*scores.shape[:-1], 1)], -1).softmax(-1)[..., :-1]",
    ),
]
SLOPES = (
    SCORES,
    f"{SCORES} + 0.1 * (torch.arange(key.shape[2]) - at[:, None, :, None])",
)
# The changes, and what fails, and a part of what a check says.
CHANGES = {
    "none": ([], [], "cache_consistency", "time with pads on the left"),
    "left pads": ([], [], "padding_invariance", "numbers of pads on the left"),
    "slopes": ([UNTURNED, SLOPES], [], "position_dependence", "distance"),
    "sinks": (SINKS, [], "position_dependence", "distance"),
    "sinks are no positions": (
        [UNTURNED, *SINKS],
        ["position_dependence"],
        "position_dependence",
        "no positions",
    ),
    "queries that hardly tell": (
        [(SCORES, f"{SCORES} / 99")],
        [],
        "position_dependence",
        "distance",
    ),
    "use_cache=True sees the future": (
        [
            ("use_cache=False", "use_cache=True"),
            ("(norm(x))\n", "(norm(x + use_cache * x.mean(1, True)))\n"),
        ],
        ["causality", "causality_train", "cache_consistency"],
        "causality",
        "use_cache= not given",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_told_as_it_is(name):
    changes, failed, check, says = CHANGES[name]
    with ExitStack() as stack:
        for change in changes:
            stack.enter_context(planted(pytorch.decoder, *change))
        # Decoding would give no mask to a token with the id of pads.
        case = pytorch.case("decoder") | {"decode": None}
        report = check_model(**case)
    assert report.failed == failed and report.errors == [], report
    assert says in report[check].sentence


def test_a_cache_of_ones_own_is_read_by_step():
    def step(model, ids, cache):
        found = model(ids, past_key_values=cache)
        return found.logits, found.past_key_values

    case = pytorch.case("decoder") | {"only": ["cache_consistency"]}
    case["call"] = lambda model, ids: model(ids).logits
    assert check_model(**case)["cache_consistency"].needs == "step="
    assert check_model(**case, step=step).passed == ["cache_consistency"]
    report = check_model(**case, step=lambda m, x, cache: step(m, x, None))
    assert report.failed == ["cache_consistency"]
