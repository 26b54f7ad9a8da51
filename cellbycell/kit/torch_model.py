"""A PyTorch model as the kit asks it."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn

from .model import AskedModel, Ids, Pull, generators_kept, no_dropout, seed_all
from .outputs import as_rows, find_logits, masks_for, required
from .torch_tools import (
    HALVES,
    as_array,
    how_to_restore,
    no_hooks,
    tensors_in,
)


class TorchModel(AskedModel):
    """An nn.Module, its copies, and what was noticed about it."""

    def __init__(
        self,
        model: nn.Module,
        pad_id: int | None = 0,
        call: Callable | None = None,
    ) -> None:
        self.notes = []
        if hasattr(model, "_orig_mod"):
            model = model._orig_mod  # type: ignore[assignment]
            self.note("The model is compiled: what was compiled is asked.")
        if isinstance(
            model, (nn.DataParallel, nn.parallel.DistributedDataParallel)
        ):
            model = model.module
        self.model, self.pad_id, self.call = model, pad_id, call
        self.names = inspect.signature(model.forward).parameters
        self.takes_mask = bool(masks_for(self.names, (np.ones((1, 1)),), 0))
        types = {p.dtype for p in model.parameters() if p.is_floating_point()}
        self.half = types & HALVES
        self.eps = max(
            [torch.finfo(t).eps for t in types - HALVES] or [2.0**-23]
        )
        # A model of Transformers wants masks of whole numbers.
        whole = hasattr(model, "config")
        self.mask_types = [torch.long, torch.bool][:: 1 if whole else -1]
        self.undo: list[Callable[[], Any]] = []

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Leave the model and all generators as they were, afterwards."""
        precision = torch.get_float32_matmul_precision()
        devices = {p.device for p in self.model.parameters()}
        with ExitStack() as stack:
            stack.enter_context(generators_kept())
            cuda = [device for device in devices if device.type == "cuda"]
            stack.enter_context(torch.random.fork_rng(cuda))
            torch.set_float32_matmul_precision("highest")
            stack.callback(torch.set_float32_matmul_precision, precision)
            stack.callback(self.restore)
            yield

    def copy(self) -> TorchModel:
        """Return an independent copy in evaluation mode, as if new.

        A model that cannot be copied is asked itself, and given its state
        back before each question and at the end.
        """
        twin = copy.copy(self)
        if self.undo:
            self.restore()
        else:
            try:
                twin.model = copy.deepcopy(self.model, no_hooks(self.model))
            except Exception as error:
                kind = type(error).__name__
                self.note(
                    f"The model cannot be copied ({kind}): it is asked "
                    "itself, and its state is restored."
                )
                self.undo = [*how_to_restore(self.model)]
        if self.half and self.undo:
            twin.eps = self.eps = max(torch.finfo(t).eps for t in self.half)
        elif self.half:
            twin.model = twin.model.float()
            names = ", ".join(sorted(str(t) for t in self.half))
            self.note(f"The model is in {names}: a float32 copy is asked.")
        for p in twin.model.parameters():
            if p.is_floating_point():
                p.requires_grad_(True)
            p.grad = None
        twin.model.eval()
        return twin

    def restore(self) -> None:
        """Give a model that cannot be copied its state back."""
        for step in self.undo:
            step()

    def frozen(self) -> list[str]:
        """Return the names of the parameters that are frozen."""
        self.restore()
        named = self.model.named_parameters()
        return [name for name, p in named if not p.requires_grad]

    def tensor(self, ids: np.ndarray) -> torch.Tensor:
        """Return ids on the model's own device."""
        device = next((p.device for p in self.model.parameters()), "cpu")
        return torch.as_tensor(ids, device=device)

    def run(self, ids: Ids, mask: bool = True) -> Any:
        """Call the model; return what it returns."""
        tensors = [self.tensor(x) for x in ids]
        if self.call is not None:
            return self.call(self.model, *tensors)
        named: dict[str, Any] = {}
        if "use_cache" in self.names:
            named["use_cache"] = False
        if len(ids) > 1 and "decoder_input_ids" in self.names:
            named["decoder_input_ids"] = tensors.pop()
        names = self.names if mask else required(self.names)
        masks = masks_for(names, ids, self.pad_id)
        if not masks:
            return self.model(*tensors, **named)
        self.note(f"{', '.join(masks)}: given, from pad_id={self.pad_id}.")
        errors = []
        for kind in self.mask_types:
            given = {n: self.tensor(m).to(kind) for n, m in masks.items()}
            try:
                output = self.model(*tensors, **named, **given)
            except (RuntimeError, TypeError) as error:
                errors.append(error)
            else:
                del self.mask_types[: len(errors)]
                return output
        raise errors[0]

    def seeded(self, seed: int = 0) -> None:
        """Seed every generator that the model may draw from."""
        seed_all(seed)
        on_cpu = all(p.device.type == "cpu" for p in self.model.parameters())
        # On the CPU alone its own generator does, and is seeded sooner.
        (torch.default_generator if on_cpu else torch).manual_seed(seed)

    def logits(self, ids: Ids, mask: bool = True) -> torch.Tensor:
        """Return the logits as a tensor, and note where they were found."""
        found, where = find_logits(self.run(ids, mask), ids[-1].shape)
        self.note_output(where)
        return found

    def outputs(
        self,
        ids: Ids,
        training: bool = False,
        mask: bool = True,
        seed: int = 0,
    ) -> np.ndarray:
        self.model.train(training)
        self.seeded(seed)
        with torch.no_grad():
            return as_array(self.logits(ids, mask))

    def weights(self) -> Iterator[tuple[str, np.ndarray]]:
        for name, p in self.model.named_parameters():
            yield name, as_array(p)

    def assign(self, name: str, values: np.ndarray) -> None:
        p = self.model.get_parameter(name)
        p.data.copy_(torch.as_tensor(values))

    def gradients(
        self, ids: Ids, pull: Pull, everything: bool = False
    ) -> dict[str, np.ndarray | None]:
        for module in self.model.modules():
            if type(module) is nn.Embedding:
                module.padding_idx = None  # it gives its row no gradient
        self.seeded()
        output = self.run(ids)
        found, _ = find_logits(output, ids[-1].shape)
        numbers = torch.as_tensor(pull(tuple(found.shape))).to(found)
        # Zero times minus infinity would be NaN.
        total = torch.where(numbers != 0, found * numbers, 0).sum()
        for x in tensors_in(output) if everything else ():
            if x is not found and x.requires_grad:
                total = total + x.square().mean()
        named = dict(self.model.named_parameters())
        parameters = [*named.values()]
        grads = torch.autograd.grad(total, parameters, allow_unused=True)
        return {
            name: None if grad is None else as_array(grad.to_dense())
            for name, grad in zip(named, grads, strict=True)
        }

    def table(self, ids: Ids) -> str | None:
        found = []

        def look(module, args, name):
            given = args[0] if args else None
            if isinstance(given, torch.Tensor) and not given.is_nested:
                same = given.numel() == ids[-1].size
                same = same and not given.is_floating_point()
                if (
                    same
                    and (given.cpu().numpy().ravel() == ids[-1].flat).all()
                ):
                    found.extend(module.parameters(recurse=False))

        self.watch(ids, nn.Module.register_forward_pre_hook, look)
        named = self.model.named_parameters()
        fits = {id(p) for p in found if p.ndim == 2 and len(p) > ids[-1].max()}
        return next((name for name, p in named if id(p) in fits), None)

    def watch(self, ids: Ids, register: Callable, see: Callable) -> None:
        """Call the model with a hook on each of its modules."""
        hooks = [
            register(module, lambda *args, name=name: see(*args, name))
            for name, module in self.model.named_modules()
            if name
        ]
        try:
            self.outputs(ids)
        finally:
            for hook in hooks:
                hook.remove()

    def trace(self, ids: Ids) -> list[tuple[str, np.ndarray]]:
        """Return (name, output) of each module, in the order of calls."""
        found = []

        def see(module, args, output, name):
            first = next(tensors_in(output), None)
            if first is not None:
                found.append((name, as_array(first)))

        self.watch(ids, nn.Module.register_forward_hook, see)
        return found

    def tensor_loss(
        self, ids: Ids, targets: np.ndarray, function: Callable | None
    ) -> torch.Tensor:
        """Return the loss; the mean cross-entropy unless told otherwise."""
        logits, wanted = self.logits(ids), self.tensor(targets)
        if function is not None:
            return function(logits, wanted)
        ignore = -100 if self.pad_id is None else self.pad_id
        return nn.functional.cross_entropy(
            logits.flatten(0, 1), wanted.flatten(), ignore_index=ignore
        )

    def loss(
        self, ids: Ids, targets: np.ndarray, function: Callable | None
    ) -> float:
        """Return the loss of targets (B, T)."""
        self.seeded()
        with torch.no_grad():
            return float(self.tensor_loss(ids, targets, function))

    def train(
        self,
        ids: Ids,
        targets: np.ndarray,
        function: Callable | None,
        rate: float,
        steps: int,
        goal: float,
    ) -> float:
        """Train without dropout until the loss is below goal; return it."""
        self.seeded()
        for module in self.model.train().modules():
            is_dropout = isinstance(module, nn.modules.dropout._DropoutNd)
            no_dropout(vars(module), rate="p" if is_dropout else "")
            no_dropout(vars(getattr(module, "config", None) or module))
        parameters = self.model.parameters()
        optimiser = torch.optim.Adam(parameters, lr=rate, foreach=True)
        for _ in range(steps):
            optimiser.zero_grad()
            loss = self.tensor_loss(ids, targets, function)
            if loss.item() < goal:
                break
            loss.backward()
            optimiser.step()
        return loss.item()

    def decode(self, ids: np.ndarray, function: Callable) -> np.ndarray:
        """Return the ids that a function writes for ids (B, S)."""
        self.seeded()
        with torch.no_grad():
            return as_rows(function(self.model, self.tensor(ids)))
