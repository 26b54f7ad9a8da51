"""What the models of both frameworks share: weights as arrays, by name."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np

from ..model_io import AMBIGUOUS_MASKS, CACHES, masks_for, tokens_in
from ..verdicts import Failed

Ids = tuple[np.ndarray, ...]
# Takes the shape of the outputs, returns factors for them.
Cotangent = Callable[[tuple[int, ...]], np.ndarray]
# A weight with only smaller entries hides the layers before it.
NEAR_ZERO = 1e-2
# A rate of dropout at which layers still draw, but drop nothing.
NO_RATE = 1e-12
# The usual rate of AdamW.
RATE = 3e-4


class Unreadable(Exception):
    """Raised by `read` if the model returns no cache."""


class WrappedModel:
    """A model as the checks see it: NumPy in, NumPy out.

    All methods except `copy` may change the model; the checks call them on
    copies. eps is the smallest relative step of the type in which the model
    computes; names are its arguments; mask_polarity is where masks are True
    if their name does not tell: at "tokens" or at "pads".
    """

    model: Any
    eps: float
    names: Any
    pad_id: int | None
    call: Callable | None
    step: Callable | None
    notes: list[str]
    reinitialised: dict[str, np.ndarray]
    mask_polarity: str | None = "tokens"
    required: set[str] = set()
    hub_cache = False  # whether it is KerasHub's, without masks
    gives_logits = True  # whether its losses usually take logits

    def copy(self, as_is: bool = False) -> WrappedModel:
        """Return a copy in evaluation mode, as if new.

        It is valid until the next copy is made. as_is: with the model's own
        weights, also those that `reinitialise_zero_weights` replaces.
        """
        raise NotImplementedError

    def outputs(
        self, ids: Ids, training: bool = False, seed: int = 0, **options: bool
    ) -> np.ndarray:
        """Return the outputs for ids, (B, T, ...), float32 or float64.

        seed: for all generators. options: mask, whether to pass masks of
        pads if the model takes them, True by default; default, whether to
        leave use_cache= at its default; positions, whether to pass positions
        that do not count pads.
        """
        raise NotImplementedError

    def weights(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield (name, values) of each weight; tied weights come once."""
        raise NotImplementedError

    def assign(self, name: str, values: np.ndarray) -> None:
        """Give the weight of this name new values."""
        raise NotImplementedError

    def buffers(self) -> dict[str, np.ndarray]:
        """Return {name: values} of numbers that files hold and no step moves.

        PyTorch's persistent buffers; Keras has them among its weights.
        """
        return {}

    def assign_buffer(self, name: str, values: np.ndarray) -> None:
        """Give the buffer of this name new values."""
        raise NotImplementedError

    def reordered(self, cache: Any, order: np.ndarray) -> Any:
        """Return a cache with its rows in this order, as beams need it.

        Raises NotRun if the cache is of a kind that the kit does not know.
        """
        raise NotImplementedError

    def frozen(self) -> list[str]:
        """Return the names of the weights that are frozen."""
        raise NotImplementedError

    def gradient(
        self, name: str, ids: Ids, cotangent: Cotangent
    ) -> np.ndarray | None:
        """Return a weight's gradient of the outputs times cotangent(shape)."""
        raise NotImplementedError

    def gradients(self, ids: Ids, cotangent: Cotangent) -> dict[str, str]:
        """Return {weight: "none", "wild", "zero" or "right"}: its gradient.

        It is that of the outputs times cotangent(shape), and of all other
        tensors that the model returns; "none" if they do not depend on it.
        """
        raise NotImplementedError

    def training_copy(self) -> WrappedModel:
        """Return a copy in training mode, valid until the next copy is made.

        Its dropout and its frozen parts are those of the model.
        """
        raise NotImplementedError

    def unregistered(self) -> str:
        """Return which list of layers hides its parameters, or ""."""
        return ""

    def padding_rows(self) -> dict[str, int]:
        """Return {table: the row of pads, which gets no gradient}."""
        return {}

    def slope(
        self, ids: Ids, cotangent: Cotangent, gradients: bool = True
    ) -> tuple[float, dict[str, np.ndarray | None]]:
        """Return the outputs times cotangent(shape), and its gradients.

        In training mode, after seeding; {trainable weight: its gradient},
        None if it gets none; {} without gradients.
        """
        raise NotImplementedError

    def one_step(
        self,
        ids: Ids,
        targets: np.ndarray | None,
        function: Callable | None,
        optimizer: Callable | None,
    ) -> tuple[dict[str, np.ndarray], ...]:
        """Return weights before and after a step, and their gradients.

        In the model's own types and training mode. optimizer: makes one from
        the trainable parameters; None for AdamW.
        """
        raise NotImplementedError

    def table(self, ids: Ids) -> str | None:
        """Return the name of the weight in which ids[-1] are looked up."""
        raise NotImplementedError

    def tables(self) -> set[str]:
        """Return the names of the weights in which layers look ids up."""
        raise NotImplementedError

    def trace(
        self, ids: Ids, run: Callable | None = None, **options: Any
    ) -> list[tuple]:
        """Return (name, output, input) of each layer, in the order of calls.

        The first tensor of each, as an array; None for an input without
        floats. run: calls the model, by default `outputs` with ids and these
        options.
        """
        raise NotImplementedError

    def kind(self, name: str) -> str:
        """Return the name of the class of the layer of this name."""
        raise NotImplementedError

    def selects(self, length: int) -> str:
        """Return what lets a token of so long rows read only some others.

        An entry of the configuration or a layer; "" if none is known.
        """
        return ""

    def is_encoder(self) -> bool:
        """Return whether the model says that it looks both ways."""
        return "encoder" in type(self.model).__name__.lower()

    def disable_dropout(self) -> None:
        """Set every rate of dropout so low that nothing is dropped."""
        raise NotImplementedError

    def cached_part(
        self, ids: Ids, start: int, cache: Any, mask: bool, positions: bool
    ) -> tuple[np.ndarray, Any]:
        """Return the logits of ids[-1] from start on, and the new cache.

        cache: from the previous call, None at first; mask and positions:
        whether to pass them.
        """
        raise NotImplementedError

    @property
    def cache_name(self) -> str | None:
        """The argument that takes a cache, if there is one."""
        return next((name for name in CACHES if name in self.names), None)

    @property
    def ambiguous_masks(self) -> list[str]:
        """The model's masks whose names do not say what True means."""
        return [name for name in AMBIGUOUS_MASKS if name in self.names]

    @property
    def takes_mask(self) -> bool:
        """Whether the model takes a mask of pads that the kit knows."""
        one = np.ones((1, 1), bool)
        return bool(masks_for(self.names, (one, one), self.mask_polarity))

    def real(self, ids: Ids) -> Ids:
        """Return which ids are tokens and not pads, an array for each."""
        return tuple(
            tokens_in(x, self.pad_id, decoder=i > 0) for i, x in enumerate(ids)
        )

    def masks(self, ids: Ids, mask: bool = True) -> dict[str, np.ndarray]:
        """Return the masks to pass; mask: also those with a default."""
        if self.pad_id is None:
            return {}
        names = self.names if mask else self.required
        masks = masks_for(names, self.real(ids), self.mask_polarity)
        if masks:
            said = f"The model gets {', '.join(masks)}"
            said += f" from pad_id={self.pad_id}"
            if any(name in masks for name in self.ambiguous_masks):
                said += f", True at {self.mask_polarity}"
            self.note(f"{said}.")
        return masks

    def read(self, ids: Ids, cuts: list[int], **given: bool) -> np.ndarray:
        """Return the logits of ids[-1], read with a cache, (B, T, C).

        cuts: where one call ends and the next begins; given: mask and
        positions. Raises Unreadable if the model returns no cache.
        """
        cache, found = None, []
        for start, end in pairwise([0, *cuts, ids[-1].shape[1]]):
            part = (*ids[:-1], ids[-1][:, :end])
            logits, cache = self.cached_part(part, start, cache, **given)
            if cache is None:
                raise Unreadable
            sizes = len(logits), logits.shape[1], len(part[-1]), end - start
            if sizes[:2] != sizes[2:]:
                raise Failed(
                    f"With a cache, new ids {sizes[2:]} give outputs "
                    f"{logits.shape}: check the shapes of calls with a cache."
                )
            found.append(logits)
        return np.concatenate(found, axis=1)

    def reinitialise_zero_weights(self) -> None:
        """Draw new values for weights that hide the layers before them.

        A last layer, or the end of a residual branch, that begins at zero or
        near it hides all mistakes before it. Biases hide nothing, and the
        rows of a table of zeros are all equal, so both stay.
        """
        rng, found = np.random.default_rng(0), {}
        weights, frozen = [*self.copy().weights()], {*self.frozen()}
        frozen = frozen if len(frozen) < len(weights) else set()
        kept = frozen | self.tables()
        for name, values in weights:
            is_place = re.search("pos|wpe", name.lower())
            if name in kept or is_place or not values.size:
                continue
            near = np.abs(values).max() < NEAR_ZERO
            sizes = [n for n in values.shape if n > 1]
            if len(sizes) > 1:
                if near or (values.flat[0] == values).all():
                    spread = (2 / sum(sizes[-2:])) ** 0.5
                    found[name] = spread * rng.normal(size=values.shape)
            elif near and not re.search("bias|beta|shift", name.lower()):
                signs = rng.choice([-1, 1], values.shape)
                found[name] = signs * rng.uniform(0.3, 0.6, values.shape)
        self.reinitialised = {
            n: v.astype(np.float32) for n, v in found.items()
        }

    def note(self, sentence: str) -> None:
        """Add a sentence to the notes of the report, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def note_output(self, where: str) -> None:
        """Note which part of the output is compared."""
        if where != "output":
            self.note(f"The compared output is {where}.")

    def perturb_weights(self) -> None:
        """Change each weight by the smallest relative step, up or down."""
        rng = np.random.default_rng(0)
        for name, values in self.weights():
            signs = rng.integers(0, 2, values.shape, dtype=np.int8) * 2 - 1
            one = values.dtype.type(1)  # float64 would double a large weight
            self.assign(
                name, values * (one + signs * one.dtype.type(self.eps))
            )

    def scale_up(self) -> None:
        """Scale small matrices up to the spread of Glorot and Bengio."""
        for name, values in self.weights():
            if values.ndim > 1 and (found := values.std()) > 0:
                wanted = (2 / sum(values.shape[-2:])) ** 0.5
                if wanted > found:
                    self.assign(name, values * (wanted / found))

    def close_sinks(self) -> None:
        """Remove the sinks of attention: they get no weight."""
        for name, values in self.weights():
            if "sink" in name.lower():
                self.assign(name, np.full_like(values, -1e4))

    def read_table(self, ids: Ids) -> tuple[str, np.ndarray] | None:
        """Return the table in which ids are looked up: its name, (N, D)."""
        name = self.table(ids)
        if name is None:
            return None
        return name, dict(self.weights())[name].copy()


def random_mean(shape: tuple[int, ...]) -> np.ndarray:
    """Return random factors for outputs, the size of those of a mean."""
    rng = np.random.default_rng(0)
    return rng.normal(size=shape) / (shape[0] * shape[1])


def seed_all(seed: int) -> None:
    """Seed Python's and NumPy's generators."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002


@contextmanager
def generators_kept() -> Iterator[None]:
    """Restore Python's and NumPy's generators at the end."""
    ours, numpys = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(ours)
        np.random.set_state(numpys)  # noqa: NPY002


def set_dropout(space: dict[str, Any], value: float, rate: str = "") -> None:
    """Set every rate of dropout in a dict of attributes."""
    for name, old in space.items():
        if isinstance(old, float) and old > 0:
            if "drop" in name.lower() or name == rate:
                space[name] = value
