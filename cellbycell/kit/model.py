"""What the models of both frameworks share: weights as arrays, by name."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

Ids = tuple[np.ndarray, ...]
# From the shape of the outputs to numbers that they are multiplied by.
Pull = Callable[[tuple[int, ...]], np.ndarray]


class AskedModel:
    """A model as the checks ask it: NumPy in, NumPy out.

    All methods but `copy` may change the model that they are called on; the
    checks call them on copies. eps is the smallest relative step of the type
    that the model computes in.
    """

    eps: float
    takes_mask: bool
    notes: list[str]

    def copy(self) -> AskedModel:
        """Return an independent copy in evaluation mode, as if new."""
        raise NotImplementedError

    def outputs(
        self,
        ids: Ids,
        training: bool = False,
        mask: bool = True,
        seed: int = 0,
    ) -> np.ndarray:
        """Return the outputs for ids, (B, T, ...), float32 or float64.

        mask: whether to give the masks of pads that the model can take;
        seed: that of all generators.
        """
        raise NotImplementedError

    def weights(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield (name, numbers) of each weight; tied ones come once."""
        raise NotImplementedError

    def assign(self, name: str, values: np.ndarray) -> None:
        """Give the weight of this name other numbers."""
        raise NotImplementedError

    def gradients(
        self, ids: Ids, pull: Pull, everything: bool = False
    ) -> dict[str, np.ndarray | None]:
        """Return {weight: gradient} of the outputs times pull(shape).

        None for a weight that the outputs do not come from. everything:
        other tensors that the model returns count, too.
        """
        raise NotImplementedError

    def table(self, ids: Ids) -> str | None:
        """Return the name of the weight in which ids[-1] are looked up."""
        raise NotImplementedError

    def note(self, sentence: str) -> None:
        """Remember a sentence for the report, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def note_output(self, where: str) -> None:
        """Remember which part of the output is compared."""
        if where != "output":
            self.note(f"What is compared is {where}.")

    def jiggle(self) -> None:
        """Move each weight up or down by the smallest relative step."""
        rng = np.random.default_rng(0)
        for name, values in [*self.weights()]:
            signs = rng.choice([-1.0, 1.0], values.shape)
            self.assign(name, values * (1 + self.eps * signs))

    def scale_up(self) -> None:
        """Scale small matrices up to the spread of Glorot and Bengio."""
        for name, values in [*self.weights()]:
            if values.ndim > 1 and (found := values.std()) > 0:
                wanted = (2 / sum(values.shape[-2:])) ** 0.5
                self.assign(name, values * max(1.0, wanted / found))

    def read_table(self, ids: Ids) -> tuple[str, np.ndarray] | None:
        """Return the table in which ids are looked up: its name, (N, D)."""
        name = self.table(ids)
        return None if name is None else (name, dict(self.weights())[name])


def seed_all(seed: int) -> None:
    """Seed Python's and NumPy's generators."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002


@contextmanager
def generators_kept() -> Iterator[None]:
    """Give Python's and NumPy's generators back as they were."""
    ours, numpys = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(ours)
        np.random.set_state(numpys)  # noqa: NPY002


def no_dropout(space: dict[str, Any], rate: str = "") -> None:
    """Set every number of dropout in a dict of attributes to zero."""
    for name, value in space.items():
        if isinstance(value, float):
            if "drop" in name.lower() or name == rate:
                space[name] = 0.0
