"""A model of either framework, wrapped for the checks: NumPy in, NumPy out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


@contextmanager
def open_model(
    argument: str,
    model: Any,
    ids: tuple[np.ndarray, ...],
    pad_id: int | None,
    call: Callable | None = None,
    step: Callable | None = None,
) -> Iterator[Any]:
    """Give the model, wrapped for the checks; restore it at the end.

    argument: its name in messages. A framework is imported only if the model's
    own code has imported it.
    """
    torch, keras = sys.modules.get("torch"), sys.modules.get("keras")
    # On PyTorch, a layer of Keras is a module, too, and takes no masks as one.
    if keras is not None and isinstance(model, keras.layers.Layer):
        if keras.backend.backend() != "tensorflow":
            raise TypeError(
                f"{argument} is a Keras model on {keras.backend.backend()}: "
                "the kit asks Keras models on TensorFlow alone, so set "
                "KERAS_BACKEND=tensorflow before keras is imported"
            )
        from .keras import KerasModel as Wrapped
    elif torch is not None and isinstance(model, torch.nn.Module):
        from .torch import TorchModel as Wrapped
    else:
        kind = f"a {type(model).__name__}"
        advice = (
            "For a function around a model, give the model, and the "
            "function as call=; for weights, load them into a model."
        )
        if isinstance(model, type):
            kind, advice = f"the class {model.__name__}", "Make an instance."
        raise TypeError(
            f"{argument} should be an nn.Module or a Keras model; it is "
            f"{kind}. {advice}"
        )
    wrapped: Any = Wrapped(model, ids, pad_id, call, step)
    decoders = {"decoder_input_ids", "decoder_token_ids"} & {*wrapped.names}
    if decoders and len(ids) == 1:
        raise ValueError(
            f"{argument} is an encoder-decoder, which takes {decoders.pop()}: "
            "give decoder_ids, the input of its decoder, after token_ids"
        )
    with wrapped.opened():
        yield wrapped
