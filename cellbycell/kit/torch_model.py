"""A PyTorch model as the kit asks it: NumPy in, NumPy out."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn

from .outputs import as_rows, find_logits, masks_for, required
from .state import generators_kept, seed_all

HALVES = (torch.float16, torch.bfloat16)


class TorchModel:
    """An nn.Module, its copies, and what was noticed about it.

    All methods but `copy` change the model that they are called on; the
    checks call them on copies.
    """

    def __init__(
        self,
        model: nn.Module,
        pad_id: int | None = 0,
        call: Callable | None = None,
    ) -> None:
        self.notes: list[str] = []
        if hasattr(model, "_orig_mod"):
            model = model._orig_mod
            self.note("The model is compiled: what was compiled is asked.")
        if isinstance(
            model, (nn.DataParallel, nn.parallel.DistributedDataParallel)
        ):
            model = model.module
        self.model, self.pad_id, self.call = model, pad_id, call
        self.names = inspect.signature(model.forward).parameters
        self.takes_mask = bool(masks_for(self.names, (np.ones((1, 1)),), 0))
        types = {p.dtype for p in model.parameters() if p.is_floating_point()}
        self.half = types & {*HALVES}
        self.eps = max(
            [torch.finfo(t).eps for t in types - {*HALVES}] or [2.0**-23]
        )
        # A model of Transformers wants masks of whole numbers.
        whole = hasattr(model, "config")
        self.mask_types = [torch.long, torch.bool][:: 1 if whole else -1]
        self.saved: list[Callable[[], None]] = []

    def note(self, sentence: str) -> None:
        """Remember a sentence for the report, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Leave the model and all generators as they were, afterwards."""
        precision = torch.get_float32_matmul_precision()
        devices = {p.device for p in self.model.parameters()}
        cuda = [d for d in devices if d.type == "cuda"]
        with ExitStack() as stack:
            stack.enter_context(generators_kept())
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
        if self.saved:
            self.restore()
        else:
            try:
                twin.model = copy.deepcopy(self.model)
            except Exception as error:
                self.note(
                    "The model cannot be copied "
                    f"({type(error).__name__}): it is asked itself, and its "
                    "state is restored."
                )
                self.save()
        if self.half and self.saved:
            twin.eps = max(torch.finfo(t).eps for t in self.half)
            self.eps = twin.eps
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

    def save(self) -> None:
        """Remember the state of a model that cannot be copied."""
        for p in self.model.parameters():
            state = p.grad, p.requires_grad
            self.saved.append(lambda p=p, state=state: give_back(p, *state))
        for module in self.model.modules():
            parts = [module._parameters, module._buffers, vars(module)]
            for part in parts:
                for x in part.values():
                    if isinstance(x, torch.Tensor):
                        values = x.detach().clone()
                        self.saved.append(
                            lambda x=x, values=values: x.data.copy_(values)
                        )
                kept = dict(part)
                self.saved.append(
                    lambda part=part, kept=kept: (
                        part.clear(),
                        part.update(kept),
                    )
                )

    def restore(self) -> None:
        """Give a model that cannot be copied its state back."""
        for undo in self.saved:
            undo()

    def frozen(self) -> list[str]:
        """Return the names of the parameters that are frozen."""
        if self.saved:
            self.restore()
        named = self.model.named_parameters()
        return [name for name, p in named if not p.requires_grad]

    def run(self, ids: tuple[np.ndarray, ...], mask: bool = True) -> Any:
        """Call the model; return what it returns."""
        device = next((p.device for p in self.model.parameters()), "cpu")
        tensors = [torch.as_tensor(x, device=device) for x in ids]
        if self.call is not None:
            return self.call(self.model, *tensors)
        named = {}
        if "use_cache" in self.names:
            named["use_cache"] = False
        if len(ids) > 1 and "decoder_input_ids" in self.names:
            named["decoder_input_ids"] = tensors.pop()
        names = self.names if mask else required(self.names)
        masks = masks_for(names, ids, self.pad_id)
        if not masks:
            return self.model(*tensors, **named)
        self.note(f"{', '.join(masks)}: given, from pad_id={self.pad_id}.")
        while True:
            kind = {"dtype": self.mask_types[0], "device": device}
            given = {n: torch.as_tensor(m, **kind) for n, m in masks.items()}
            try:
                return self.model(*tensors, **named, **given)
            except (RuntimeError, TypeError):
                if len(self.mask_types) == 1:
                    raise
                del self.mask_types[0]

    def seeded(self, seed: int) -> None:
        """Seed every generator that the model may draw from."""
        seed_all(seed)
        torch.manual_seed(seed)

    def logits(self, ids: tuple[np.ndarray, ...], mask: bool = True):
        """Return the logits as a tensor, and note where they were found."""
        found, where = find_logits(self.run(ids, mask), ids[-1].shape)
        if where != "output":
            self.note(f"What is compared is {where}.")
        return found

    def outputs(
        self,
        ids: tuple[np.ndarray, ...],
        training: bool = False,
        mask: bool = True,
        seed: int = 0,
    ) -> np.ndarray:
        """Return the outputs for ids, (B, T, ...), float32 or float64."""
        self.model.train(training)
        self.seeded(seed)
        with torch.no_grad():
            found = self.logits(ids, mask).detach().cpu()
        return (found.float() if found.dtype in HALVES else found).numpy()

    def jiggle(self, size: float = 0.0, only: str | None = None) -> None:
        """Move each weight up or down by the smallest relative step.

        size: the step instead, added; only: the one parameter to move.
        """
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for name, p in self.model.named_parameters():
                signs = torch.rand(p.shape, generator=generator) < 0.5
                signs = (2.0 * signs - 1).to(p)
                if only is None and p.is_floating_point():
                    p.mul_(1 + self.eps * signs)
                elif name == only:
                    p.add_(size * signs)

    def scale_up(self) -> None:
        """Scale small matrices up to the spread of Glorot and Bengio."""
        with torch.no_grad():
            for p in self.model.parameters():
                if p.ndim > 1 and p.is_floating_point() and p.std() > 0:
                    wanted = (2 / sum(p.shape[-2:])) ** 0.5
                    p.mul_(max(1.0, wanted / p.std().item()))

    def gradients(
        self,
        ids: tuple[np.ndarray, ...],
        pull: Callable[[tuple[int, ...]], np.ndarray],
        everything: bool = False,
    ) -> dict[str, np.ndarray | None]:
        """Return {parameter: gradient} of the outputs times pull(shape).

        everything: other tensors among the outputs count, too.
        """
        self.seeded(0)
        output = self.run(ids)
        found, _ = find_logits(output, ids[-1].shape)
        numbers = torch.as_tensor(pull(tuple(found.shape))).to(found)
        # Zero times minus infinity would be NaN.
        total = torch.where(numbers != 0, found * numbers, 0).sum()
        if everything:
            for x in tensors_in(output):
                if x is not found and x.requires_grad:
                    total = total + x.flatten()[:1].sum() + x.square().mean()
        named = dict(self.model.named_parameters())
        grads = torch.autograd.grad(
            total, [*named.values()], allow_unused=True
        )
        return {
            name: None if grad is None else grad.to_dense().cpu().numpy()
            for name, grad in zip(named, grads, strict=True)
        }

    def weights(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield (name, numbers) of each parameter; tied ones come once."""
        for name, p in self.model.named_parameters():
            p = p.detach().cpu()
            yield name, (p.float() if p.dtype in HALVES else p).numpy()

    def table(self, ids: tuple[np.ndarray, ...]) -> nn.Parameter | None:
        """Return the parameter in which the last ids are looked up."""
        found = []

        def look(module, args):
            given = args[0] if args else None
            if isinstance(given, torch.Tensor) and not given.is_nested:
                same = given.numel() == ids[-1].size
                same = same and not given.is_floating_point()
                if (
                    same
                    and (given.cpu().numpy().ravel() == ids[-1].flat).all()
                ):
                    found.extend(module.parameters(recurse=False))

        modules = [m for m in self.model.modules() if m is not self.model]
        hooks = [m.register_forward_pre_hook(look) for m in modules]
        try:
            self.outputs(ids)
        finally:
            for hook in hooks:
                hook.remove()
        rows = ids[-1].max()
        return next((p for p in found if p.ndim == 2 and len(p) > rows), None)

    def read_table(self, ids: tuple[np.ndarray, ...]) -> np.ndarray | None:
        """Return the table in which ids are looked up, (N, D), or None."""
        table = self.table(ids)
        return None if table is None else table.detach().cpu().numpy().copy()

    def write_table(
        self, ids: tuple[np.ndarray, ...], rows: np.ndarray, new: np.ndarray
    ) -> None:
        """Write new (M, D) into some rows (M,) of the table of tokens."""
        table = self.table(ids)
        table.data[torch.as_tensor(rows)] = torch.as_tensor(new).to(table)

    def table_gradient(
        self, ids: tuple[np.ndarray, ...], pull: Callable
    ) -> np.ndarray:
        """Return the gradient of the table of tokens, (N, D)."""
        table = self.table(ids)
        named = self.model.named_parameters()
        name = next(name for name, p in named if p is table)
        found = self.gradients(ids, pull)[name]
        return np.zeros(tuple(table.shape)) if found is None else found

    def loss(
        self,
        ids: tuple[np.ndarray, ...],
        targets: np.ndarray,
        function: Callable | None,
    ) -> float:
        """Return the loss; the mean cross-entropy unless told otherwise."""
        self.seeded(0)
        with torch.no_grad():
            return float(self.tensor_loss(ids, targets, function))

    def tensor_loss(self, ids, targets, function) -> torch.Tensor:
        """Return the loss of targets (B, T) as a tensor."""
        logits = self.logits(ids)
        targets = torch.as_tensor(targets, device=logits.device)
        if function is not None:
            return function(logits, targets)
        ignore = -100 if self.pad_id is None else self.pad_id
        flat = logits.flatten(0, 1), targets.flatten()
        return nn.functional.cross_entropy(*flat, ignore_index=ignore)

    def decode(self, ids: np.ndarray, function: Callable) -> np.ndarray:
        """Return the ids that a function writes for ids (B, S)."""
        self.seeded(0)
        device = next((p.device for p in self.model.parameters()), "cpu")
        with torch.no_grad():
            written = function(self.model, torch.as_tensor(ids, device=device))
        return as_rows(written)

    def train(
        self,
        ids: tuple[np.ndarray, ...],
        targets: np.ndarray,
        function: Callable | None,
        rate: float,
        steps: int,
        goal: float,
    ) -> float:
        """Train without dropout until the loss is below goal; return it."""
        self.seeded(0)
        self.model.train()
        no_dropout(self.model)
        optimiser = torch.optim.Adam(self.model.parameters(), lr=rate)
        for _ in range(steps):
            optimiser.zero_grad()
            loss = self.tensor_loss(ids, targets, function)
            if loss.item() < goal:
                break
            loss.backward()
            optimiser.step()
        return loss.item()

    def trace(
        self, ids: tuple[np.ndarray, ...]
    ) -> list[tuple[str, np.ndarray]]:
        """Return (name, output) of each module, in the order of calls."""
        found = []

        def keep(name, output):
            for x in tensors_in(output):
                x = x.detach().cpu()
                found.append((name, x.float().numpy()))
                break

        hooks = [
            module.register_forward_hook(
                lambda m, args, output, name=name: keep(name, output)
            )
            for name, module in self.model.named_modules()
            if name
        ]
        try:
            self.outputs(ids)
        finally:
            for hook in hooks:
                hook.remove()
        return found


def give_back(p: nn.Parameter, grad: Any, requires_grad: bool) -> None:
    """Give a parameter its gradient and its mode back."""
    p.requires_grad_(requires_grad)
    p.grad = grad


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


def no_dropout(model: nn.Module) -> None:
    """Set every dropout to zero: of modules, attributes and configs."""
    for module in model.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd):
            module.p = 0.0
        spaces = [vars(module), vars(getattr(module, "config", module))]
        for space in spaces:
            for name, value in space.items():
                if "drop" in name.lower() and isinstance(value, float):
                    space[name] = 0.0
