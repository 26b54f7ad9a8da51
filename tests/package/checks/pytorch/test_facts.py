"""What models of other people showed: each test failed before.

Wrong models that passed, correct ones that failed, and misleading words.
"""

import copy
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from cellbycell import checks
from cellbycell.checks import where_it_differs

check_model = partial(checks.check_model, pad_id=0)
IDS = [[3, 4, 5, 6, 7, 8, 9, 10], [11, 12, 3, 4, 5, 0, 0, 0]]
TARGETS = [[4, 5, 6, 7, 8, 9, 10, 0], [12, 3, 4, 5, 0, 0, 0, 0]]
LEAK = {"causality", "causality_train", "causality_grad", "prefix_consistency"}


def cross_entropy(logits, targets, **options):
    options = {"ignore_index": 0} | options
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), **options)


# Weights that hide the layers before them


def zero_head(model):
    nn.init.zeros_(model.linear.weight)


def tiny_branches(model):
    for layer in model.layers:
        layer.last.weight.data *= 1e-6


@pytest.mark.parametrize("begin", [zero_head, tiny_branches])
def test_weights_that_begin_at_zero_hide_nothing(models, begin):
    correct, leaky = models.Model(depth=2), models.Model(64, depth=2)
    begin(correct), begin(leaky)
    report = check_model(correct, IDS)
    assert report.failed == report.errors == []
    assert "Initialised in the copy" in " ".join(report.notes)
    assert LEAK <= {*check_model(leaky, IDS).failed}


def test_a_scale_of_layers_near_zero_hides_nothing(models):
    class Scaled(models.Model):
        def __init__(self, **options):
            super().__init__(**options)
            self.gates = nn.Parameter(torch.full((1,), 1e-6))

        def forward(self, ids):
            x = self.embed(ids)
            return self.linear(self.norm(x + self.gates * self.layers[0](x)))

    assert check_model(Scaled(), IDS).failed == []
    assert LEAK <= {*check_model(Scaled(block=64), IDS).failed}


# Positions


@pytest.mark.parametrize("tied", [False, True])
def test_missing_positions_are_found_in_tied_models(models, tied):
    without = models.Model(positions=False, tied=tied, depth=2)
    assert check_model(without, IDS).failed == ["position_dependence"]
    zeros = models.Model(tied=tied, depth=2)
    nn.init.zeros_(zeros.places.weight)
    assert check_model(zeros, IDS).failed == ["position_dependence"]


# Losses


def hf_loss(logits, labels):
    return cross_entropy(logits[:, :-1], labels[:, 1:])


def test_targets_of_minus_100_are_no_targets(models):
    targets = [[y or -100 for y in row] for row in TARGETS]
    loss = partial(cross_entropy, ignore_index=-100)
    asked = {"targets": targets, "untrained": True}
    report = check_model(models.Model(), IDS, loss=loss, **asked)
    assert {"target_alignment", "loss_padding_invariance", "initial_loss"} <= {
        *report.passed
    }
    assert {"target_alignment", "initial_loss"} <= {
        *check_model(models.Model(), IDS, **asked).passed
    }


@pytest.mark.parametrize(
    ("targets", "loss", "says"),
    [
        (IDS, hf_loss, ""),
        (TARGETS, cross_entropy, ""),
        (IDS, cross_entropy, "token that it reads"),
        (TARGETS, hf_loss, "shifts them again"),
        ([row[2:] + [0, 0] for row in IDS], cross_entropy, "after the next"),
        (
            [[2, *row[:-1]] for row in IDS[:1]] + [[2, 11, 12, 3, 4, 0, 0, 0]],
            cross_entropy,
            "previous token",
        ),
        (TARGETS[::-1], cross_entropy, "from the same row"),
        (
            TARGETS,
            lambda x, y: cross_entropy(x[:, :2], y[:, :2]),
            "not trained",
        ),
        (TARGETS, lambda x, y: cross_entropy(x, y, ignore_index=10), "pads"),
        (TARGETS, lambda x, y: cross_entropy(x.detach(), y), "detached"),
        (
            TARGETS,
            partial(cross_entropy, ignore_index=-1, label_smoothing=0.1),
            "pads are trained",
        ),
    ],
)
def test_the_loss_aims_at_the_next_token(models, targets, loss, says):
    asked = {"targets": targets, "loss": loss, "only": ["target_alignment"]}
    result = check_model(models.Model(), IDS, **asked)["target_alignment"]
    assert result.status == ("failed" if says else "passed"), result
    assert says in result.sentence


def test_an_end_that_is_left_out_is_found(models):
    """Rows that end in 10 and 5, whose ends were taken for pads."""
    targets = [[4, 5, 6, 7, 8, 9, -100, -100], [12, 3, 4, -100] + 4 * [-100]]
    asked = {"targets": targets, "only": ["target_alignment"]}
    assert check_model(models.Model(), IDS, **asked).failed == [
        "target_alignment"
    ]
    answers = np.array(TARGETS)
    answers[:, :2] = -100  # the prompt, on purpose
    asked["targets"] = answers
    assert check_model(models.Model(), IDS, **asked).passed == [
        "target_alignment"
    ]


@pytest.mark.parametrize(("shifts", "targets"), [(1, IDS), (0, TARGETS)])
def test_a_model_that_takes_labels_is_asked_itself(models, shifts, targets):
    class Labelled(models.Model):
        def forward(self, ids, labels=None):
            logits, loss = super().forward(ids), None
            if labels is not None:
                there = labels[:, shifts:]
                loss = cross_entropy(logits[:, : there.shape[1]], there)
            return SimpleNamespace(loss=loss, logits=logits)

    ask = partial(check_model, untrained=True, overfit=True)
    names = {
        "target_alignment",
        "loss_padding_invariance",
        "initial_loss",
        "overfit_one_batch",
    }
    assert names <= {*ask(Labelled(), IDS, targets=targets).passed}
    other = TARGETS if shifts else IDS
    assert "target_alignment" in ask(Labelled(), IDS, targets=other).failed


def test_smoothed_labels_can_be_overfit(models):
    loss = partial(cross_entropy, label_smoothing=0.1)
    asked = {"targets": TARGETS, "loss": loss, "overfit": True}
    assert (
        "overfit_one_batch" in check_model(models.Model(), IDS, **asked).passed
    )


# Words that mislead


@pytest.mark.parametrize(
    ("output", "says"),
    [
        (lambda x: x[:, -1:], "last position only"),
        (lambda x: x[:, 0, :2], "classifier"),
        (lambda x: x.mT, "last two axes are exchanged"),
        (lambda x: x.transpose(0, 1), "batch_first"),
    ],
)
def test_a_shape_is_explained(models, output, says):
    report = check_model(models.Wrapped(output), IDS)
    assert (
        report.failed == ["output_shape"]
        and says in report["output_shape"].sentence
    )


def test_a_nan_is_told_by_its_weight(models):
    for name in ("layers.0.last.weight", "table.weight"):
        model = models.Model()
        model.get_parameter(name).data[-1] = torch.nan
        report = check_model(model, IDS)
        assert report.failed == ["output_shape"]
        assert name in report["output_shape"].sentence


def test_norms_of_zero_are_a_warning_of_shape(models):
    model = models.Model()
    nn.init.zeros_(model.norm.weight)
    nn.init.zeros_(model.norm.bias)
    report = check_model(model, IDS)
    assert report.failed == [] and report.warnings == ["output_shape"]
    assert "equal for all tokens" in report["output_shape"].sentence


def test_a_module_that_is_called_twice_is_compared_call_by_call(models):
    model = models.Model(depth=2)
    model.layers[1] = model.layers[0]
    other = copy.deepcopy(model)
    rows = where_it_differs(model, other, IDS, pad_id=0)
    assert [row.change for row in rows] == [0] * len(rows)
    assert "layers.0, call 2" in [row.module for row in rows]
    other.linear.weight.data *= 1.1
    sentence = check_model(model, IDS, reference=other)[
        "reference_parity"
    ].sentence
    assert "first module to differ is linear (" in sentence


class OverTime(nn.Module):
    """What a norm, or a router, over the positions does."""

    def forward(self, x):
        return x - 0.1 * x.mean(1, keepdim=True)


@pytest.mark.parametrize(
    ("name", "says"), [("TimeNorm", "one token"), ("Router", "chooses")]
)
def test_a_leak_names_its_module(models, name, says):
    model = models.Model(depth=2)
    kind = type(name, (OverTime,), {})
    model.layers.insert(1, kind())
    report = check_model(model, IDS)
    sentence = report["causality"].sentence
    assert f"first in layers.1 ({name})" in sentence and says in sentence
    assert (
        "It does so in evaluation mode" in report["causality_train"].sentence
    )


def test_batch_norm_is_named(models):
    class Normed(models.Model):
        def __init__(self):
            super().__init__()
            self.batch = nn.BatchNorm1d(20)

        def forward(self, ids):
            return self.batch(super().forward(ids).mT).mT

    report = check_model(Normed(), IDS)
    assert report.failed == ["causality_train"]
    assert "first in batch (BatchNorm1d)" in report["causality_train"].sentence


# Reach


@pytest.mark.parametrize("way", ["back", "both", "ahead"])
def test_a_two_way_model_looks_both_ways(models, way):
    class Way(models.Masked):
        def forward(self, ids):
            x = self.embed(ids)
            past = self.layers[0].allowed(x)
            allowed = {"back": past, "ahead": past.mT, "both": past | True}
            layer = self.layers[0](x, allowed[way])
            return self.linear(self.norm(x + layer))

    report = check_model(Way(), IDS, pad_id=None, causal=False)
    assert ("token_influence" in report.failed) is (way != "both")
    assert way != "both" or report.failed == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda x: x.roll(1, dims=1), "its own output"),
        (lambda x: x * (torch.arange(x.shape[1]) != 3)[:, None], "position 3"),
    ],
)
def test_a_token_that_moves_nothing_is_found(models, change, says):
    model = models.Model(change=change)
    assert says in check_model(model, IDS[:1])["token_influence"].sentence
