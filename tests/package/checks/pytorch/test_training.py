"""What goes wrong in training alone; each bug beside its correct twin."""

import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from cellbycell.checks import check_model  # noqa: E402

IDS = [[9, 4, 7, 6, 1, 0, 0, 0], [5, 8, 3, 9, 4, 7, 6, 2]]
TARGETS = [[4, 7, 6, 1, -100, -100, -100, -100], [8, 3, 9, 4, 7, 6, 2, 5]]
VOCABULARY, WIDTH = 20, 32


class GPT(nn.Module):
    """A small model with dropout; how: the arguments of checkpointing."""

    def __init__(self, dropout=0.2, last=None, **how):
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Embedding(8, WIDTH)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                *(WIDTH, 4, 64, dropout), batch_first=True, norm_first=True
            )
            for _ in range(2)
        )
        self.linear = nn.Linear(WIDTH, VOCABULARY)
        self.how, self.last = how, last or (lambda x: x)

    def forward(self, ids):
        x = self.table(ids) + self.places(torch.arange(ids.shape[1]))
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        for layer in self.layers:
            if self.training and self.how:
                x = checkpoint(layer, x, mask, **self.how)
            else:
                x = layer(x, mask)
        return self.last(self.linear(x))


def frozen(**how):
    """Return a model of which only the layers are trained, as by LoRA."""
    model = GPT(**how)
    for part in (model.table, model.places):
        part.requires_grad_(False)
    return model


def ask(check, model, **given):
    return check_model(model, IDS, only=check, **given)[check]


class Rounded(torch.autograd.Function):
    """A backward pass of one's own, too small by half."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"use_reentrant": False},
        {"use_reentrant": True},
        {"dropout": 0.0},
        {"use_reentrant": False, "dropout": 0.5},
    ],
)
@pytest.mark.parametrize("make", [GPT, frozen])
def test_gradients_in_training_are_those_of_what_is_computed(make, how):
    found = ask("training_gradients", make(**how))
    stops = make is frozen and how.get("use_reentrant", False)
    assert found.status == ("failed" if stops else "passed"), found.sentence
    if stops:  # inputs without a gradient
        assert "no gradient reaches layers.0" in found.sentence
        assert "use_reentrant=False" in found.sentence


@pytest.mark.parametrize(
    "model",
    [
        lambda: GPT(use_reentrant=False, preserve_rng_state=False),
        lambda: GPT(last=Rounded.apply),
        lambda: GPT(last=lambda x: x - x.detach().mean(-1, keepdim=True)),
    ],
)
def test_gradients_of_something_else_are_seen(model):
    found = ask("training_gradients", model())
    assert found.status == "failed"
    assert "by a difference quotient" in found.sentence


DRAWS = torch.Generator()


@pytest.mark.parametrize(
    ("last", "says"),
    [
        (torch.round, "all gradients are zero"),
        (lambda x: x + torch.rand(x.shape, generator=DRAWS), "no seed"),
    ],
)
def test_what_cannot_be_compared_is_not_run(last, says):
    found = ask("training_gradients", GPT(last=last))
    assert found.status == "not run" and says in found.sentence


def test_a_gradient_of_a_rounded_model_is_told_as_an_estimate():
    def straight_through(x):
        return x + (x.round() - x).detach()

    found = ask("training_gradients", GPT(last=straight_through))
    assert found.status in ("warning", "not run"), found.sentence


def test_weights_of_half_precision_stand_still():
    assert ask("weights_move", GPT()).status == "passed"
    half = GPT(dropout=0.0).bfloat16()
    found = ask("weights_move", half)
    assert found.status == "warning" and "norm1" in found.sentence

    def slow(parameters):
        return torch.optim.AdamW(parameters, lr=1e-5)

    found = ask("weights_move", half, optimizer=slow)
    assert found.status == "failed" and "0%" in found.sentence
    assert ask("weights_move", GPT(), optimizer=slow).status == "passed"
    assert half.linear.weight.grad is None


def test_an_optimizer_without_the_layers_is_seen():
    model = GPT()

    def of_the_last(_):
        return torch.optim.SGD(model.linear.parameters(), lr=0.1)

    found = ask("weights_move", model, optimizer=of_the_last)
    assert found.status == "failed" and "other parameters" in found.sentence


@pytest.mark.parametrize("drawn", [True, False])
def test_an_adapter_that_can_never_learn_is_seen(drawn):
    model = frozen()
    down, up = nn.Linear(WIDTH, 2, bias=False), nn.Linear(2, 20, bias=False)
    nn.init.zeros_(up.weight)
    if not drawn:
        nn.init.zeros_(down.weight)
    whole = model.linear.forward
    model.down, model.up = down, up
    model.linear.requires_grad_(False)
    model.linear.forward = lambda x: whole(x) + model.up(model.down(x))
    found = ask("weights_move", model)
    assert found.status == ("passed" if drawn else "warning")
    assert drawn or "down.weight" in found.sentence


def cross_entropy(logits, targets, **how):
    return F.cross_entropy(logits.mT, targets, **how)


def mean_of_means(logits, targets):
    each = cross_entropy(logits, targets, reduction="none")
    real = targets != -100
    return (each.sum(1) / real.sum(1)).mean()


def smoothed_on_pads(logits, targets):
    rest = -logits.log_softmax(-1).mean()
    return 0.9 * cross_entropy(logits, targets) + 0.1 * rest


@pytest.mark.parametrize(
    ("loss", "status", "says"),
    [
        (cross_entropy, "passed", "each alike"),
        (
            lambda x, y: cross_entropy(x, y, label_smoothing=0.1),
            "passed",
            "each alike",
        ),
        (
            lambda x, y: cross_entropy(x, y, reduction="sum"),
            "passed",
            "each alike",
        ),
        (
            lambda x, y: (
                cross_entropy(x, y)
                + 1e-2 * x.logsumexp(-1)[y != -100].square().mean()
            ),
            "passed",
            "each alike",
        ),
        (
            lambda x, y: (
                (x.softmax(-1) - F.one_hot(y.relu(), 20))
                .square()[y != -100]
                .mean()
            ),
            "passed",
            "not cross-entropy",
        ),
        (lambda x, y: cross_entropy(x / 0.7, y), "warning", "by 0.70"),
        (mean_of_means, "warning", "a mean of the sequences' means"),
        (smoothed_on_pads, "failed", "pads are trained"),
    ],
)
def test_a_loss_is_known_by_its_gradient(loss, status, says):
    given = {"targets": TARGETS, "loss": loss, "pad_id": 0}
    found = ask("target_alignment", GPT(), **given)
    assert found.status == status and says in found.sentence, found.sentence


@pytest.mark.parametrize(
    ("last", "says"),
    [
        (torch.relu, "is there a ReLU behind the last layer"),
        (lambda x: x.softmax(-1), "are they probabilities"),
    ],
)
def test_a_last_step_too_many_is_told(last, says):
    found = ask("output_shape", GPT(last=last))
    assert found.status == "warning" and says in found.sentence
    assert ask("output_shape", GPT()).status == "passed"


class Scaled(GPT):
    """A number that no parameter holds; used: whether the model reads it."""

    def __init__(self, used=True, number=1.0):
        super().__init__(dropout=0.0)
        self.register_buffer("scale", torch.tensor([number] * 2))
        self.used = used

    def forward(self, ids):
        x = super().forward(ids)
        return x * self.scale[0] + self.scale[1] - 1 if self.used else x


def test_a_buffer_from_empty_memory_is_named():
    found = ask("output_shape", Scaled(number=float("nan")))
    assert found.status == "failed" and "the buffer scale" in found.sentence


def test_a_buffer_that_one_model_does_not_read_is_seen():
    found = ask("reference_parity", Scaled(), reference=Scaled())
    assert found.status == "passed" and "in scale" in found.sentence
    found = ask("reference_parity", Scaled(), reference=Scaled(used=False))
    assert found.status == "failed" and "does not read" in found.sentence


class Settings:
    """A config that is a class, as in a script: its entries are read-only."""

    dropout = 0.2


class Styled(GPT):
    def __init__(self):
        super().__init__()
        self.config = Settings


def test_a_config_may_be_a_class():
    assert check_model(Styled(), IDS, causal=True).errors == []


class Blocked(GPT):
    """A mask that is True at pads, by a name that does not say so."""

    def forward(self, ids, mask=None):
        x = self.table(ids) + self.places(torch.arange(ids.shape[1]))
        later = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        for layer in self.layers:
            x = layer(x, later < 0, src_key_padding_mask=mask)
        return self.linear(x.nan_to_num())


def test_a_mask_that_blocks_all_is_not_taken_for_one_that_works():
    report = check_model(Blocked(), IDS, pad_id=0, skip="padding_invariance")
    assert report.failed == [], report
    assert "True at pads" in " ".join(report.notes)


class Cached(nn.Module):
    """Attention with a cache; inside: the module keeps its keys itself."""

    def __init__(self, inside=False):
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(VOCABULARY, WIDTH)
        self.linear = nn.Linear(WIDTH, VOCABULARY)
        self.inside, self.kept = inside, None

    def forward(self, ids, cache=None, start=0):
        x = self.table(ids)
        assert start == (0 if cache is None else cache.shape[1])
        if self.inside and cache is not None:
            x = torch.cat([self.kept, x], 1)
        elif cache is not None:
            x = torch.cat([cache, x], 1)
        self.kept = x.detach()
        mask = torch.ones(x.shape[1], x.shape[1]).tril().bool()[start:]
        scores = (x[:, start:] @ x.mT / 8).masked_fill(~mask, -torch.inf)
        return self.linear(scores.softmax(-1) @ x), x


@pytest.mark.parametrize("inside", [False, True])
def test_a_cache_follows_its_rows(inside):
    found = ask("cache_consistency", Cached(inside))
    assert found.status == ("failed" if inside else "passed"), found.sentence
    says = "whose rows change places" if inside else "can change places"
    assert says in found.sentence


class Seeded(GPT):
    """Random numbers in evaluation mode, under a seed of the model's own."""

    def forward(self, ids):
        draws = torch.Generator().manual_seed(0)
        noise = torch.rand(ids.shape, generator=draws).flip(0)
        return super().forward(ids) + noise[..., None]


@pytest.mark.parametrize(
    ("check", "model", "says"),
    [
        ("batch_invariance", Seeded, "number of sequences does it"),
    ],
)
def test_a_sentence_leads_to_the_cause(check, model, says):
    found = ask(check, model(), pad_id=0)
    assert found.status == "failed" and says in found.sentence


def test_weights_of_eight_bits_are_read():
    class Small(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.table = nn.Embedding(VOCABULARY, WIDTH)
            weight = torch.randn(VOCABULARY, WIDTH).to(torch.float8_e4m3fn)
            self.weight = nn.Parameter(weight, requires_grad=False)

        def forward(self, ids):
            x = self.table(ids).cumsum(1)
            return x @ self.weight.to(x.dtype).mT

    report = check_model(Small(), IDS, skip="position_dependence")
    assert report.ok, report
    assert "float8_e4m3fn" in " ".join(report.notes)


def test_parameters_on_several_machines_are_refused():
    from torch import distributed
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import distribute_module

    store = distributed.HashStore()
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        model = distribute_module(GPT(), init_device_mesh("cpu", (1,)))
        with pytest.raises(ValueError, match="ask a whole one, before"):
            check_model(model, IDS)
    finally:
        distributed.destroy_process_group()


def test_keras_on_pytorch_is_refused_in_a_sentence():
    code = (
        "import keras\n"
        "from cellbycell.checks import check_model\n"
        "model = keras.Sequential([keras.layers.Embedding(9, 4)])\n"
        "check_model(model, [[1, 2, 3]])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "KERAS_BACKEND": "torch"},
        capture_output=True,
        text=True,
    )
    assert "TypeError: model is a Keras model on torch" in done.stderr
