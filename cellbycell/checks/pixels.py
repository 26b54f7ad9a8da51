"""Models that read pictures: patches of pixels stand for tokens.

Each patch that occurs in the given pictures gets an id, and the model is
called through a function that puts the patches of some ids together. So the
checks exchange, shuffle and take away patches as they do tokens, and know
nothing of pixels.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from .model_io import find_logits, plain

# What is not asked of pictures, and why.
OF_WORDS = (
    dict.fromkeys(
        (
            "causality",
            "causality_train",
            "causality_grad",
            "prefix_consistency",
            "cache_consistency",
        ),
        "not for pictures: no patch comes later than another.",
    )
    | dict.fromkeys(
        (
            "target_alignment",
            "loss_padding_invariance",
            "initial_loss",
            "greedy_decoding",
            "overfit_one_batch",
        ),
        "not for pictures: patches have no next token.",
    )
    | {"source_dependence": "not for pictures: there is no source."}
)
PAD = 0  # the id of pads, where there is a mask


class Pixels:
    """Pictures as ids, and a call that makes pictures of ids.

    pictures: (batch, height, width, colours) for Keras, colours before height
    and width for PyTorch; size: the side of a patch; mask (B, T): True at
    patches, False at pads, or None; call: a function of the model and
    pictures, and of the mask if there is one. Raises ValueError if they do
    not fit.
    """

    def __init__(
        self,
        model: Any,
        pictures: Any,
        size: int,
        mask: Any = None,
        call: Callable | None = None,
    ) -> None:
        pictures = np.asarray(plain(pictures), dtype=np.float32)
        whole = isinstance(size, (int, np.integer)) and size > 0
        if not whole or pictures.ndim != 4:
            raise ValueError(
                "with patch=, the side of a patch in pixels, the kit takes "
                "pictures: (batch, height, width, colours) for Keras, colours "
                f"before height for PyTorch, not {pictures.shape}, {size!r}"
            )
        if colours_first(model):
            pictures = pictures.transpose(0, 2, 3, 1)
        count, height, width, colours = pictures.shape
        if height % size or width % size:
            raise ValueError(
                f"patches of {size} do not fill pictures of {height} by "
                f"{width}: is this the right order of axes?"
            )
        self.call, self.size, self.masked = call, size, mask is not None
        self.grid = height // size, width // size
        cut = pictures.reshape(
            count, self.grid[0], size, self.grid[1], size, colours
        )
        patches = cut.swapaxes(2, 3).reshape(-1, size, size, colours)
        table, ids = np.unique(patches, axis=0, return_inverse=True)
        self.ids = ids.reshape(count, -1)  # (B, T)
        self.table = table
        if mask is not None:
            mask = np.asarray(plain(mask)).astype(bool)
            if call is None or mask.shape != self.ids.shape:
                raise ValueError(
                    f"patch_mask= should be {self.ids.shape}, True at patches,"
                    " with call=, a function of the model, pictures and mask"
                )
            self.table = np.concatenate([np.zeros_like(table[:1]), table])
            self.ids = np.where(mask, self.ids + 1, PAD)

    def __call__(self, model: Any, ids: Any) -> Any:
        """Return the outputs of the patches alone, (B, T, ...)."""
        rows = np.asarray(plain(ids))
        if rows.shape[1] != self.grid[0] * self.grid[1]:
            raise ValueError("a picture has as many patches as before")
        cut = self.table[rows].reshape(-1, *self.grid, *self.table.shape[1:])
        height, width = (self.size * side for side in self.grid)
        cut = cut.swapaxes(2, 3).reshape(len(rows), height, width, -1)
        given = [cut, rows != PAD] if self.masked else [cut]
        if colours_first(model):
            given[0] = cut.transpose(0, 3, 1, 2)
        given = [same_kind(ids, model, x) for x in given]
        output = (self.call or type(model).__call__)(model, *given)
        found, _ = find_logits(output, rows.shape)
        extra = found.shape[1] - rows.shape[1]
        return (
            found[:, extra:] if extra > 0 and len(found.shape) > 2 else found
        )

    def other_pads(self) -> None:
        """Give pads other pixels, as if something were drawn there."""
        drawn = np.random.default_rng(0).uniform(size=self.table.shape[1:])
        self.table[PAD] = drawn * np.abs(self.table).max()


def colours_first(model: Any) -> bool:
    """Return whether a model takes colours before height and width."""
    keras = sys.modules.get("keras")
    return keras is None or not isinstance(model, keras.layers.Layer)


def same_kind(ids: Any, model: Any, x: np.ndarray) -> Any:
    """Return an array as a tensor of the framework of ids."""
    if colours_first(model):
        import torch

        is_float = x.dtype == np.float32
        kinds = [p.dtype for p in model.parameters() if p.is_floating_point()]
        kind = (kinds or [torch.float32])[0] if is_float else None
        x = np.ascontiguousarray(x)
        return torch.as_tensor(x, dtype=kind, device=ids.device)
    import tensorflow as tf

    return tf.constant(x)
