"""A small model of each family that Transformers registers."""

import torch
import transformers
from transformers.models.auto import modeling_auto

from cellbycell.checks.__main__ import small_sizes

LIMIT = 30e6  # parameters
FAMILIES = sorted(modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def make(family):
    """Return a small model of a family of Transformers."""
    kind = transformers.CONFIG_MAPPING[family]
    known = vars(kind())
    sizes = small_sizes(known)
    sizes |= {"is_decoder": True} if "is_decoder" in known else {}
    config = kind(**sizes)
    auto = transformers.AutoModelForCausalLM
    with torch.device("meta"):
        count = sum(p.numel() for p in auto.from_config(config).parameters())
    if count > LIMIT:
        raise ValueError(f"{count / 1e6:.0f} million parameters")
    torch.manual_seed(0)
    return auto.from_config(config)
