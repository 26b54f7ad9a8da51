"""What the tests of the chapters share."""

import numpy as np
import pytest
from hypothesis import Phase, settings

# Few examples, the same in every run, because the frameworks are slow. A
# failure is shown as it was found: to look for a smaller one would build whole
# models for minutes.
settings.register_profile(
    "chapters",
    max_examples=15,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    report_multiple_bugs=False,
)
settings.load_profile("chapters")


@pytest.fixture(scope="module")
def book(chapter, request):
    """The variables of a file's chapter after a run; not to be changed."""
    return chapter(request.path.stem.removeprefix("test_"))


@pytest.fixture(scope="session")
def as_module():
    """Return a function: run, weights -> a module for the kit.

    run(weights, token_ids, cache) returns logits and a cache; weights: a
    dict of tensors or arrays.
    """
    import torch

    class Table(torch.nn.Embedding):
        __getitem__ = torch.nn.Embedding.__call__

    class Module(torch.nn.Module):
        def __init__(self, run, weights):
            super().__init__()
            self.run, self.parts = run, torch.nn.ParameterDict()
            for name, weight in weights.items():
                part = torch.nn.Parameter(torch.as_tensor(weight).clone())
                # The bias of DeepSeek's router is not learned by gradients.
                part.requires_grad_("correction" not in name)
                if "embed" in name:
                    self.name, self.table = name, Table(*part.shape)
                    self.table.weight = part
                else:
                    self.parts[name.replace(".", "/")] = part

        def forward(self, token_ids, cache=None):
            parts = {n.replace("/", "."): x for n, x in self.parts.items()}
            weights = parts | {self.name: self.table}
            logits, kept = self.run(weights, token_ids, cache or [])
            return logits if cache is None else (logits, kept)

    return Module


@pytest.fixture(scope="session")
def asked():
    """What the kit is told of a whole model: ids, targets, pads, a loss."""
    import torch

    return {
        "token_ids": [
            [5, 3, 7, 4, 9, 11, 4, 3, 8, 6],
            [8, 6, 12, 10, 11, 3, 0, 0, 0, 0],
        ],
        "targets": [
            [3, 7, 4, 9, 11, 4, 3, 8, 6, 5],
            [6, 12, 10, 11, 3, 9, 0, 0, 0, 0],
        ],
        "pad_id": 0,
        "loss": lambda logits, targets: torch.nn.functional.cross_entropy(
            logits.mT, targets, ignore_index=0
        ),
    }


@pytest.fixture(scope="session")
def often():
    """The questions that the kit asks every model."""
    return {
        "causality",
        "prefix_consistency",
        "cache_consistency",
        "padding_invariance",
        "batch_invariance",
        "position_dependence",
        "loss_padding_invariance",
    }


def to_torch(given):
    """Return a tensor for an array, and PyTorch's type for NumPy's."""
    import torch

    if isinstance(given, np.dtype):
        return getattr(torch, given.name)
    if not isinstance(given, np.ndarray):
        return given
    if given.dtype.name == "bfloat16":
        return torch.from_numpy(given.astype(np.float32)).bfloat16()
    return torch.from_numpy(given)


def to_tf(given):
    """Return a tensor for an array, and TensorFlow's type for NumPy's."""
    import tensorflow as tf

    if isinstance(given, np.dtype):
        return tf.as_dtype(given)
    return tf.constant(given) if isinstance(given, np.ndarray) else given


def to_arrays(found):
    """Return an array for a tensor, and a tuple of arrays for a tuple."""
    if isinstance(found, tuple):
        return tuple(map(to_arrays, found))
    if hasattr(found, "detach"):
        found = found.detach()
        if str(found.dtype) == "torch.bfloat16":
            return found.float().numpy().astype("bfloat16")
    return found.numpy() if hasattr(found, "numpy") else found


def on_arrays(function, to_tensor):
    """Return a function that takes and returns arrays, not tensors."""

    def run(*given, **named):
        named = {key: to_tensor(value) for key, value in named.items()}
        return to_arrays(function(*map(to_tensor, given), **named))

    return run


@pytest.fixture(scope="module")
def twins(book):
    """Return a function: name -> that function of the chapter and its twin.

    Both take arrays, which become the framework's tensors, and return arrays.
    """
    return lambda name: (
        on_arrays(book[name], to_torch),
        on_arrays(book[f"{name}_tf"], to_tf),
    )


@pytest.fixture(scope="session")
def of_both():
    """Return a function: weights of Transformers -> as in a checkpoint."""

    def named(weights):
        weights = dict(weights)
        for name in [*weights]:
            if name.endswith("experts.gate_up_proj"):
                start = name.removesuffix(".gate_up_proj")
                for e, both in enumerate(weights.pop(name)):
                    gate, up = both.chunk(2)
                    weights[f"{start}.{e}.gate_proj.weight"] = gate
                    weights[f"{start}.{e}.up_proj.weight"] = up
                for e, down in enumerate(weights.pop(f"{start}.down_proj")):
                    weights[f"{start}.{e}.down_proj.weight"] = down
        return weights

    return named
