"""Check a model of your own, or of transformers, or explain a check.

python -m cellbycell.checks model:make        check what model.make() returns
python -m cellbycell.checks FOLDER            check a small model like it
python -m cellbycell.checks FOLDER --weights  check the model itself
python -m cellbycell.checks --explain CHECK   print the causes of a failure

make() returns a model, or {argument of check_model: its value} for one.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from . import CHECKS, check_model
from .model_io import IGNORED, as_rows
from .report import Report, section

# The sizes of a small model, and their names in configs.
SIZES = {
    name: size
    for size, names in [
        (64, "vocab_size src_vocab_size tgt_vocab_size"),
        (
            32,
            "hidden_size d_model n_embd embedding_size embed_dim emb_dim dim "
            "word_embed_proj_dim input_embedding_size output_embedding_size "
            "projection_dim attention_hidden_size",
        ),
        (
            64,
            "intermediate_size ffn_dim d_inner n_inner d_ff ffn_hidden_size "
            "encoder_ffn_dim decoder_ffn_dim moe_intermediate_size dim_ff "
            "shared_expert_intermediate_size intermediate_size_mlp",
        ),
        (
            4,
            "num_attention_heads n_head n_heads num_heads attention_heads "
            "encoder_attention_heads decoder_attention_heads num_experts "
            "n_routed_experts num_local_experts",
        ),
        (
            2,
            "num_hidden_layers n_layer n_layers num_layers encoder_layers "
            "decoder_layers num_decoder_layers num_key_value_heads "
            "num_experts_per_tok top_k moe_topk moe_k attn_layer_period "
            "expert_layer_period",
        ),
        (
            64,
            "max_position_embeddings n_positions n_ctx max_seq_len "
            "seq_length max_sequence_length",
        ),
        (
            8,
            "head_dim rotary_dim d_kv kv_channels v_head_dim qk_nope_head_dim "
            "qk_rope_head_dim linear_key_head_dim linear_value_head_dim",
        ),
        (16, "q_lora_rank kv_lora_rank"),
        (1, "attn_layer_offset expert_layer_offset"),
    ]
    for name in names.split()
}
# Two rows of ids that every vocabulary has, the second with pads.
IDS = [[5, 9, 13, 7, 21, 34, 40, 3, 6, 8, 11, 17]]
IDS += [[33, 4, 10, 22, 9, 7, 15, 0, 0, 0, 0, 0]]


def small_sizes(known: Mapping[str, Any]) -> dict[str, Any]:
    """Return small sizes for the entries of a config of Transformers.

    known: {name: value} of the config. Pads have the id 0, and each kind of
    layer comes once.
    """
    sizes = {name: size for name, size in SIZES.items() if name in known}
    if "kv_lora_rank" in known:  # latent attention has keys for each head
        sizes["num_key_value_heads"] = 4
    if kinds := known.get("layer_types"):
        few = [*dict.fromkeys(kinds)]
        sizes["layer_types"] = few = few if few[1:] else 2 * few
        sizes["num_hidden_layers"] = len(few)
    ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    return sizes | ids


def check_folder(folder: str, weights: bool = False, **options: Any) -> Report:
    """Return the report on a folder of Transformers.

    folder: has config.json. weights: whether to load the model's own weights
    from it; if not, a small model of the same kind is made, with a layer of
    each kind, two at least. options: for `check_model`. Raises ValueError if
    there is no config, or Transformers has no such class.
    """
    import torch
    import transformers

    if not Path(folder, "config.json").is_file():
        raise ValueError(f"{folder} has no config.json: give a model's folder")
    config = transformers.AutoConfig.from_pretrained(folder)
    name = (config.architectures or ["none"])[0]
    made = getattr(transformers, name, None)
    if made is None:
        raise ValueError(
            f"{folder}: its architectures name {name}, which is no class of "
            "Transformers: make the model, and pass it to check_model"
        )
    if weights:
        model = made.from_pretrained(folder)
    else:
        given = config.to_dict()
        torch.manual_seed(0)
        model = made(type(config)(**given | small_sizes(given)))
    said = f"The model is transformers.{name}, with "
    said += f"the weights of {folder}" if weights else "small, random weights"
    if getattr(config, "auto_map", None):
        said += "; to test code in the folder, pass its model to check_model"
    report = check_transformers(model, **options)
    report.notes = (f"{said}.", *report.notes)
    return report


def check_transformers(model: Any, **options: Any) -> Report:
    """Return the report on a model of Transformers."""
    config = model.config
    pad_id = getattr(config, "pad_token_id", None)
    rows = [row[:7] for row in IDS]
    if pad_id is not None:
        # 44 replaces a token that is this model's pad.
        names = {pad_id: 44, 0: pad_id}
        rows = [[names.get(i, i) for i in row] for row in IDS]
    ids = [rows]
    if config.is_encoder_decoder:
        begin = config.decoder_start_token_id
        begin = 0 if begin is None else begin
        ids.append([[begin, *row[: len(row) // 2]] for row in rows])
    both = "MaskedLM" in type(model).__name__
    options = {"causal": not both, "pad_id": pad_id} | options
    return check_model(model, *ids, **options)


def check_made(where: str, targets: bool = False, **options: Any) -> Report:
    """Return the report on what a function in a module returns.

    where: "module:function"; it returns a model, or the arguments of
    `check_model`. targets: whether to train for the next token. options: for
    `check_model`. Raises ValueError if there is no such function, or a
    vocabulary is too small for the kit's ids.
    """
    module, _, name = where.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        make = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{where}: {error}") from error
    finally:
        sys.path.pop(0)
    given = make()
    if not isinstance(given, Mapping):
        given = {"model": given, "token_ids": [row[:7] for row in IDS]}
    given = dict(given)
    if targets and given.get("targets") is None:
        given["targets"] = next_tokens(given)
    return check_model(**given | options)


def next_tokens(given: Mapping[str, Any]) -> np.ndarray:
    """Return the next token at each position, -100 where there is none.

    A model that takes labels= shifts them itself, and gets its ids.
    """
    ids = given.get("decoder_ids")
    ids = as_rows(given["token_ids"] if ids is None else ids)
    pad_id = given.get("pad_id")
    forward = getattr(given["model"], "forward", None)
    own = forward and "labels" in inspect.signature(forward).parameters
    found = np.full_like(ids, IGNORED)
    if own and given.get("loss") is None:
        found = ids.copy()
    else:
        found[:, :-1] = ids[:, 1:]
    if pad_id is not None:
        found[found == pad_id] = IGNORED
    return found


def main() -> int:
    """Print a report or an explanation; return 1 if a check failed."""
    parser = argparse.ArgumentParser("cellbycell.checks", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "model", nargs="?", help="module:function, or a folder"
    )
    parser.add_argument("--weights", action="store_true", help="load them")
    parser.add_argument("--only", type=names, help="checks, with commas")
    parser.add_argument("--skip", type=names, default=[])
    parser.add_argument(
        "--targets", action="store_true", help="train for the next token"
    )
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--html", type=Path, metavar="FILE")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    parser.add_argument("--explain", metavar="CHECK", choices=[*CHECKS])
    given = parser.parse_args()
    if given.explain:
        print(section(CHECKS[given.explain][1]))
        return 0
    if not given.model:
        parser.error("give module:function, a folder, or --explain CHECK")
    options = {"only": given.only, "skip": given.skip}
    try:
        if is_made(given.model):
            report = check_made(given.model, given.targets, **options)
        elif given.targets:
            parser.error("--targets is for module:function")
        else:
            report = check_folder(given.model, given.weights, **options)
    except ValueError as error:
        parser.error(str(error))
    print(report)
    for path, write in (
        (given.json, lambda: json.dumps(report.to_dict(), indent=1) + "\n"),
        (given.html, report.to_html),
        (given.markdown, report.to_markdown),
    ):
        if path:
            path.write_text(write(), "utf-8")
    return 0 if report.ok else 1


def names(text: str) -> list[str]:
    """Return the names in a text with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def is_made(where: str) -> bool:
    """Tell module:function from a folder, such as C:\\models."""
    module, colon, name = where.partition(":")
    parts = [*module.split("."), name]
    is_name = all(part.isidentifier() for part in parts)
    return bool(colon) and is_name and not Path(where).exists()


if __name__ == "__main__":
    sys.exit(main())
