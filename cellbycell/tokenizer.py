"""The tokenizer of a GGUF file: byte pairs, by the library tokenizers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["gguf_tokenizer"]


def gguf_tokenizer(meta: Mapping[str, Any]) -> Any:
    """Return the tokenizer of a GGUF file, by the library tokenizers.

    Parameters
    ----------
    meta
        What read_gguf returns: byte pairs of SmolLM's kind, where each digit
        is a token.

    Returns
    -------
    tokenizers.Tokenizer
        encode(text).ids and decode(ids); the tokens that end a turn are found
        in a text.

    Raises
    ------
    ValueError
        The file has another kind of tokenizer, or a list is missing.
    """
    kind = meta.get("tokenizer.ggml.model"), meta.get("tokenizer.ggml.pre")
    if kind != ("gpt2", "smollm"):
        raise ValueError(
            f"The file's tokenizer is {kind!r:.60}, and ('gpt2', 'smollm') is "
            "read: take the tokenizer of the model's folder."
        )
    tokens, merges, kinds = (
        meta.get(f"tokenizer.ggml.{name}")
        for name in ("tokens", "merges", "token_type")
    )
    vocab = {token: i for i, token in enumerate(tokens or [])}
    pairs = [tuple(merge.split(" ")) for merge in merges or []]
    whole = all(
        len(pair) == 2 and {*pair, "".join(pair)} <= vocab.keys()
        for pair in pairs
    )
    if not vocab or not whole or len(vocab) != len(kinds or []):
        raise ValueError(
            "The file's lists of tokens do not fit: download the file again."
        )
    from tokenizers import (
        AddedToken,
        Tokenizer,
        decoders,
        models,
        pre_tokenizers,
    )

    found = Tokenizer(models.BPE(vocab, pairs))
    digits = pre_tokenizers.Digits(individual_digits=True)
    letters = pre_tokenizers.ByteLevel(add_prefix_space=False)
    found.pre_tokenizer = pre_tokenizers.Sequence([digits, letters])
    found.decoder = decoders.ByteLevel()
    found.add_special_tokens(
        [
            AddedToken(token, special=True, normalized=False)
            for token, kind in zip(tokens, kinds, strict=True)
            if kind == 3  # a control token
        ]
    )
    return found
