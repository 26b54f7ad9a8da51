"""What models of other people showed: each test failed before.

Wrong models that passed, correct ones that failed, and misleading words.
"""

import copy
import threading
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

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


# What is asked is the model that was given


def as_compiled(model):
    model.forward = torch.compile(model.forward, backend="eager")


def as_closure(model):
    old = model.forward
    model.forward = lambda ids: old(ids)


@pytest.mark.parametrize("change", [as_compiled, as_closure])
def test_another_forward_runs_on_what_is_asked(models, change):
    model = models.Model()
    change(model)
    before = copy.deepcopy(model.state_dict())
    report = check_model(model, IDS)
    assert report.failed == report.errors == []
    leaky = models.Model(block=64)
    change(leaky)
    assert LEAK <= {*check_model(leaky, IDS).failed}
    after = model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_call_of_another_model_is_seen(models):
    model, other = models.Model(), models.Model()
    report = check_model(model, IDS, call=lambda _, ids: model(ids))
    assert report.failed == report.errors == []
    assert "tests the model itself" in " ".join(report.notes)
    with pytest.raises(ValueError, match="does not call the model"):
        check_model(model, IDS, call=lambda _, ids: other(ids))


# Masks


class Wrapper(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *args, **kwargs):
        return self.model(*args, **kwargs)


@pytest.fixture
def both_ways(models):
    """Return a two-way model that blocks pads, with another mask's name."""

    def make(name, pads=False, honest=True):
        class TwoWay(models.Masked):
            def forward(self, ids, attention_mask=None):
                x = self.embed(ids)
                allowed = torch.ones(len(x[0]), len(x[0])).bool()
                if attention_mask is not None and honest:
                    real = attention_mask.bool()
                    real = ~real if pads else real
                    allowed = allowed & real[:, None]
                return self.linear(self.norm(x + self.layers[0](x, allowed)))

        space = {"TwoWay": TwoWay}
        exec(
            "class Named(TwoWay):\n"
            f"    def forward(self, ids, {name}=None):\n"
            f"        return super().forward(ids, {name})",
            space,
        )
        return space["Named"]()

    return make


@pytest.mark.parametrize(
    ("name", "pads"),
    [
        ("attention_mask", False),
        ("src_key_padding_mask", True),
        ("encoder_padding_mask", True),
        ("encoder_padding_mask", False),
        ("mask", False),
        ("src_mask", True),
        ("pad_mask", True),
        ("input_mask", False),
    ],
)
def test_a_mask_of_either_kind_is_given(both_ways, name, pads):
    report = check_model(both_ways(name, pads), IDS, causal=False)
    assert report.failed == report.errors == [], report
    notes = " ".join(report.notes)
    assert f"gets {name}" in notes and notes.count("rounding") == 1


def test_a_wrapper_takes_the_masks_of_the_model_inside(both_ways):
    model = Wrapper(Wrapper(both_ways("attention_mask")))
    report = check_model(model, IDS, causal=False)
    assert report.failed == report.errors == []


def test_a_mask_that_cannot_be_given_is_no_failure(both_ways):
    model = both_ways("src_mask", honest=False)
    report = check_model(model, IDS, causal=False)
    assert report.failed == []
    assert (
        "cannot tell what True means" in report["padding_invariance"].sentence
    )


# Experts


class Experts(nn.Module):
    """A layer in which each token has one expert, with dropout inside."""

    def __init__(self, rate, number=4):
        super().__init__()
        self.router = nn.Linear(16, number)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(16, 16), nn.Dropout(rate))
            for _ in range(number)
        )

    def forward(self, x):
        shares, chosen = self.router(x).softmax(-1).max(-1)
        y = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            here = chosen == number
            if here.any():
                y[here] = expert(x[here]) * shares[here][:, None]
        return y


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_dropout_of_experts_is_no_leak(models, rate):
    model = models.Model(depth=1)
    model.layers.append(Experts(rate))
    assert check_model(model, IDS).failed == []


def test_experts_without_a_token_are_no_failure(models):
    model = models.Model(depth=1)
    model.layers.append(Experts(0.0, number=40))
    report = check_model(model, IDS)
    assert report.failed == report.warnings == []
    assert "Experts without a token" in report["gradient_flow"].sentence


# What cannot be asked, and what is harmless


def test_frozen_tables_may_be_equal(models):
    model = models.Model()
    model.again = nn.Embedding(20, 16)
    model.again.weight = nn.Parameter(
        model.table.weight.detach().clone(), requires_grad=False
    )
    assert check_model(model, IDS)["duplicate_weights"].status == "passed"


def test_a_table_that_was_copied_is_told_from_a_seed(models):
    model = models.Model()
    model.linear.weight = nn.Parameter(model.table.weight.detach().clone())
    assert (
        "not tied to it"
        in check_model(model, IDS)["duplicate_weights"].sentence
    )


def test_equal_layers_of_a_new_model_are_a_warning(models):
    twins = models.Model(depth=2)
    twins.layers[1].load_state_dict(twins.layers[0].state_dict())
    assert check_model(twins, IDS, untrained=True).warnings == [
        "duplicate_weights"
    ]


def test_ids_may_be_viewed(models):
    class Viewed(models.Model):
        def forward(self, ids):
            return super().forward(ids.view(-1).view(ids.shape))

    assert check_model(Viewed(), IDS).errors == []


def test_a_model_of_one_length_is_asked_what_it_can(models):
    class Fixed(models.Model):
        def forward(self, ids):
            if ids.shape[1] != 8:
                raise ValueError("eight tokens")
            return super().forward(ids)

    report = check_model(Fixed(), IDS)
    assert report.failed == report.errors == []
    assert "rows of 2 tokens raise" in report["prefix_consistency"].sentence
    assert LEAK - {"prefix_consistency"} <= {
        *check_model(Fixed(block=64), IDS).failed
    }


def test_checkpointed_layers_have_gradients(models):
    class Checkpointed(models.Model):
        def forward(self, ids):
            x = self.embed(ids)
            x = x + checkpoint(self.layers[0], x, use_reentrant=True)
            return self.linear(self.norm(x))

    report = check_model(Checkpointed(), IDS)
    assert {"gradient_flow", "causality_grad"} <= {*report.passed}


def test_a_gradient_that_cannot_be_computed_is_not_asked(models):
    class NoGradient(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            raise NotImplementedError("no backward here")

    model = models.Wrapped(NoGradient.apply)
    report = check_model(model, IDS)
    assert report.failed == report.errors == []
    assert "no backward here" in report["gradient_flow"].sentence


def test_torchscript_is_asked():
    model = torch.jit.script(
        nn.Sequential(nn.Embedding(20, 16), nn.Linear(16, 20))
    )
    report = check_model(model, IDS, causal=False)
    assert report.errors == [] and "context_dependence" in report.failed


def test_threads_wait_for_each_other(models):
    model, reports = models.Model(), []
    thread = threading.Thread(
        target=lambda: reports.append(check_model(model, IDS))
    )
    with checks.ONE_AT_A_TIME:
        thread.start()
        thread.join(0.5)
        assert reports == []
    thread.join()
    assert reports[0].failed == []


@pytest.mark.parametrize("block", [1, 64])
def test_half_precision_inside_hides_no_leak(models, block):
    class Auto(models.Model):
        def forward(self, ids):
            with torch.autocast("cpu", torch.bfloat16):
                return super().forward(ids)

    report = check_model(Auto(block=block, depth=2), IDS)
    assert ("causality" in report.passed) is (block == 1)
    assert ("prefix_consistency" in report.passed) is (block == 1)


@pytest.mark.parametrize("block", [1, 64])
def test_coarse_rounding_hides_no_leak(models, block):
    class Rounds(models.Model):
        def __init__(self, **options):
            super().__init__(**options)
            self.offset = nn.Parameter(torch.full((1,), 3e5))

        def embed(self, ids):
            return super().embed(ids) + self.offset - 3e5

    report = check_model(Rounds(block=block), IDS)
    assert report.failed == []
    status = "passed" if block == 1 else "not run"
    assert (
        report["causality"].status
        == report["causality_train"].status
        == status
    )
    assert "rounds to half precision inside" in " ".join(report.notes)


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


def test_another_rows_mask_is_named(models):
    class First(models.Masked):
        def forward(self, ids, attention_mask):
            return super().forward(ids, attention_mask[:1].expand(ids.shape))

    rows = [IDS[1][:5] + [0], [0, 0, 3, 4, 5, 6]]
    report = check_model(First(), rows)
    assert "each row has its own mask" in report["batch_invariance"].sentence


# Caches and reach


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
