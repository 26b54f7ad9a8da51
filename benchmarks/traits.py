"""Count what the decoders have that Hugging Face's `transformers` registers.

    python -m benchmarks.traits

It reads the installed version's configuration and modelling files, finds
traits by pattern, and writes, in a second, the table of *Twenty models*.
A pattern says what a file knows of, not what a published model uses.
"""

import json
import re
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from cellbycell.figures.families import TRAITS as FILE

# A trait -> what its name is in a configuration, or in a modelling file.
PATTERNS = {
    "experts": (r"num_(local_|routed_)?experts\b|n_routed_experts", None),
    "windows": (r"sliding_window", None),
    "heads norm": (None, r"self\.(q|k|query|key)_(norm|layernorm)\b"),
    "shared expert": (r"shared_expert|n_shared_", r"self\.shared_expert"),
    "choice bias": (None, r"correction_bias|expert_bias"),
    "several tokens": (r"\bmtp|_mtp|nextn", r"\bmtp|_mtp|nextn"),
    "output gate": (
        r"attn_output_gate|use_output_gate",
        r"attn_output(_gate)? \* (gate|torch\.sigmoid|F\.sigmoid)"
        r"|\* (torch\.sigmoid|F\.sigmoid|nn\.functional\.sigmoid)\(gate",
    ),
    "latents": (r"kv_lora_rank", None),
    "part rotation": (r"partial_rotary_factor|qk_rope_head_dim", None),
    "soft caps": (r"softcap", r"softcap"),
    "indexer": (r"index_topk|index_n_heads|indexer", r"Indexer"),
    "streams": (r"hyper_connection|hc_mult|\bmhc", r"HyperConnection"),
    "state": (r"linear_attention|linear_attn|mamba|delta_net", None),
    "sinks": (None, r"self\.sinks?\b|attention_sink"),
}


def decoders():
    """Return for each folder of a decoder: its texts, and whether of 2026."""
    found = {}
    place = Path(find_spec("transformers").origin).parent / "models"
    for folder in sorted(place.iterdir()):
        files = [
            folder / f"{kind}_{folder.name}.py"
            for kind in ("configuration", "modeling")
        ]
        if all(path.exists() for path in files):
            texts = [path.read_text("utf-8") for path in files]
            if re.search(r"^class \w+ForCausalLM\(", texts[1], re.M):
                new = re.search(r"Copyright .*2026", texts[1][:1500])
                found[folder.name] = (*texts, bool(new))
    return found


def traits(found):
    """Return for each trait the folders that have it."""
    return {
        name: [
            folder
            for folder, (*texts, _) in found.items()
            if any(
                pattern and re.search(pattern, text)
                for pattern, text in zip(patterns, texts, strict=True)
            )
        ]
        for name, patterns in PATTERNS.items()
    }


def counts():
    """Return the counts of each trait, of 2026 and of all, as JSON has it."""
    found = decoders()
    new = {folder for folder, (*_, of_2026) in found.items() if of_2026}
    return {
        "version": version("transformers"),
        "decoders": [len(new), len(found)],
        "traits": {
            name: [len(new & {*folders}), len(folders)]
            for name, folders in traits(found).items()
        },
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(counts(), indent=1) + "\n", "utf-8")
    print("written:", FILE.name)
