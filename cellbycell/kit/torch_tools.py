"""Tensors as arrays, and the state of a model that cannot be copied."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from .outputs import named_parts

HALVES = {torch.float16, torch.bfloat16}


def as_array(x: torch.Tensor) -> np.ndarray:
    """Return a tensor of any device and type as an array."""
    x = x.detach().cpu()
    return (x.float() if x.dtype in HALVES else x).numpy()


def arguments_of(model: nn.Module) -> dict[str, inspect.Parameter]:
    """Return the arguments of a model's forward, by name.

    A wrapper with **kwargs also has the arguments of the model inside.
    """
    try:
        found = dict(inspect.signature(model.forward).parameters)
    except ValueError:  # TorchScript has no Python signature
        names = [a.name for a in model.forward.schema.arguments[1:]]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return {n: inspect.Parameter(n, kind, default=None) for n in names}
    kinds = {p.kind for p in found.values()}
    inside = [*model.children()]
    if inspect.Parameter.VAR_KEYWORD in kinds and len(inside) == 1:
        others = arguments_of(inside[0]).items()
        kinds = {
            inspect.Parameter.VAR_KEYWORD,
            inspect.Parameter.VAR_POSITIONAL,
        }
        found = {
            name: p.replace(default=None)
            for name, p in others
            if p.kind not in kinds
        } | found
    return found


def has_own_forward(module: nn.Module) -> bool:
    """Return whether a module's forward is replaced by another function."""
    return "forward" in vars(module) and not isinstance(
        module, torch.jit.ScriptModule
    )


def only_compiled(module: nn.Module) -> bool:
    """Return whether a module's forward is its own, but compiled."""
    forward = vars(module)["forward"]
    inside = getattr(forward, "_torchdynamo_orig_callable", None)
    return getattr(inside, "__func__", None) is type(module).forward


def no_hooks(model: nn.Module) -> dict[int, Any]:
    """Return a memo that gives deepcopy a model's empty dicts of hooks.

    Each module has ten of them; they take half of the time of a copy.
    """
    parts = [x for module in model.modules() for x in vars(module).values()]
    empty = (x for x in parts if type(x) is OrderedDict and not x)
    return {id(x): OrderedDict() for x in empty}


def how_to_restore(model: nn.Module) -> Iterator[Callable[[], Any]]:
    """Yield functions that restore a model's present state."""
    for p in model.parameters():
        yield partial(p.requires_grad_, p.requires_grad)
        yield partial(setattr, p, "grad", p.grad)
    for module in model.modules():
        for part in (module._parameters, module._buffers, vars(module)):
            for x in part.values():
                if isinstance(x, torch.Tensor):
                    yield partial(x.data.copy_, x.detach().clone())
            yield part.clear
            yield partial(part.update, dict(part))


def tensors_in(output: Any) -> Iterator[torch.Tensor]:
    """Yield the floating tensors of a model's or a module's output."""
    if isinstance(output, torch.Tensor):
        if output.is_floating_point() and not output.is_nested:
            yield output
    else:
        for _, _, part in named_parts(output):
            if part is not output:
                yield from tensors_in(part)
