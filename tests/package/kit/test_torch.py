"""The kit on PyTorch models: every situation of a reader's own model."""

import copy
import random
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from cellbycell.kit import CheckFailed, check_model, where_it_differs

IDS = [[3, 4, 5, 6, 7, 8, 9, 10], [11, 12, 3, 4, 5, 0, 0, 0]]
TARGETS = [[4, 5, 6, 7, 8, 9, 10, 11], [12, 3, 4, 5, 0, 0, 0, 0]]
VOCABULARY, WIDTH = 20, 16


class Attention(nn.Module):
    """One head; leak: at most so many tokens of the future, in blocks."""

    def __init__(self, block=1):
        super().__init__()
        self.block = block
        self.packed = nn.Linear(WIDTH, 3 * WIDTH)
        self.last = nn.Linear(WIDTH, WIDTH)

    def allowed(self, x):
        """Return which keys each query may see, (T, T)."""
        place = torch.arange(x.shape[1])
        same = place // self.block == place[:, None] // self.block
        return (place <= place[:, None]) | same

    def forward(self, x, memory=None, allowed=None):
        query = self.packed(x).chunk(3, -1)[0]
        _, key, value = self.packed(x if memory is None else memory).chunk(
            3, -1
        )
        mask = self.allowed(x) if allowed is None else allowed
        scores = (query @ key.mT / WIDTH**0.5).masked_fill(~mask, -torch.inf)
        return self.last(scores.softmax(-1) @ value)


class Model(nn.Module):
    """A small language model; its options are the situations."""

    def __init__(self, block=1, layers=1, positions=True, tied=False, **extra):
        super().__init__()
        self.extra = extra
        self.table = nn.Embedding(VOCABULARY, WIDTH)
        length = extra.get("length", len(IDS[0]))
        self.places = nn.Embedding(length, WIDTH) if positions else None
        self.layers = nn.ModuleList(Attention(block) for _ in range(layers))
        self.norm = nn.LayerNorm(WIDTH)
        self.dropout = nn.Dropout(0.2)
        self.linear = nn.Linear(WIDTH, VOCABULARY)
        if tied:
            self.linear.weight = self.table.weight

    def embed(self, ids):
        x = self.table(ids)
        if self.places is not None:
            x = x + self.places(torch.arange(ids.shape[1]))
        return self.dropout(x)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = x + layer(x)
        return self.linear(self.norm(x))


class Wrapped(Model):
    """Return what a function makes of the logits."""

    def forward(self, ids):
        return self.extra["output"](super().forward(ids))


@dataclass
class Output:
    loss: torch.Tensor | None
    logits: torch.Tensor


class ModelOutput(OrderedDict):
    """As in Transformers: a dict whose keys are attributes, too."""


class Cache:
    """What models return beside the logits; it is no output."""

    def __init__(self, values):
        self.values = values


class Masked(Model):
    """Take an attention mask of any type; without pads, none."""

    def forward(self, ids, attention_mask=None, use_cache=True):
        x = self.embed(ids)
        allowed = self.layers[0].allowed(x)
        if attention_mask is not None:
            allowed = allowed & (attention_mask[:, None] == 1)
        return self.linear(self.norm(x + self.layers[0](x, None, allowed)))


class NeedsLong(Masked):
    """Compute with the mask; a boolean raises an error."""

    def forward(self, ids, attention_mask):
        return super().forward(ids, 1 - (1 - attention_mask))


class WithConfig(Masked):
    """Compute with the mask, as in Transformers; a boolean goes wrong."""

    config = None

    def forward(self, ids, attention_mask):
        return super().forward(ids, attention_mask + attention_mask == 2)


class InFloat32(Model):
    """Refuse every other type."""

    def forward(self, ids):
        assert self.linear.weight.dtype == torch.float32
        return super().forward(ids)


class MaskedColumns(Model):
    """Never predict a few tokens."""

    def forward(self, ids):
        logits = super().forward(ids)
        columns = torch.arange(VOCABULARY) < 3
        return logits.masked_fill(columns, self.extra["fill"])


class FunctionalDropout(Model):
    """Drop by function and by a number, in training alone."""

    def __init__(self, **options):
        super().__init__(**options)
        self.attention_dropout = 0.3
        self.more = nn.MultiheadAttention(WIDTH, 2, 0.3, batch_first=True)

    def embed(self, ids):
        x = F.dropout(super().embed(ids), 0.2, self.training)
        future = ~self.layers[0].allowed(x)
        x = x + self.more(x, x, x, attn_mask=future, need_weights=False)[0]
        return F.dropout(x, self.attention_dropout, self.training)


class LargeDropout(FunctionalDropout):
    """Learn nothing unless all numbers of dropout are set to zero."""

    def __init__(self):
        super().__init__()
        self.dropout.p = self.attention_dropout = self.more.dropout = 0.95

    def embed(self, ids):
        x = super().embed(ids)
        return F.dropout(x, self.attention_dropout, self.training)


class RandomInEvaluation(Model):
    """Drop in evaluation mode, too."""

    def embed(self, ids):
        return F.dropout(super().embed(ids), 0.2)


class NoCopy(Model):
    """Keep a tensor that cannot be copied, and edit a buffer."""

    def __init__(self, **options):
        super().__init__(**options)
        self.register_buffer("number", torch.zeros(()))
        self.seen = self.linear.weight * 1

    def forward(self, ids):
        self.number += 1
        self.seen = super().forward(ids)
        return self.seen


class CompiledStandIn(nn.Module):
    """What torch.compile returns holds the model as _orig_mod."""

    def __init__(self, model):
        super().__init__()
        self._orig_mod = model

    def forward(self, *args):
        raise RuntimeError("compiled code is not asked")


def frozen(**options):
    model = Model(**options)
    model.table.requires_grad_(False)
    return model


def returns(output):
    return lambda **options: Wrapped(output=output, **options)


# Situation: (a function that makes the model, what the notes have to say).
SITUATIONS = {
    "tensor": (Model, ""),
    "dict": (returns(lambda x: {"logits": x}), "output['logits']"),
    "tuple": (returns(lambda x: (x.sum(), x)), "output[1]"),
    "pooled first": (returns(lambda x: (x[:, 0], x)), "output[1]"),
    "list": (returns(lambda x: [x, None]), "output[0]"),
    "dataclass": (returns(lambda x: Output(None, x)), "output.logits"),
    "ModelOutput": (
        returns(lambda x: ModelOutput(cache=Cache(x), logits=x)),
        "output['logits']",
    ),
    "hidden state": (
        returns(lambda x: {"pooled": x[:, 0], "last_hidden_state": x}),
        "output['last_hidden_state']",
    ),
    "attention_mask": (Masked, "attention_mask: given"),
    "attention_mask of numbers": (NeedsLong, "attention_mask: given"),
    "attention_mask with config": (WithConfig, "attention_mask: given"),
    "bfloat16": (lambda **o: InFloat32(**o).bfloat16(), "float32 copy"),
    "float16": (lambda **o: InFloat32(**o).half(), "float32 copy"),
    "float64": (lambda **o: Model(**o).double(), ""),
    "compiled": (lambda **o: CompiledStandIn(Model(**o)), "compiled"),
    "tied": (lambda **o: Model(tied=True, **o), ""),
    "frozen": (frozen, ""),
    "columns of -1e9": (
        lambda **o: MaskedColumns(fill=-1e9, **o),
        "3 of 20 columns",
    ),
    "columns of -inf": (
        lambda **o: MaskedColumns(fill=-torch.inf, **o),
        "3 of 20 columns",
    ),
    "dropout of all kinds": (FunctionalDropout, ""),
    "cannot be copied": (NoCopy, "cannot be copied"),
    "two layers": (lambda **o: Model(layers=2, **o), ""),
}


@pytest.fixture(autouse=True)
def seeded():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    random.seed(5)
    np.random.seed(5)  # noqa: NPY002


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_correct_model_passes(name):
    make, note = SITUATIONS[name]
    report = check_model(make(), IDS, targets=TARGETS, untrained=True)
    assert report.failed == report.errors == [], report
    assert note in " ".join(report.notes)
    report.raise_if_failed()


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_leak_is_found(name):
    make, _ = SITUATIONS[name]
    report = check_model(make(block=2), IDS)
    assert {"future", "training", "steps"} <= {*report.failed}, report
    assert report.errors == []
    assert "sequence 0, position 0, by" in report["future"].sentence
    with pytest.raises(CheckFailed, match="future"):
        report.raise_if_failed()


@pytest.mark.parametrize("block", [3, 16, 64])
def test_a_leak_within_blocks_is_found(block):
    rows = np.random.default_rng(0).integers(1, VOCABULARY, (1, 70))
    report = check_model(Model(block, length=70), rows)
    assert "future" in report.failed
    assert "position 0" in report["future"].sentence


def test_a_circular_convolution_is_found():
    class Circular(Model):
        def embed(self, ids):
            x = super().embed(ids)
            return x + 0.1 * x.roll(2, dims=1)

    assert "future" in check_model(Circular(), IDS).failed


def test_a_leak_of_full_rows_alone_is_found():
    class FullRows(Masked):
        def forward(self, ids, attention_mask=None):
            if attention_mask is None:
                attention_mask = torch.ones_like(ids)
                self.layers[0].block = 2
            return super().forward(ids, attention_mask)

    report = check_model(FullRows(), IDS)
    assert "full rows, no mask" in report["future"].sentence


def test_a_leak_where_dropout_acts_is_found():
    class Forgets(Model):
        def forward(self, ids):
            acts = self.training and self.dropout.p > 0
            self.layers[0].block = 2 if acts else 1
            return super().forward(ids)

    assert check_model(Forgets(), IDS).failed == ["training"]


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_missing_positions_are_found(layers):
    model = Model(layers=layers, positions=False)
    assert "order" in check_model(model, IDS).failed


def test_slopes_are_positions():
    class Slopes(Attention):
        def forward(self, x):
            query, key, value = self.packed(x).chunk(3, -1)
            place = torch.arange(x.shape[1])
            scores = query @ key.mT + (place - place[:, None]) * 0.1
            scores = scores.masked_fill(~self.allowed(x), -torch.inf)
            return self.last(scores.softmax(-1) @ value)

    model = Model(layers=0, positions=False)
    model.layers.extend(Slopes() for _ in range(2))
    report = check_model(model, IDS)
    assert report.failed == []
    assert "distance" in report["order"].sentence


def test_random_in_evaluation_is_asked_with_the_generator_fixed():
    report = check_model(RandomInEvaluation(), IDS)
    assert report.failed == ["calls"] and report.errors == []
    assert report["future"].status == "passed"
    assert "generator fixed" in " ".join(report.notes)
    assert "future" in check_model(RandomInEvaluation(block=2), IDS).failed


def test_a_mask_edited_in_place_is_found():
    class Cached(Masked):
        mask = None

        def forward(self, ids):
            x = self.embed(ids)
            if self.mask is None:
                self.mask = self.layers[0].allowed(x)[None].clone()
            self.mask &= (ids != 0).any(0)
            x = x + self.layers[0](x, None, self.mask)
            return self.linear(self.norm(x))

    assert "calls" in check_model(Cached(), IDS[:1]).failed


def test_a_cache_of_the_first_mask_is_found():
    class Cached(Masked):
        mask = None

        def forward(self, ids):
            if self.mask is None or self.mask.shape != ids.shape:
                self.mask = ids != 0
            return super().forward(ids, self.mask)

    assert "calls" in check_model(Cached(), IDS).failed


def test_pads_that_are_attended_are_found():
    class Both(Masked):
        def forward(self, ids):
            x = self.embed(ids)
            allowed = torch.ones(len(x[0]), len(x[0])).bool()
            return self.linear(self.norm(x + self.layers[0](x, None, allowed)))

    report = check_model(Both(), IDS, causal=False)
    assert report.failed == ["pads"]
    assert check_model(Both(), IDS, causal=False, pad_id=None).failed == []


def test_pads_on_the_left_only_where_asked():
    assert check_model(Masked(), IDS).failed == []
    assert check_model(Masked(), IDS, pad_left=True).failed == ["pads"]


def test_sequences_that_mix_are_found_and_not_taken_for_a_leak():
    class Mixed(Model):
        def embed(self, ids):
            x = super().embed(ids)
            return x + 0.1 * x.mean(0, keepdim=True)

    report = check_model(Mixed(), IDS)
    assert report.failed == ["alone"]


class Pair(nn.Module):
    """An encoder-decoder around nn.Transformer."""

    def __init__(self, reads=True, masked=True):
        super().__init__()
        self.reads, self.masked = reads, masked
        self.table = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Parameter(torch.randn(8, WIDTH))
        self.body = nn.Transformer(WIDTH, 2, 1, 1, 24, 0.1, batch_first=True)
        self.linear = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, source, ids):
        embed = [
            self.table(x) + self.places[: x.shape[1]] for x in (source, ids)
        ]
        pads = source == 0 if self.masked else None
        x = self.body(
            embed[0] * self.reads,
            embed[1],
            tgt_mask=torch.ones(ids.shape[1], ids.shape[1]).triu(1).bool(),
            src_key_padding_mask=pads,
            memory_key_padding_mask=pads,
        )
        return self.linear(x)


DECODER = [[1, 13, 14, 15, 16], [1, 17, 13, 0, 0]]


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested")
def test_an_encoder_decoder():
    assert check_model(Pair(), IDS, DECODER).failed == []
    failed = check_model(Pair(reads=False), IDS, DECODER).failed
    assert {"source", "order"} <= {*failed}
    assert "pads" in check_model(Pair(masked=False), IDS, DECODER).failed


def test_a_source_of_another_vocabulary():
    class Translator(Pair):
        def __init__(self):
            super().__init__()
            self.source = nn.Embedding(100, WIDTH)

        def forward(self, source, ids):
            both = self.source(source), self.table(ids)
            x, y = (z + self.places[: z.shape[1]] for z in both)
            future = torch.ones(ids.shape[1], ids.shape[1]).triu(1).bool()
            pads = source == 0
            x = self.body(
                x,
                y,
                tgt_mask=future,
                src_key_padding_mask=pads,
                memory_key_padding_mask=pads,
            )
            return self.linear(x)

    report = check_model(Translator(), np.array(IDS) * 8, DECODER)
    assert report.failed == report.errors == []


@pytest.mark.parametrize(
    "ids",
    [
        np.array(IDS),
        np.array(IDS, np.int32),
        torch.tensor(IDS),
        torch.tensor(IDS, dtype=torch.int32),
        tuple(map(tuple, IDS)),
    ],
)
def test_ids_of_any_kind(ids):
    assert check_model(Model(), ids).failed == []


def test_one_sequence_is_not_asked_alone():
    report = check_model(Model(), IDS[0])
    assert report["alone"].status == "not asked"
    assert "two or more" in report["alone"].sentence


@pytest.mark.parametrize("ids", [[[0.5, 1.0]], [[[1, 2]]], [[4, 4, 0]], [4]])
def test_ids_that_ask_nothing_are_refused(ids):
    with pytest.raises(ValueError):
        check_model(Model(), ids)


def test_no_model_is_refused():
    with pytest.raises(TypeError, match="call="):
        check_model(lambda ids: ids, IDS)


def test_call_asks_a_model_that_needs_more():
    class Odd(Model):
        def forward(self, numbers, ids):
            return None, super().forward(ids) * numbers

    report = check_model(Odd(), IDS, call=lambda m, ids: m(2.0, ids)[1])
    assert report.failed == report.errors == []


def test_an_error_is_no_verdict():
    report = check_model(Model(length=4), IDS)
    assert report.failed == [] and "future" in report.errors
    assert "IndexError: index out of range" in report["future"].sentence
    with pytest.raises(CheckFailed, match="error"):
        report.raise_if_failed()


def test_the_first_error_is_told_of_masks_that_all_fail():
    class Refuses(Masked):
        def forward(self, ids, attention_mask):
            raise RuntimeError(f"no {attention_mask.dtype}")

    assert "torch.bool" in check_model(Refuses(), IDS)["shape"].sentence


def test_another_shape_is_said_once():
    report = check_model(returns(lambda x: x.transpose(0, 1))(), IDS)
    assert report.failed == ["shape"] and report.errors == []


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


@pytest.mark.parametrize("make", [Model, NoCopy, frozen, RandomInEvaluation])
@pytest.mark.parametrize("ids", [IDS, [[3, 4, 99]]])
def test_everything_is_afterwards_as_it_was(make, ids):
    model = make().train()
    model.norm.eval()
    model.linear(torch.ones(WIDTH)).sum().backward()
    before = state(model)
    settings = {"targets": ids, "overfit": True, "untrained": True}
    check_model(model, ids, **settings)
    assert state(model) == before


def test_weights_are_asked():
    class Unused(Model):
        def __init__(self):
            super().__init__()
            self.unused = nn.Linear(2, 2)

    class Twins(Model):
        def __init__(self):
            super().__init__(layers=2)
            self.layers[1].load_state_dict(self.layers[0].state_dict())

    class Kinds(Model):
        """Add the vector of a kind of token that is always the pads' own."""

        def __init__(self):
            super().__init__()
            self.kinds = nn.Embedding(2, WIDTH, padding_idx=0)

        def embed(self, ids):
            return super().embed(ids) + self.kinds(ids * 0) + 0.1

    assert check_model(Kinds(), IDS).failed == []
    assert "unused.weight" in check_model(Unused(), IDS)["gradients"].sentence
    twins = check_model(Twins(), IDS)
    assert twins.failed == ["layers"]
    assert "Unless they are meant to be" in twins["layers"].sentence
    shared = Model(layers=2)
    shared.layers[1] = shared.layers[0]
    sentence = check_model(shared, IDS)["layers"].sentence
    assert "more than once in a pass: layers.0.packed" in sentence
    number = sum(p.numel() for p in Model().parameters())
    assert check_model(Model(), IDS, count=number).failed == []
    assert check_model(Model(), IDS, count=number + 1).failed == ["count"]


def loss_over_tokens(logits, targets, divide=lambda real: real.sum()):
    each = F.cross_entropy(logits.mT, targets, reduction="none")
    real = targets != 0
    return (each * real).sum() / divide(real)


def test_the_loss_is_asked():
    def with_loss(make=Model, **settings):
        settings = {"targets": TARGETS, "loss": loss_over_tokens} | settings
        return check_model(make(), IDS, untrained=True, **settings).failed

    assert with_loss() == with_loss(overfit=True) == []
    by_all = lambda x, y: loss_over_tokens(x, y, lambda r: r.numel())  # noqa: E731
    assert "loss" in with_loss(loss=by_all)
    assert with_loss(loss=lambda x, y: 9 * loss_over_tokens(x, y)) == ["start"]
    assert with_loss(returns(lambda x: x.softmax(-1))) == ["loss"]
    assert with_loss(targets=IDS) == ["shift"]
    back = np.pad(np.array(IDS)[:, :-1], [(0, 0), (1, 0)], constant_values=2)
    assert with_loss(targets=back * (np.array(IDS) > 0)) == ["shift"]
    assert with_loss(LargeDropout, overfit=True) == []
    blind = returns(lambda x: x * 0 + x.detach().mean())
    assert "overfit" in with_loss(blind, overfit=9)
    short = check_model(Model(), IDS, targets=TARGETS, overfit=2)
    assert "After 2 steps" in short["overfit"].sentence


def write(model, ids, position=-1):
    while ids.shape[1] < 6:
        new = model(ids)[:, position].argmax(-1, keepdim=True)
        ids = torch.cat([ids, new], 1)
    return ids


def test_decoding_is_asked():
    ids, model = IDS[:1], Model()
    assert check_model(model, ids, decode=write).failed == []
    wrong = check_model(model, ids, decode=lambda m, x: write(m, x, 0))
    assert wrong.failed == ["writes"]


class Renamed(Model):
    """The same model with other names, and a step more."""

    def __init__(self, model):
        super().__init__(layers=0)
        self.words, self.stack = model.table, model.layers
        self.where, self.end, self.out = model.places, model.norm, model.linear
        self.aside = nn.Hardtanh(-1e-3, 1e-3)  # a module of no consequence

    def forward(self, ids):
        x = self.words(ids) + self.where(torch.arange(ids.shape[1]))
        x = x + 0 * self.aside(x)
        for layer in self.stack:
            x = x + layer(x)
        return self.out(self.end(x))


@pytest.mark.parametrize("rename", [lambda model: model, Renamed])
def test_where_a_reference_differs(rename):
    other = Model(layers=3)
    model = rename(copy.deepcopy(other))
    report = check_model(model, IDS, reference=other)
    assert report["reference"].status == "passed"
    with torch.no_grad():
        other.layers[1].last.weight[0] += 0.01
    sentence = check_model(model, IDS, reference=other)["reference"].sentence
    assert "(layers.1.last there)" in sentence
    assert ("A hint only" in sentence) == (rename is Renamed)
    rows = {d.reference: d.change for d in where_it_differs(model, other, IDS)}
    assert rows["layers.1.packed"] == 0 < rows["layers.1.last"]


def test_a_reference_of_another_shape():
    other = returns(lambda x: x[..., 1:])()
    report = check_model(Model(), IDS, reference=other)
    assert report.failed == ["reference"]
