"""A Llama, cell by cell: its common part, for what comes after it.

Built and explained in the chapter *A Llama, cell by cell* of the book.
Written by `make package`: change it in the chapter.
"""

import json
from pathlib import Path

import numpy as np

from cellbycell.common.position_similarity import frequencies
from cellbycell.common.rotary import stretched


def llama_parts(model):
    """Return the parts of a Llama that have weights, by checkpoint name.

    model: of either framework; each part has one tensor.
    """
    parts = {"model.embed_tokens.weight": model.embedding}
    for number, layer in enumerate(model.layers):
        attention, feed_forward = layer.attention, layer.feed_forward
        for name, part in {
            "input_layernorm": layer.attention_norm,
            "self_attn.q_proj": attention.query_proj,
            "self_attn.k_proj": attention.key_proj,
            "self_attn.v_proj": attention.value_proj,
            "self_attn.o_proj": attention.output_proj,
            "post_attention_layernorm": layer.feed_forward_norm,
            "mlp.gate_proj": feed_forward.gate,
            "mlp.up_proj": feed_forward.up,
            "mlp.down_proj": feed_forward.down,
        }.items():
            parts[f"model.layers.{number}.{name}.weight"] = part
    parts["model.norm.weight"] = model.norm
    if not model.tied:
        parts["lm_head.weight"] = model.linear
    return parts


def present(path):
    """Return the path of a file, or raise FileNotFoundError."""
    if path.is_file():
        return path
    advice = "download it as well, with all shards"
    if path.name == "config.json":
        advice = "give the folder in Transformers' form, which has one"
    elif [*path.parent.glob("pytorch_model*.bin")]:
        advice = "load it with Transformers, and save_pretrained writes it"
    raise FileNotFoundError(f"{path.parent} has no {path.name}: {advice}.")


def read_json(path):
    """Return the dict in a file, or raise an error that says what to do."""
    try:
        found = json.loads(present(path).read_text("utf-8"))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ValueError(
            f"{path.name} is not whole: download it again. If it is a small "
            "text about git-lfs, run `git lfs pull`."
        )
    return found


def as_float32(data, entry, name):
    """Return a tensor of a file as float32.

    data: the bytes behind the header; entry: what the header says of it.
    Raises ValueError for whole numbers and eight bits.
    """
    kinds = {"BF16": "<u2", "F16": "<f2", "F32": "<f4", "F64": "<f8"}
    if entry["dtype"] not in kinds:
        raise ValueError(
            f"{name} is {entry['dtype']}, not floating point of 16 bits or "
            "more. If it is quantised, take the folder of the model from "
            "which it was made."
        )
    kind, (start, _) = kinds[entry["dtype"]], entry["data_offsets"]
    numbers = np.ndarray(entry["shape"], kind, data, start)
    if entry["dtype"] == "BF16":  # the upper half of a float32
        return (numbers.astype("<u4") << 16).view("<f4")  # (..., C)
    return numbers.astype(np.float32)


def read_safetensors(path):
    """Return the tensors of a file by name, as arrays of float32.

    Raises ValueError if the file is not whole, or holds other numbers.
    """
    size = path.stat().st_size
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = file.read(length if 8 + length <= size else 0)
    try:
        header = json.loads(header or "{}")
    except ValueError:
        header = {}
    header.pop("__metadata__", None)
    ends = [entry["data_offsets"][1] for entry in header.values()]
    if not ends or 8 + length + max(ends) != size:
        raise ValueError(
            f"{path.name} is not whole, or no file of weights: download it "
            "again. If it is a small text, run `git lfs pull`."
        )
    data = np.memmap(path, mode="r", offset=8 + length)
    return {
        name: as_float32(data, entry, name) for name, entry in header.items()
    }


def read_checkpoint(folder):
    """Return a checkpoint's config, a dict, and its weights by name.

    folder: has config.json, and model.safetensors, or its shards and
    model.safetensors.index.json. Weights are float32 arrays.
    Raises FileNotFoundError or ValueError, which say what to do.
    """
    folder = Path(folder)
    config = read_json(folder / "config.json")
    files = ["model.safetensors"]
    index = folder / "model.safetensors.index.json"
    if index.is_file() and not (folder / files[0]).is_file():
        shards = read_json(index).get("weight_map", {})
        files = sorted(set(shards.values()))
    weights = {}
    for file in files:
        weights |= read_safetensors(present(folder / file))
    return config, weights


def llama_turns(config, d_head):
    """Return the frequencies of the rotation in a config.json, (C,).

    Raises ValueError for a rotation that is not known.
    """
    rope = config.get("rope_scaling") or config.get("rope_parameters") or {}
    base = rope.get("rope_theta") or config.get("rope_theta") or 10000.0
    turns = frequencies(d_head, base)  # (C,)
    kind = rope.get("rope_type") or rope.get("type") or "default"
    if kind not in ("default", "llama3"):
        raise ValueError(
            f"rope_type is {kind!r}, and this loader knows 'default' and "
            "'llama3': add its frequencies to llama_turns."
        )
    stretch = {"factor", "low_freq_factor", "high_freq_factor"}
    length = "original_max_position_embeddings"
    known = stretch | {"rope_type", "type", "rope_theta", length}
    strange = rope.keys() - known - {"partial_rotary_factor"}
    if kind == "llama3":
        strange |= stretch - rope.keys()
    if rope.get("partial_rotary_factor", 1) != 1:
        strange |= {"partial_rotary_factor"}
    if strange:
        raise ValueError(
            f"The rotation has {min(strange)} too much or too little: see "
            "rope_parameters or rope_scaling in config.json."
        )
    if kind == "default":
        return turns
    old_length = (
        config.get(length)
        or rope.get(length)
        or config["max_position_embeddings"]
    )
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    if low > high:
        raise ValueError(
            f"low_freq_factor is {low}, above high_freq_factor, {high}: "
            "compare config.json with that of the original model."
        )
    return stretched(turns, rope["factor"], low, high, old_length)


def llama_sizes(config):
    """Return the arguments of Llama that a config.json asks for, a dict.

    Raises ValueError for what this Llama has not.
    """
    expected = {
        "model_type": "llama",
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "is_causal": True,
        "partial_rotary_factor": 1.0,
        "quantization_config": None,
        "transformers_weights": None,  # another file
    }
    for name, value in expected.items():
        neutral = (value,) if name == "is_causal" else (value, None)
        if config.get(name, value) not in neutral:
            raise ValueError(
                f"{name} is {config[name]!r}, and a Llama has {value!r}: "
                "see *Twenty models, one decoder*."
            )
    sizes = ("vocab", "hidden", "intermediate")
    counts = ("hidden_layers", "attention_heads")
    needed = {f"{name}_size" for name in sizes}
    needed |= {f"num_{name}" for name in counts} | {"model_type"}
    if needed - config.keys():
        raise ValueError(
            f"config.json has no {min(needed - config.keys())}: give the "
            "folder of a whole model."
        )
    num_heads = config["num_attention_heads"]
    key_heads = config.get("num_key_value_heads") or num_heads
    d_head = config.get("head_dim") or config["hidden_size"] // num_heads
    if num_heads % key_heads or d_head % 2:
        raise ValueError(
            f"{key_heads} key heads for {num_heads} heads, of width {d_head}: "
            "heads have to be a multiple of key heads, and their width even."
        )
    return {
        "vocab_size": config["vocab_size"],
        "num_layers": config["num_hidden_layers"],
        "d_model": config["hidden_size"],
        "num_heads": num_heads,
        "key_heads": key_heads,
        "d_head": d_head,
        "d_ff": config["intermediate_size"],
        "base": llama_turns(config, d_head),
        "epsilon": config.get("rms_norm_eps", 1e-6),
        "tied": config.get("tie_word_embeddings", False),
    }


def checked_weights(weights, shapes):
    """Return the weights that a model needs, by name, if they fit.

    weights: of a checkpoint, by name; shapes: {name: shape} of the model.
    Raises ValueError for a tensor too many, too few, or of another shape.
    """
    table, head = (
        weights.get(f"{name}.weight")
        for name in ("model.embed_tokens", "lm_head")
    )
    spare = {"lm_head.weight"} - shapes.keys()  # tied, and yet in the file
    both = head is not None and table is not None
    if spare and both and not np.array_equal(head, table):
        raise ValueError(
            "tie_word_embeddings is true, and lm_head.weight is not the "
            "embedding: set it to false in config.json."
        )
    found = {  # old checkpoints hold frequencies, which config.json gives
        name: weight
        for name, weight in weights.items()
        if name not in spare and ".rotary_emb." not in name
    }
    for names, fault, advice in (
        (
            shapes.keys() - found.keys(),
            "missing",
            "download a whole LlamaForCausalLM",
        ),
        (found.keys() - shapes.keys(), "too many", "merge adapters first"),
    ):
        if names:
            raise ValueError(
                f"Tensors that are {fault}: {len(names)}, such as "
                f"{min(names)}: {advice}, or mend config.json."
            )
    for name, shape in shapes.items():
        if found[name].shape != tuple(shape):
            raise ValueError(
                f"{name} is {found[name].shape}, and config.json asks for "
                f"{tuple(shape)}: these files are of two models."
            )
    return found
