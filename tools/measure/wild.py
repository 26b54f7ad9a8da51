"""Ask every causal language model that Transformers registers.

    HF_HUB_OFFLINE=1 python -m tools.measure.wild > wild.md

Each family is made from one dictionary of small sizes, with random weights,
and asked by `check_model` in a process of its own. The table names the checks
that failed and says what the first one saw. A family that cannot be made from
these sizes, or that raises an error when it is called, is listed below it.
Arguments, if any, are the families to ask.
"""

import multiprocessing
import os
import platform
import sys
import warnings
from datetime import date

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import transformers
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from cellbycell.kit import check_model

LIMIT = 30e6  # parameters
SECONDS = 240
VOCABULARY, WIDTH, HIDDEN, HEADS, LAYERS, LENGTH = 64, 32, 64, 4, 2, 64
NAMES = {
    VOCABULARY: "vocab_size",
    WIDTH: "hidden_size d_model n_embd embedding_size embed_dim emb_dim dim "
    "word_embed_proj_dim input_embedding_size output_embedding_size "
    "projection_dim attention_hidden_size",
    HIDDEN: "intermediate_size ffn_dim d_inner n_inner d_ff ffn_hidden_size "
    "encoder_ffn_dim decoder_ffn_dim moe_intermediate_size dim_ff "
    "shared_expert_intermediate_size intermediate_size_mlp",
    HEADS: "num_attention_heads n_head n_heads num_heads attention_heads "
    "encoder_attention_heads decoder_attention_heads num_experts "
    "n_routed_experts num_local_experts",
    LAYERS: "num_hidden_layers n_layer n_layers num_layers encoder_layers "
    "decoder_layers num_key_value_heads num_experts_per_tok top_k "
    "moe_topk moe_k",
    LENGTH: "max_position_embeddings n_positions n_ctx max_seq_len seq_length "
    "max_sequence_length",
    8: "head_dim rotary_dim d_kv kv_channels v_head_dim qk_nope_head_dim "
    "qk_rope_head_dim linear_key_head_dim linear_value_head_dim",
    16: "q_lora_rank kv_lora_rank",
}
SIZES = {name: size for size, names in NAMES.items() for name in names.split()}
IDS = [[5, 9, 13, 7, 21, 34, 40, 3, 6, 8, 11, 17]]
IDS += [[33, 4, 10, 22, 9, 7, 15, 0, 0, 0, 0, 0]]


def make(family):
    """Return a small model of a family, with random weights."""
    kind = CONFIG_MAPPING[family]
    known = vars(kind())
    sizes = {name: size for name, size in SIZES.items() if name in known}
    sizes |= {"is_decoder": True} if "is_decoder" in known else {}
    if "kv_lora_rank" in known:  # latent attention has keys for each head
        sizes["num_key_value_heads"] = HEADS
    config = kind(**sizes, pad_token_id=0, bos_token_id=1, eos_token_id=2)
    auto = transformers.AutoModelForCausalLM
    with torch.device("meta"):
        count = sum(p.numel() for p in auto.from_config(config).parameters())
    if count > LIMIT:
        raise ValueError(f"{count / 1e6:.0f} million parameters")
    torch.manual_seed(0)
    return auto.from_config(config)


def ask(family, answers):
    """Put (what happened, failed checks, a sentence) into a queue."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    try:
        model = make(family).float()
    except Exception as error:
        answers.put(("not made", [], str(error)))
        return
    report = check_model(model, IDS)
    first = [*report.failed, *report.errors, "shape"][0]
    what = "error" if "shape" in report.errors else "asked"
    answers.put((what, [report.failed, report.errors], report[first].sentence))


def answer(family):
    """Return what `ask` says, from a process with little time."""
    fork = multiprocessing.get_context("fork")
    answers = fork.Queue()
    process = fork.Process(target=ask, args=(family, answers))
    process.start()
    try:
        return answers.get(timeout=SECONDS)
    except Exception:
        return "not made", [], f"no answer within {SECONDS} s"
    finally:
        process.kill()


def line(text):
    """Return the first line of a text, fit for a cell of a table."""
    return (text.strip() or "-").splitlines()[0].replace("|", "/")[:200]


def main(families):
    """Print the table for some families."""
    print(f"transformers {transformers.__version__}, torch", end=" ")
    print(f"{torch.__version__}, Python {platform.python_version()},", end=" ")
    print(f"{date.today()}.\n\n| family | failed | errors | first sentence |")
    print("|---|---|---|---|", flush=True)
    left, clean = [], 0
    for family in families:
        print(family, file=sys.stderr, flush=True)
        what, names, sentence = answer(family)
        if what != "asked":
            left.append(f"- {family}, {what}: {line(sentence)}")
        elif any(names):
            cells = [", ".join(group) for group in names]
            print(f"| {family}", *cells, line(sentence), sep=" | ", end=" |\n")
        else:
            clean += 1
        sys.stdout.flush()
    print(f"\n{clean} of {len(families)} families pass every check.\n")
    print(f"Left out ({len(left)}):\n", *left, sep="\n")


if __name__ == "__main__":
    every = modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    main(sys.argv[1:] or sorted(every))
