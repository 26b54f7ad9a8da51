"""One line of *One evening* changed, and what SmolLM2 then says.

    break_smol("slots <= positions[:, None]", "slots >= 0")

runs the published model in the listing of that chapter, with this change, and
prints its loss on a text and its answer to a question beside what they were.
"""

from __future__ import annotations

import ast
import inspect
import types
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import NamedTuple

import numpy as np

from .smol import chat, read_smol, smol_tokenizer

__all__ = [
    "QUESTION",
    "TEXT",
    "Said",
    "ask_smol",
    "break_smol",
    "break_smol_tf",
]

QUESTION = "What is the capital of France?"
TEXT = (
    "My grandmother kept a small shop at the corner of the market square. She "
    "sold bread, candles and string, and she knew everybody in town by name. "
    "On Saturdays I was allowed to stand behind the counter and count the "
    "coins. Once a man came in and asked for a pound of nails, and she said "
    "that she had none, but that her brother would bring some on Monday."
)
SIZES = 49152, 30, 576, 9, 3, 1536, 1e5  # of the listing's Model
STEPS = 8  # the most tokens of an answer


class Said(NamedTuple):
    """What a model says.

    Parameters
    ----------
    loss
        On the text, in nats a token.
    answer
        To the question, the likeliest token each time.
    gap
        The smallest distance between the two largest logits of a step: where
        it is above the rounding, another processor writes the same answer.
    """

    loss: float
    answer: str
    gap: float


def break_smol(old: str, new: str) -> None:
    """Print what SmolLM2 says with one line of the listing changed.

    Parameters
    ----------
    old
        A part of a line of `turn`, `Block` or `Model` in *One evening*, as
        the listing of PyTorch has it. It runs after the weights are loaded.
    new
        What stands in its place.

    Raises
    ------
    FileNotFoundError, ValueError
        As read_smol raises them; or if the listing does not have `old`, has
        it in two lines, or runs it only while the model is made.
    """
    _show(old, new, "pytorch")


def break_smol_tf(old: str, new: str) -> None:
    """Print what SmolLM2 says with one line of the listing changed.

    Parameters
    ----------
    old, new
        As of break_smol, in the listing of TensorFlow.

    Raises
    ------
    FileNotFoundError, ValueError
        As break_smol raises them.
    """
    _show(old, new, "tensorflow")


def ask_smol(old: str = "", new: str = "", framework: str = "pytorch") -> Said:
    """Return what SmolLM2 says with one line of the listing changed.

    Parameters
    ----------
    old, new
        As of break_smol. Without them the model is as it is.
    framework
        "pytorch" or "tensorflow".

    Returns
    -------
    Said

    Raises
    ------
    FileNotFoundError, ValueError
        As break_smol raises them.
    """
    model, listing = _model(framework), _listing(framework)
    changed = _changed(listing, old, new) if old else listing
    _become(model, changed)
    try:
        return _ask(model, framework)
    finally:
        _become(model, listing)


def _show(old, new, framework):
    after = ask_smol(old, new, framework)
    rows = ("as it is", _as_it_is(framework)), ("changed", after)
    print("          loss   the capital of France?")
    for name, said in rows:
        print(f"{name:8} {said.loss:6.2f}   {said.answer!r}")


@cache
def _as_it_is(framework):
    return ask_smol(framework=framework)


def _listing(framework):
    return import_module(f"cellbycell.{framework}.evening")


def _changed(listing, old, new):
    """Return the listing as a module of its own, with the change."""
    source = inspect.getsource(listing)
    count = source.count(old)
    if count != 1:
        near = get_close_matches(old, map(str.strip, source.split("\n")), 1)
        found = f"{count} times" if count else "not there"
        advice = f"; the nearest line is {near[0]!r}" if near else ""
        raise ValueError(
            f"{old!r} is {found} in the listing of *One evening*, and should "
            f"be there once{advice}. Copy a part of a line."
        )
    module = types.ModuleType(listing.__name__)
    changed = source.replace(old, new)
    exec(compile(changed, "<the changed listing>", "exec"), vars(module))
    if _made_by(source) != _made_by(changed):
        raise ValueError(
            f"{old!r} runs only while the model is made. Change a line that "
            "runs with the weights: of forward or call, or of what they call."
        )
    return module


def _made_by(source):
    """Return what makes the parts of the model, as text."""
    return [
        ast.dump(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.name == "__init__"
    ]


def _class(module, name):
    is_tf = "tensorflow" in module.__name__
    return getattr(module, f"{name}TF" if is_tf else name)


def _become(model, listing):
    """Let a model run the code of a listing; its weights stay."""
    object.__setattr__(model, "__class__", _class(listing, "Model"))
    for block in model.blk:
        object.__setattr__(block, "__class__", _class(listing, "Block"))


@cache
def _model(framework):
    """Return SmolLM2 in the listing of a framework: one a process."""
    _, tensors = read_smol()
    if framework == "pytorch":
        import torch

        from .pytorch.evening import Model

        with torch.device("meta"):  # no numbers are drawn
            model = Model(*SIZES)
        weights = {name: torch.from_numpy(w) for name, w in tensors.items()}
        model.load_state_dict(weights, assign=True)
        return model.requires_grad_(False)

    from .tensorflow.evening import ModelTF

    model = ModelTF(*SIZES)
    for name, w in tensors.items():
        part = model
        for step in name.split(".")[:-1]:  # blk, 0, attn_q
            part = part[int(step)] if step.isdigit() else getattr(part, step)
        is_table = part is model.token_embd
        part.build((None, None, w.shape[-1]))
        part.trainable_variables[0].assign(w if is_table else w.T)
    for part in (*model.blk, model):
        part.built = True  # else Keras would trace a call for it, in seconds
    return model


def _ask(model, framework):
    """Return what a model says to the text, and to the question."""
    tokenizer = smol_tokenizer()
    if framework == "pytorch":
        from torch import tensor
    else:
        from tensorflow import constant as tensor

    def logits(ids, past=None):
        found, past = model(tensor([ids]), past)

        return found[0].numpy(), past  # (T, N)

    ids = tokenizer.encode(TEXT).ids
    rows = logits(ids)[0][:-1].astype("float64")  # (T, N)
    own = rows[range(len(rows)), ids[1:]]  # (T,)
    rows -= (top := rows.max(-1, keepdims=True))
    loss = (np.log(np.exp(rows).sum(-1)) + top[:, 0] - own).mean()

    new, past, answer, gaps = (
        tokenizer.encode(chat(QUESTION)).ids,
        None,
        [],
        [],
    )
    end = tokenizer.token_to_id("<|im_end|>")
    while len(answer) < STEPS and answer[-1:] != [end]:
        rows, past = logits(new, past)
        second, first = np.sort(rows[-1])[-2:]
        gaps.append(float(first - second))
        new = [int(rows[-1].argmax())]
        answer += new
    return Said(float(loss), tokenizer.decode(answer), min(gaps))
