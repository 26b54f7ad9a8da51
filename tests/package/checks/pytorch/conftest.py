"""The models in PyTorch that the kit is tested on."""

import os
from functools import partial
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")  # or this folder is skipped

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

# As every chapter says it before it imports TensorFlow.
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

VOCABULARY, WIDTH, LENGTH = 20, 16, 8


class Attention(nn.Module):
    """One head; a query also sees the later tokens of its block."""

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

    def forward(self, x, allowed=None):
        query, key, value = self.packed(x).chunk(3, -1)
        mask = self.allowed(x) if allowed is None else allowed
        scores = (query @ key.mT / WIDTH**0.5).masked_fill(~mask, -torch.inf)
        return self.last(scores.softmax(-1) @ value)


class Model(nn.Module):
    """A small language model; change: of the vectors that go in."""

    def __init__(
        self,
        block=1,
        depth=1,
        positions=True,
        tied=False,
        length=LENGTH,
        change=lambda x: x,
    ):
        super().__init__()
        self.table = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Embedding(length, WIDTH) if positions else None
        self.layers = nn.ModuleList(Attention(block) for _ in range(depth))
        self.norm = nn.LayerNorm(WIDTH)
        self.dropout = nn.Dropout(0.2)
        self.linear = nn.Linear(WIDTH, VOCABULARY)
        self.change = change
        if tied:
            self.linear.weight = self.table.weight

    def embed(self, ids):
        x = self.table(ids)
        if self.places is not None:
            x = x + self.places(torch.arange(ids.shape[1]))
        return self.change(self.dropout(x))

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = x + layer(x)
        return self.linear(self.norm(x))


class Wrapped(Model):
    """Return what a function makes of the logits."""

    def __init__(self, output, **options):
        super().__init__(**options)
        self.output = output

    def forward(self, ids):
        return self.output(super().forward(ids))


class Masked(Model):
    """Take an attention mask of any type; without pads, none."""

    def forward(self, ids, attention_mask=None, use_cache=True):
        x = self.embed(ids)
        allowed = self.layers[0].allowed(x)
        if attention_mask is not None:
            allowed = allowed & (attention_mask[:, None] == 1)
        return self.linear(self.norm(x + self.layers[0](x, allowed)))


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

    def __init__(self, **options):
        super().__init__()
        self._orig_mod = Model(**options)

    def forward(self, *args):
        raise RuntimeError("compiled code is not tested")


def frozen(**options):
    model = Model(**options)
    model.table.requires_grad_(False)
    return model


def masked_columns(fill):
    """Return a function: options -> a model that never predicts 0 to 2."""
    columns = torch.arange(VOCABULARY) < 3
    return partial(Wrapped, lambda logits: logits.masked_fill(columns, fill))


# A situation: what makes the model, and what the notes have to say of it.
SITUATIONS = {
    "tensor": (Model, ""),
    "tied": (partial(Model, tied=True), ""),
    "two layers": (partial(Model, depth=2), ""),
    "frozen": (frozen, ""),
    "dict": (partial(Wrapped, lambda x: {"logits": x}), "output['logits']"),
    "attention_mask": (Masked, "gets attention_mask"),
    "attention_mask of numbers": (NeedsLong, "gets attention_mask"),
    "attention_mask with config": (WithConfig, "gets attention_mask"),
    "bfloat16": (lambda **o: InFloat32(**o).bfloat16(), "float32 copy"),
    "float16": (lambda **o: InFloat32(**o).half(), "float32 copy"),
    "float64": (lambda **o: Model(**o).double(), ""),
    "compiled": (CompiledStandIn, "compiled"),
    "columns of -1e9": (masked_columns(-1e9), "3 of 20 columns"),
    "columns of -inf": (masked_columns(-torch.inf), "3 of 20 columns"),
    "dropout of all kinds": (FunctionalDropout, ""),
    "cannot be copied": (NoCopy, "cannot be copied"),
}


MODELS = [Attention, Model, Wrapped, Masked, FunctionalDropout, NoCopy]


@pytest.fixture
def models():
    """Return the models above, by name; new ones are always the same."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    named = {model.__name__: model for model in MODELS}
    return SimpleNamespace(frozen=frozen, **named)


@pytest.fixture(params=SITUATIONS)
def situation(request, models):
    """Return what makes a model, and what the notes have to say of it."""
    return SITUATIONS[request.param]
