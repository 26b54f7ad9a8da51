"""The generators that a model may draw from, kept as they were."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


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
