"""The model that is tested is the one that was given, whatever it is."""

import copy
import threading
from functools import partial

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from cellbycell import checks

check_model = partial(checks.check_model, pad_id=0)
IDS = [[3, 4, 5, 6, 7, 8, 9, 10], [11, 12, 3, 4, 5, 0, 0, 0]]
LEAK = {
    "causality",
    "causality_train",
    "causality_grad",
    "prefix_consistency",
}


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
