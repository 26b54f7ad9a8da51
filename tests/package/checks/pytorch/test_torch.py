"""The kit on PyTorch models: every situation of a reader's own model.

The models, and the situations, are in conftest.py.
"""

import copy
import random
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from cellbycell import checks
from cellbycell.checks import CheckFailed, where_it_differs

check_model = partial(checks.check_model, pad_id=0)
IDS = [[3, 4, 5, 6, 7, 8, 9, 10], [11, 12, 3, 4, 5, 0, 0, 0]]
TARGETS = [[4, 5, 6, 7, 8, 9, 10, 11], [12, 3, 4, 5, 0, 0, 0, 0]]


def test_a_correct_model_passes(situation):
    make, note = situation
    report = check_model(make(), IDS, targets=TARGETS, untrained=True)
    assert report.failed == report.errors == [], report
    assert note in " ".join(report.notes)
    report.raise_if_failed()


def test_a_leak_is_found(situation):
    make, _ = situation
    report = check_model(make(block=2), IDS)
    assert {"causality", "causality_train", "prefix_consistency"} <= {
        *report.failed
    }, report
    assert report.errors == []
    assert "sequence 0, position 0, by" in report["causality"].sentence
    with pytest.raises(CheckFailed, match="future"):
        report.raise_if_failed()


@pytest.mark.parametrize("block", [3, 16, 64])
def test_a_leak_within_blocks_is_found(models, block):
    rows = np.random.default_rng(0).integers(1, 20, (1, 70))
    report = check_model(models.Model(block, length=70), rows)
    assert "causality" in report.failed
    assert "position 0" in report["causality"].sentence


def test_a_circular_convolution_is_found(models):
    model = models.Model(change=lambda x: x + 0.1 * x.roll(2, dims=1))
    assert "causality" in check_model(model, IDS).failed


def test_a_leak_where_dropout_acts_is_found(models):
    class Forgets(models.Model):
        def forward(self, ids):
            acts = self.training and self.dropout.p > 0
            self.layers[0].block = 2 if acts else 1
            return super().forward(ids)

    assert check_model(Forgets(), IDS).failed == ["causality_train"]


def test_random_in_evaluation_is_asked_with_the_generator_fixed(models):
    drops = partial(models.Model, change=partial(F.dropout, p=0.2))
    report = check_model(drops(), IDS)
    assert report.failed == ["determinism"] and report.errors == []
    assert report["causality"].status == "passed"
    assert "fixed seed" in " ".join(report.notes)
    assert "causality" in check_model(drops(block=2), IDS).failed


def test_a_mask_edited_in_place_is_found(models):
    class Cached(models.Masked):
        mask = None

        def forward(self, ids):
            x = self.embed(ids)
            if self.mask is None:
                self.mask = self.layers[0].allowed(x)[None].clone()
            self.mask &= (ids != 0).any(0)
            x = x + self.layers[0](x, self.mask)
            return self.linear(self.norm(x))

    assert "determinism" in check_model(Cached(), IDS[:1]).failed


def test_pads_on_the_left_only_where_asked(models):
    assert check_model(models.Masked(), IDS).failed == []
    assert check_model(models.Masked(), IDS, pad_left=True).failed == [
        "padding_invariance"
    ]


def test_sequences_that_mix_are_found_and_not_taken_for_a_leak(models):
    model = models.Model(change=lambda x: x + 0.1 * x.mean(0, keepdim=True))
    assert check_model(model, IDS).failed == ["batch_invariance"]


def test_one_sequence_is_not_asked_alone(models):
    report = check_model(models.Model(), IDS[0])
    assert report["batch_invariance"].status == "not run"
    assert "two or more" in report["batch_invariance"].sentence


@pytest.mark.parametrize("ids", [[[0.5, 1.0]], [[[1, 2]]], [[4, 4, 0]], [4]])
def test_ids_that_ask_nothing_are_refused(models, ids):
    with pytest.raises(ValueError):
        check_model(models.Model(), ids)


def test_no_model_is_refused():
    with pytest.raises(TypeError, match="call="):
        check_model(lambda ids: ids, IDS)


def test_call_asks_a_model_that_needs_more(models):
    class Odd(models.Model):
        def forward(self, numbers, ids):
            return None, super().forward(ids) * numbers

    report = check_model(Odd(), IDS, call=lambda m, ids: m(2.0, ids)[1])
    assert report.failed == report.errors == []


def test_an_error_is_no_verdict(models):
    report = check_model(models.Model(length=4), IDS)
    assert report.failed == [] and report.errors == ["output_shape"]
    assert "IndexError: index out of range" in report["output_shape"].sentence
    assert "conftest.py" in str(report) and "in embed]" in str(report)
    assert report["causality"].status == "not run"
    with pytest.raises(CheckFailed, match="error") as raised:
        report.raise_if_failed()
    assert isinstance(raised.value.__cause__, IndexError)


def test_the_first_error_is_told_of_masks_that_all_fail(models):
    class Refuses(models.Masked):
        def forward(self, ids, attention_mask):
            raise RuntimeError(f"no {attention_mask.dtype}")

    assert "torch.bool" in check_model(Refuses(), IDS)["output_shape"].sentence


def test_another_shape_is_said_once(models):
    report = check_model(models.Wrapped(lambda x: x.transpose(0, 1)), IDS)
    assert report.failed == ["output_shape"] and report.errors == []


def state(model):
    """Return all that a caller may notice of a model and the generators."""
    return copy.deepcopy(
        (
            {n: x.tolist() for n, x in model.state_dict().items()},
            [m.training for m in model.modules()],
            [p.requires_grad for p in model.parameters()],
            [p.grad is None or p.grad.tolist() for p in model.parameters()],
            [m.p for m in model.modules() if isinstance(m, nn.Dropout)],
            torch.get_rng_state().tolist(),
            random.getstate(),
            np.random.get_state()[1].tolist(),  # noqa: NPY002
        )
    )


@pytest.mark.parametrize(
    "name", ["Model", "NoCopy", "frozen", "FunctionalDropout"]
)
@pytest.mark.parametrize("ids", [IDS, [[3, 4, 99]]])
def test_everything_is_afterwards_as_it_was(models, name, ids):
    model = vars(models)[name]().train()
    model.norm.eval()
    model.linear(torch.ones(16)).sum().backward()
    before = state(model)
    check_model(model, ids, targets=ids, overfit=3, untrained=True)
    assert state(model) == before


def test_weights_are_asked(models):
    unused = models.Model()
    unused.more = nn.Linear(2, 2)
    assert "more.weight" in check_model(unused, IDS)["gradient_flow"].sentence
    twins, shared = models.Model(depth=2), models.Model(depth=2)
    twins.layers[1].load_state_dict(twins.layers[0].state_dict())
    assert check_model(twins, IDS).warnings == ["duplicate_weights"]  # new
    scales = [p for name, p in twins.named_parameters() if "norm" in name]
    nn.init.uniform_(scales[0], 0.9, 1.1)
    report = check_model(twins, IDS)
    assert report.failed == ["duplicate_weights"]
    assert "Unless this is intended" in report["duplicate_weights"].sentence
    shared.layers[1] = shared.layers[0]
    sentence = check_model(shared, IDS)["duplicate_weights"].sentence
    assert "more than once in a pass: layers.0.packed" in sentence
    number = sum(p.numel() for p in unused.parameters())
    for count, failed in [(number, []), (number + 1, ["parameter_count"])]:
        found = check_model(unused, IDS, count=count)
        assert found.failed == failed and found.warnings == ["gradient_flow"]


def test_a_row_that_pads_alone_have_may_lack_a_gradient(models):
    class Kinds(models.Model):
        """Add the vector of a kind of token that is always the pads' own."""

        def __init__(self):
            super().__init__()
            self.kinds = nn.Embedding(2, 16, padding_idx=0)

        def embed(self, ids):
            return super().embed(ids) + self.kinds(ids * 0) + 0.1

    assert check_model(Kinds(), IDS).failed == []


def loss_over_tokens(logits, targets):
    return F.cross_entropy(logits.mT, targets, ignore_index=0)


def test_the_loss_is_asked(models):
    def failed(model=None, **settings):
        settings = {"targets": TARGETS, "loss": loss_over_tokens} | settings
        model = model or models.Model()
        return check_model(model, IDS, untrained=True, **settings).failed

    assert failed() == failed(overfit=True) == []
    short = lambda x, y: loss_over_tokens(x, y).bfloat16()  # noqa: E731
    report = check_model(models.Model(), IDS, targets=TARGETS, loss=short)
    assert (
        "target_alignment" in report.passed
    )  # NumPy has no numbers of this type
    assert failed(loss=lambda x, y: 9 * loss_over_tokens(x, y)) == [
        "initial_loss"
    ]
    assert failed(models.Wrapped(lambda x: x.softmax(-1))) == [
        "loss_padding_invariance"
    ]
    blind = models.Wrapped(lambda x: x * 0 + x.detach().mean())
    assert "overfit_one_batch" in failed(blind, overfit=9)
    short = check_model(models.Model(), IDS, targets=TARGETS, overfit=2)
    assert "After 2 steps" in short["overfit_one_batch"].sentence


def test_overfitting_is_asked_without_dropout_of_any_kind(models):
    """With all of it the model would learn nothing."""
    model = models.FunctionalDropout()
    model.dropout.p = model.attention_dropout = model.more.dropout = 0.95
    report = check_model(model, IDS, targets=TARGETS, overfit=True)
    assert report["overfit_one_batch"].status == "passed"


@pytest.mark.parametrize("renamed", [False, True])
def test_where_a_reference_differs(models, renamed):
    class Renamed(models.Model):
        """The same model with other names, and a step more."""

        def __init__(self, model):
            super().__init__(depth=0)
            self.words, self.stack = model.table, model.layers
            self.where, self.end = model.places, model.norm
            self.out = model.linear
            self.aside = nn.Hardtanh(-1e-3, 1e-3)  # of no consequence

        def forward(self, ids):
            x = self.words(ids) + self.where(torch.arange(ids.shape[1]))
            x = x + 0 * self.aside(x)
            for layer in self.stack:
                x = x + layer(x)
            return self.out(self.end(x))

    other = models.Model(depth=3)
    model = copy.deepcopy(other)
    model = Renamed(model) if renamed else model
    report = check_model(model, IDS, reference=other)
    assert report["reference_parity"].status == "passed"
    with torch.no_grad():
        other.layers[1].last.weight[0] += 0.01
    sentence = check_model(model, IDS, reference=other)[
        "reference_parity"
    ].sentence
    assert "(layers.1.last there)" in sentence
    assert ("This is a hint" in sentence) == renamed
    rows = {d.reference: d.change for d in where_it_differs(model, other, IDS)}
    assert rows["layers.1.packed"] == 0 < rows["layers.1.last"]


def test_a_reference_of_another_shape(models):
    other = models.Wrapped(lambda x: x[..., 1:])
    report = check_model(models.Model(), IDS, reference=other)
    assert report.failed == ["reference_parity"]
