"""Tensors as arrays, and the state of a model that cannot be copied."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

HALVES = {torch.float16, torch.bfloat16}


def as_array(x: torch.Tensor) -> np.ndarray:
    """Return a tensor of any device and type as an array."""
    x = x.detach().cpu()
    return (x.float() if x.dtype in HALVES else x).numpy()


def how_to_restore(model: nn.Module) -> Iterator[Callable[[], Any]]:
    """Yield functions that give a model the state back that it has now."""
    for p in model.parameters():
        yield lambda p=p, mode=p.requires_grad: p.requires_grad_(mode)
        yield lambda p=p, grad=p.grad: setattr(p, "grad", grad)
    for module in model.modules():
        for part in (module._parameters, module._buffers, vars(module)):
            for x in part.values():
                if isinstance(x, torch.Tensor):
                    now = x.detach().clone()
                    yield lambda x=x, now=now: x.data.copy_(now)
            yield (
                lambda part=part, now=dict(part): (
                    part.clear() or part.update(now)
                )
            )


def tensors_in(output: Any) -> Iterator[torch.Tensor]:
    """Yield the floating tensors of a model's or a module's output."""
    if isinstance(output, torch.Tensor):
        if output.is_floating_point() and not output.is_nested:
            yield output
    elif isinstance(output, (list, tuple)):
        for part in output:
            yield from tensors_in(part)
    elif hasattr(output, "values"):
        yield from tensors_in([*output.values()])
    elif hasattr(output, "__dict__"):
        yield from tensors_in([*vars(output).values()])
