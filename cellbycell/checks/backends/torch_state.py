"""A PyTorch model, its copies, and its state afterwards."""

from __future__ import annotations

import copy
import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from torch import nn

from ..model_io import begins_with_pads, named_parts, required
from .base import Ids, WrappedModel, generators_kept

# NumPy knows neither bfloat16 nor the types of eight bits.
HALVES = {torch.float16, torch.bfloat16}
HALVES |= {torch.float8_e4m3fn, torch.float8_e5m2}


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


class TorchState(WrappedModel):
    """An nn.Module and its copies, with notes about it.

    The parameters of all copies share their values. `copy` restores those
    that were changed.
    """

    def __init__(
        self,
        model: nn.Module,
        ids: Ids,
        pad_id: int | None = None,
        call: Callable | None = None,
        step: Callable | None = None,
    ) -> None:
        self.notes, self.reinitialised = [], {}
        self.wants: set[str] = set()  # arguments; shared by all copies
        self.seed = 0  # of the last call
        if hasattr(model, "_orig_mod"):
            model = model._orig_mod  # type: ignore[assignment]
            self.note(
                "The model is compiled: the kit tests the original model."
            )
        if isinstance(
            model, (nn.DataParallel, nn.parallel.DistributedDataParallel)
        ):
            model = model.module
        self.model, self.ids, self.pad_id = model, ids, pad_id
        self.call, self.step = call, step
        self.names = {} if call else arguments_of(model)
        self.required = required(self.names)
        self.begins_with_pads = begins_with_pads(self.real(ids)[-1])
        types = {p.dtype for p in model.parameters() if p.is_floating_point()}
        self.half = types & HALVES
        self.eps = max(
            [torch.finfo(t).eps for t in types - HALVES] or [2.0**-23]
        )
        # A model of Transformers wants masks of whole numbers.
        whole = hasattr(model, "config")
        self.mask_types = [torch.long, torch.bool][:: 1 if whole else -1]
        self.undo: list[Callable[[], Any]] = []
        self.shared: dict[int, torch.Tensor] = {}
        self.versions: dict[int, int] = {}

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Restore the model and all generators at the end."""
        precision = torch.get_float32_matmul_precision()
        devices = {p.device for p in self.model.parameters()}
        if any(
            type(p.data).__name__ == "DTensor" for p in self.model.parameters()
        ):
            raise ValueError(
                "the model's parameters are cut over machines (DTensor): ask "
                "a whole one, before fully_shard or parallelize_module"
            )
        if any(device.type == "meta" for device in devices):
            raise ValueError(
                "the model is on the device meta, where weights have no "
                "values: load them first"
            )
        with ExitStack() as stack:
            stack.enter_context(generators_kept())
            cuda = [device for device in devices if device.type == "cuda"]
            stack.enter_context(torch.random.fork_rng(cuda))
            # A caller may have switched gradients off.
            stack.enter_context(torch.inference_mode(False))
            stack.enter_context(torch.enable_grad())
            torch.set_float32_matmul_precision("highest")
            stack.callback(torch.set_float32_matmul_precision, precision)
            stack.callback(self.restore)
            self.find_closures()
            self.reinitialise_zero_weights()
            yield

    def find_closures(self) -> None:
        """Make sure that calls reach the copy, or test the model itself.

        A copied module still calls the original if its forward is a function
        around the original's, or if `call` calls the original.
        """
        own = [
            name
            for name, part in self.model.named_modules()
            if has_own_forward(part) and not only_compiled(part)
        ]
        if own:
            self.use_original(
                f"the forward of {own[0] or 'the model'} was replaced"
            )
        elif self.call is not None and self.answers_without():
            self.use_original("call= calls this model, not its argument")
            if self.answers_without():
                self.restore()
                raise ValueError(
                    "call= does not call the model: call its first argument"
                )

    def answers_without(self) -> bool:
        """Return whether the outputs do not depend on the copy's weights."""
        answers = []
        for spoiled in (False, True):
            twin = self.copy()
            self.versions.clear()  # so the next copy gets new values
            for p in twin.model.parameters():
                if spoiled and p.is_floating_point():
                    p.data.fill_(torch.nan)
            try:
                answers.append(twin.outputs(self.ids))
            except Exception:  # each check reports it
                return False
        return np.array_equal(*answers) and bool(np.any(answers[0]))

    def use_original(self, reason: str) -> None:
        """Test the model itself, and restore its state each time."""
        self.note(
            "The kit tests the model itself and restores its state, because "
            f"{reason}."
        )
        self.shared.clear()
        self.undo = [*how_to_restore(self.model)]

    def copy(self, as_is: bool = False) -> Self:
        twin = copy.copy(self)
        self.restore()
        if not self.undo:
            memo = {id(p): q for p, q in self.parameters()}
            try:
                twin.model = copy.deepcopy(
                    self.model, no_hooks(self.model) | memo
                )
            except Exception as error:
                kind = type(error).__name__
                self.use_original(f"it cannot be copied ({kind})")
                twin.undo = self.undo
        if self.half and self.undo:
            twin.eps = self.eps = max(torch.finfo(t).eps for t in self.half)
        elif self.half:
            twin.model = twin.model.float()
            names = ", ".join(sorted(str(t) for t in self.half))
            self.note(
                f"The model is in {names}: the kit tests a float32 copy."
            )
        for part in twin.model.modules():
            if has_own_forward(part) and only_compiled(part):
                self.note(
                    "The kit tests compiled modules as they were before."
                )
                del part.forward
        for p in twin.model.parameters():
            if p.is_floating_point():
                p.requires_grad_(True)
            p.grad = None
        twin.model.eval()
        for name, values in ({} if as_is else self.reinitialised).items():
            twin.assign(name, values)
        return twin

    def parameters(self) -> Iterator[tuple[nn.Parameter, nn.Parameter]]:
        """Yield (a parameter, its counterpart in a new copy)."""
        for p in self.model.parameters():
            if type(p) is not nn.Parameter:
                continue
            if id(p) not in self.shared:
                numbers = p.detach().clone()
                if p.dtype in HALVES:
                    numbers = numbers.float()
                self.shared[id(p)] = numbers
            elif self.shared[id(p)]._version != self.versions.get(id(p)):
                self.shared[id(p)].copy_(p.detach())
            numbers = self.shared[id(p)]
            self.versions[id(p)] = numbers._version
            yield p, nn.Parameter(numbers, p.requires_grad)

    def restore(self) -> None:
        """Restore the state of a model that is tested itself."""
        for step in self.undo:
            step()

    def frozen(self) -> list[str]:
        self.restore()
        named = self.model.named_parameters()
        return [name for name, p in named if not p.requires_grad]
