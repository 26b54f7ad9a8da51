"""Gradients, losses and training of a model in PyTorch."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from torch import nn

from ..model_io import (
    IGNORED,
    find_logits,
    find_loss,
)
from ..verdicts import NotRun
from .base import (
    NO_RATE,
    RATE,
    Cotangent,
    Ids,
    random_mean,
    set_dropout,
)
from .torch_state import TorchState, as_array, no_hooks, tensors_in


class TorchTraining(TorchState):
    """What a model of PyTorch does with gradients: losses, steps, training."""

    def backward(
        self,
        ids: Ids,
        cotangent: Cotangent,
        see: Callable,
        only: str | None = None,
    ) -> None:
        """Pass each gradient to `see`, then drop it.

        All gradients together need as much memory as the model. only: the
        one parameter that gets a gradient, and only from the logits.
        """
        for module in self.model.modules():
            if type(module) is nn.Embedding:
                module.padding_idx = None  # its row gets no gradient
        self.seeded()

        def seen(p, name):
            see(name, p.grad)
            p.grad = None

        hooks, named = [], dict(self.model.named_parameters())
        for name, p in named.items():
            p.requires_grad_(p.is_floating_point() and only in (None, name))
            if p.requires_grad:
                hook = partial(seen, name=name)
                hooks.append(p.register_post_accumulate_grad_hook(hook))
        output = self.run(ids)
        found, _ = find_logits(output, ids[-1].shape)
        numbers = torch.as_tensor(cotangent(tuple(found.shape))).to(found)
        # Zero times minus infinity would be NaN.
        total = torch.where(numbers != 0, found * numbers, 0).sum()
        for x in tensors_in(output) if only is None else ():
            if x is not found and x.requires_grad:
                total = total + x.square().mean()
        try:
            if total.requires_grad:
                total.backward()
        finally:
            for hook in hooks:
                hook.remove()

    def gradient(
        self, name: str, ids: Ids, cotangent: Cotangent
    ) -> np.ndarray | None:
        found: list[np.ndarray] = []
        self.backward(
            ids,
            cotangent,
            lambda _, g: found.append(as_array(g.to_dense())),
            name,
        )
        return found[0] if found else None

    def gradients(self, ids: Ids, cotangent: Cotangent) -> dict[str, str]:
        named = self.model.named_parameters()
        found = {n: "none" for n, p in named if p.is_floating_point()}

        def see(name, grad):
            low, high = grad.to_dense().aminmax()  # NaN if one is NaN
            state = "right" if low or high else "zero"
            found[name] = state if (high - low).isfinite() else "wild"

        self.backward(ids, cotangent, see)
        return found

    def training_copy(self) -> Self:
        frozen = {*self.frozen()}
        twin = self.copy()
        for name, p in twin.model.named_parameters():
            p.requires_grad_(p.is_floating_point() and name not in frozen)
        twin.model.train()
        return twin

    def unregistered(self) -> str:
        """Return which list of modules parameters() does not reach, or ""."""
        known = {id(p) for p in self.model.parameters()}
        for module in self.model.modules():
            for name, value in vars(module).items():
                parts = value.values() if isinstance(value, dict) else value
                if name.startswith("_") or not isinstance(
                    value, (list, tuple, dict)
                ):
                    continue
                inside = [x for x in parts if isinstance(x, nn.Module)]
                if any(
                    p.requires_grad and id(p) not in known
                    for x in inside
                    for p in x.parameters()
                ):
                    return f"{type(module).__name__}.{name}"
        return ""

    def padding_rows(self) -> dict[str, int]:
        rows = {
            id(module.weight): module.padding_idx
            for module in self.model.modules()
            if isinstance(module, nn.Embedding)
            and module.padding_idx is not None
        }
        named = self.model.named_parameters()
        return {n: rows[id(p)] for n, p in named if id(p) in rows}

    def weighted(self, ids: Ids, cotangent: Cotangent) -> torch.Tensor:
        """Return the sum of the logits times factors, ()."""
        found = self.logits(ids)
        numbers = torch.as_tensor(cotangent(tuple(found.shape))).to(found)
        # Zero times minus infinity would be NaN.
        return torch.where(numbers != 0, found * numbers, 0).double().sum()

    def slope(
        self, ids: Ids, cotangent: Cotangent, gradients: bool = True
    ) -> tuple[float, dict[str, np.ndarray | None]]:
        self.model.train()
        self.seeded()
        with torch.set_grad_enabled(gradients):
            total = self.weighted(ids, cotangent)
        if gradients and total.requires_grad:
            total.backward()
        named = self.model.named_parameters() if gradients else ()
        return total.item(), {
            name: None if p.grad is None else as_array(p.grad.to_dense())
            for name, p in named
            if p.requires_grad
        }

    def one_step(
        self,
        ids: Ids,
        targets: np.ndarray | None,
        function: Callable | None,
        optimizer: Callable | None,
    ) -> tuple[dict[str, np.ndarray], ...]:
        self.restore()
        twin = copy.copy(self)
        if not self.undo:
            twin.model = copy.deepcopy(self.model, no_hooks(self.model))
        twin.model.train()
        twin.seeded()
        named = {
            n: p for n, p in twin.model.named_parameters() if p.requires_grad
        }
        for p in named.values():
            p.grad = None  # the caller's is not added to
        make = optimizer or partial(torch.optim.AdamW, lr=RATE)
        stepper = make([*named.values()])
        if targets is None:
            loss = twin.weighted(ids, random_mean)
        else:
            loss = twin.tensor_loss(ids, targets, function)
        loss.backward()
        before = {n: as_array(p).copy() for n, p in named.items()}
        grads = {
            n: as_array(p.grad.to_dense()).copy()
            for n, p in named.items()
            if p.grad is not None
        }
        stepper.step()
        return before, {n: as_array(p) for n, p in named.items()}, grads

    def tensor_loss(
        self, ids: Ids, targets: np.ndarray, function: Callable | None
    ) -> torch.Tensor:
        """Return the loss: the function's, the model's, or cross-entropy."""
        if function is None and self.has_labels():
            loss = find_loss(self.run_with(ids, targets))
        else:
            loss = self.loss_of(self.logits(ids), targets, function)
        return loss

    def run_with(self, ids: Ids, labels: np.ndarray) -> Any:
        """Call the model with labels; nanoGPT has -1 where there is none."""
        try:
            return self.run(ids, labels=labels)
        except IndexError:
            if "labels" in self.names or not (labels == IGNORED).any():
                raise
            return self.run(
                ids, labels=np.where(labels == IGNORED, -1, labels)
            )

    def loss_of(
        self,
        logits: torch.Tensor,
        targets: np.ndarray,
        function: Callable | None,
    ) -> torch.Tensor:
        """Return a loss of logits; the mean cross-entropy by default."""
        wanted = self.tensor(targets)
        if function is not None:
            return function(logits, wanted)
        if self.pad_id is not None:
            wanted = wanted.masked_fill(wanted == self.pad_id, IGNORED)
        return nn.functional.cross_entropy(
            logits.flatten(0, 1), wanted.flatten(), ignore_index=IGNORED
        )

    def loss(
        self, ids: Ids, targets: np.ndarray, function: Callable | None
    ) -> float:
        """Return the loss of targets (B, T)."""
        self.seeded()
        with torch.no_grad():
            return float(self.tensor_loss(ids, targets, function))

    def loss_at(
        self, logits: np.ndarray, targets: np.ndarray, function: Callable
    ) -> tuple[Any, np.ndarray | None]:
        """Return the loss of logits (B, T, N), and its gradient."""
        x = self.tensor(logits).float().requires_grad_()
        loss = self.loss_of(x, targets, function)
        return as_array(loss.detach()), self.gradient_by(loss, x)

    def loss_of_labels(
        self, ids: Ids, labels: np.ndarray
    ) -> tuple[Any, np.ndarray | None]:
        """Return the model's own loss, and the gradient of its logits."""
        self.seeded()
        output = self.run_with(ids, labels)
        if isinstance(output, torch.Tensor):
            raise NotRun(
                "with labels= the model returns its loss alone, and this "
                "check needs its logits, too: give loss=, a function of "
                "logits and targets."
            )
        logits, _ = find_logits(output, ids[-1].shape)
        loss = find_loss(output)
        return as_array(loss.detach()), self.gradient_by(loss, logits)

    def gradient_by(self, loss: Any, x: torch.Tensor) -> np.ndarray | None:
        """Return the gradient of a tensor; None if it gets none."""
        if loss.numel() != 1 or not loss.requires_grad:
            return None
        (grad,) = torch.autograd.grad(loss.sum(), x, allow_unused=True)
        return None if grad is None else as_array(grad)

    def disable_dropout(self) -> None:
        self.drop(NO_RATE)

    def drop(self, rate: float) -> None:
        """Set every rate of dropout in modules and configs."""
        for module in self.model.modules():
            is_dropout = isinstance(module, nn.modules.dropout._DropoutNd)
            set_dropout(vars(module), rate, rate="p" if is_dropout else "")
            config = getattr(module, "config", None)
            if isinstance(getattr(config, "__dict__", None), dict):
                set_dropout(vars(config), rate)

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
        self.model.train()
        self.drop(0.0)
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
