"""A PyTorch model, wrapped for the checks."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from ..model_io import (
    STARTS,
    STATES,
    as_rows,
    find_cache,
    find_logits,
    find_loss,
)
from ..verdicts import NotRun
from .base import (
    Ids,
    seed_all,
)
from .torch_state import as_array, tensors_in
from .torch_training import TorchTraining

# Layers that choose a few keys for each token, and those that choose experts.
SELECTS = re.compile("(?i)index|top_?k|chunk|sparse|select")
ROUTES = re.compile("(?i)rout|gate|moe|expert")


def is_number(x: Any) -> bool:
    """Tell whether this may be a loss: a tensor of one float."""
    is_tensor = isinstance(x, torch.Tensor)
    return is_tensor and x.ndim == 0 and x.is_floating_point()


def reordered(cache: Any, rows: torch.Tensor) -> Any:
    """Return nested tensors, each with its rows in this order."""
    if isinstance(cache, torch.Tensor):
        if cache.ndim and len(cache) == len(rows):
            return cache.index_select(0, rows)
    elif isinstance(cache, dict):
        return {name: reordered(x, rows) for name, x in cache.items()}
    elif isinstance(cache, (list, tuple)) and not hasattr(cache, "_fields"):
        return type(cache)(reordered(x, rows) for x in cache)
    elif cache is None or isinstance(cache, (int, float)):
        return cache
    raise NotRun(f"the kit cannot reorder a {type(cache).__name__}.")


class TorchModel(TorchTraining):
    """An nn.Module and its copies: calls, caches, attention, decoding."""

    def tensor(self, ids: np.ndarray) -> torch.Tensor:
        """Return ids on the model's own device."""
        device = next((p.device for p in self.model.parameters()), "cpu")
        return torch.as_tensor(np.ascontiguousarray(ids), device=device)

    def run(
        self,
        ids: Ids,
        mask: bool = True,
        default: bool = False,
        positions: bool = False,
        labels: np.ndarray | None = None,
    ) -> Any:
        """Call the model; return its output."""
        if self.call is not None:
            return self.call(self.model, *map(self.tensor, ids))
        named: dict[str, Any] = {}
        if "use_cache" in self.names and not default:
            named["use_cache"] = False
        if labels is not None:
            name = "labels" if "labels" in self.names else "targets"
            named[name] = self.tensor(labels)
        if positions or (mask and self.begins_with_pads):
            named |= self.positions(ids)
        if "targets" in self.wants:
            named.setdefault("targets", self.tensor(ids[-1]))
        return self.call_with(ids, named, self.masks(ids, mask))

    def positions(self, ids: Ids, start: int = 0) -> dict[str, torch.Tensor]:
        """Return positions that do not count pads, if the model takes them."""
        if "position_ids" not in self.names:
            return {}
        counted = self.real(ids)[-1].cumsum(axis=1) - 1
        return {"position_ids": self.tensor(np.maximum(counted, 0)[:, start:])}

    def call_with(
        self, ids: Ids, named: dict[str, Any], masks: dict[str, np.ndarray]
    ) -> Any:
        """Call the model with masks of a type that it accepts."""
        tensors = [self.tensor(x) for x in ids]
        if len(ids) > 1 and "decoder_input_ids" in self.names:
            named = named | {"decoder_input_ids": tensors.pop()}
        if "encoder_outputs" in named:
            tensors = []
        kinds = [p.kind for p in self.names.values()]
        if kinds and kinds[0] is inspect.Parameter.KEYWORD_ONLY:
            named = dict(zip(self.names, tensors, strict=False)) | named
            tensors = []
        errors = []
        for kind in self.mask_types if masks else [None]:
            given = {n: self.tensor(m).to(kind) for n, m in masks.items()}
            try:
                output = self.model(*tensors, **named, **given)
            except (RuntimeError, TypeError) as error:
                errors.append(error)
            else:
                if masks:
                    del self.mask_types[: len(errors)]
                return output
        raise errors[0]

    def cached_part(
        self, ids: Ids, start: int, cache: Any, mask: bool, positions: bool
    ) -> tuple[np.ndarray, Any]:
        self.model.eval()
        self.seeded()
        new = ids[-1][:, start:]
        with torch.no_grad():
            if self.step is not None:
                rest = map(self.tensor, ids[:-1])
                output, cache = self.step(
                    self.model, *rest, self.tensor(new), cache
                )
                found, _ = find_logits(output, new.shape)
                return as_array(found), cache
            name, named = self.cache_name, {}
            if "use_cache" in self.names:
                named["use_cache"] = True
            if cache is not None:
                named[name] = cache
            if positions:
                named |= self.positions(ids, start)
            named |= {name: start for name in STARTS if name in self.names}
            known = cache is not None and name in STATES
            masks = self.masks(ids) if mask and not known else {}
            if len(ids) > 1 and "encoder_outputs" in self.names:
                named["encoder_outputs"] = self.encoded(ids[0])
            output = self.call_with((*ids[:-1], new), named, masks)
            kept = find_cache(output, name)
            if kept is None and cache is None and "use_cache" not in named:
                # Some models return a cache only if they get an empty list.
                named[name] = []
                with suppress(Exception):
                    output = self.call_with((*ids[:-1], new), named, masks)
                    kept = find_cache(output, name)
        return as_array(find_logits(output, new.shape)[0]), kept

    def encoded(self, source: np.ndarray) -> Any:
        """Return the output of an encoder-decoder's encoder."""
        masks = {} if self.pad_id is None else self.masks((source,))
        given = {n: self.tensor(m).long() for n, m in masks.items()}
        encoder = self.model.get_encoder()
        known = inspect.signature(encoder.forward).parameters
        given = {n: m for n, m in given.items() if n in known}
        return encoder(self.tensor(source), **given)

    def seeded(self, seed: int = 0) -> None:
        """Seed every generator that the model may use."""
        self.seed = seed
        seed_all(seed)
        on_cpu = all(p.device.type == "cpu" for p in self.model.parameters())
        # On the CPU alone, its own generator is enough, and faster to seed.
        (torch.default_generator if on_cpu else torch).manual_seed(seed)

    def logits(self, ids: Ids, **options: Any) -> torch.Tensor:
        """Return the logits as a tensor, and note where they are."""
        output = self.run(ids, **options)
        found, where = find_logits(output, ids[-1].shape)
        last = found.shape[:2] == (len(ids[-1]), 1) != ids[-1].shape
        if last and "targets" in {*self.names} - self.wants:
            # As nanoGPT: without targets, the last position alone.
            self.wants.add("targets")
            if is_number(find_loss(self.run(ids, **options))):
                self.wants.add("loss")
            self.note(
                "forward returns the last position alone unless it gets "
                "targets, so it gets its ids as targets; the loss in forward "
                "is asked if the kit has targets=."
            )
            self.seeded(self.seed)  # as if it had not been called before
            return self.logits(ids, **options)
        self.note_output(where)
        return found

    def outputs(
        self, ids: Ids, training: bool = False, seed: int = 0, **options: bool
    ) -> np.ndarray:
        self.model.train(training)
        self.seeded(seed)
        with torch.no_grad():
            return as_array(torch.as_tensor(self.logits(ids, **options)))

    def weights(self) -> Iterator[tuple[str, np.ndarray]]:
        for name, p in self.model.named_parameters():
            if p.is_floating_point():
                yield name, as_array(p)

    def assign(self, name: str, values: np.ndarray) -> None:
        p = dict(self.model.named_parameters())[name]
        with torch.no_grad():  # in place, which changes its version
            p.copy_(torch.as_tensor(values))

    def buffers(self) -> dict[str, np.ndarray]:
        kept = self.model.state_dict(keep_vars=True).keys()
        return {
            name: as_array(b).copy()
            for name, b in self.model.named_buffers()
            if name in kept and b.is_floating_point()
        }

    def assign_buffer(self, name: str, values: np.ndarray) -> None:
        b = dict(self.model.named_buffers())[name]
        b.data = torch.as_tensor(values, dtype=b.dtype, device=b.device)

    def reordered(self, cache: Any, order: np.ndarray) -> Any:
        rows = self.tensor(order)
        if hasattr(cache, "reorder_cache"):
            cache.reorder_cache(rows)
            return cache
        if hasattr(self.model, "_reorder_cache"):
            return self.model._reorder_cache(cache, rows)
        return reordered(cache, rows)

    def table(self, ids: Ids) -> str | None:
        found = []

        def look(module, args, named, name):
            given = args[0] if args else None
            if isinstance(given, torch.Tensor) and not given.is_nested:
                same = given.numel() == ids[-1].size
                same = same and not given.is_floating_point()
                if (
                    same
                    and (given.cpu().numpy().ravel() == ids[-1].flat).all()
                ):
                    found.extend(module.parameters(recurse=False))

        run = partial(self.outputs, ids)
        self.watch(nn.Module.register_forward_pre_hook, look, run)
        named = self.model.named_parameters()
        fits = {id(p) for p in found if p.ndim == 2 and len(p) > ids[-1].max()}
        return next((name for name, p in named if id(p) in fits), None)

    def tables(self) -> set[str]:
        found = {
            id(p)
            for module in self.model.modules()
            if isinstance(module, (nn.Embedding, nn.EmbeddingBag))
            for p in module.parameters(recurse=False)
        }
        return {n for n, p in self.model.named_parameters() if id(p) in found}

    def watch(self, register: Callable, see: Callable, run: Callable) -> None:
        """Run with a hook on each module of the model."""
        hooks = [
            register(
                module,
                lambda *args, name=name: see(*args, name),
                with_kwargs=True,
            )
            for name, module in self.model.named_modules()
            if name
        ]
        try:
            run()
        finally:
            for hook in hooks:
                hook.remove()

    def trace(
        self, ids: Ids, run: Callable | None = None, **options: Any
    ) -> list[tuple]:
        found = []

        def see(module, args, named, output, name):
            first = next(tensors_in(output), None)
            given = [*args, *named.values()]
            before = next((t for x in given for t in tensors_in(x)), None)
            if first is not None:
                before = None if before is None else as_array(before)
                found.append((name, as_array(first), before))

        run = run or partial(self.outputs, ids, **options)
        self.watch(nn.Module.register_forward_hook, see, run)
        return found

    def kind(self, name: str) -> str:
        return type(self.model.get_submodule(name)).__name__

    def has_labels(self) -> bool:
        """Return whether the model computes a loss itself."""
        computes = "labels" in self.names or "loss" in self.wants
        return self.call is None and computes

    def selects(self, length: int) -> str:
        config = getattr(self.model, "config", None)
        for name in ("attention_chunk_size", "index_topk"):
            size = getattr(config, name, None)
            if size is not None and size < length:
                return f"{name}={size}"
        for name, module in self.model.named_modules():
            kind = type(module).__name__
            if SELECTS.search(kind) and not ROUTES.search(kind):
                return f"{name} ({kind})"
        return ""

    def is_encoder(self) -> bool:
        can_generate = getattr(self.model, "can_generate", None)
        if can_generate is not None and hasattr(self.model, "config"):
            return not can_generate()
        return super().is_encoder()

    def decode(self, ids: np.ndarray, function: Callable) -> np.ndarray:
        """Return the ids that a function generates for ids (B, S)."""
        self.seeded()
        with torch.no_grad():
            written = function(self.model, self.tensor(ids))
        return as_rows(written, "the result of decode=")
