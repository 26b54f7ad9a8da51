"""What both frameworks share, in plain Python and NumPy."""

from cellbycell.common.bits import (
    from_q4_0,
    from_q4_1,
    from_q8_0,
    nibbles,
    read_head,
)
from cellbycell.common.decoder import decoder_layer_parameters
from cellbycell.common.encoder import layer_parameters
from cellbycell.common.families import DecoderConfig
from cellbycell.common.finetune import (
    answer_targets,
    block_mask,
    chat_batches,
    chat_parts,
    chat_row,
    pack_rows,
    projections,
    prompt_ids,
)
from cellbycell.common.linear_attention import recall_rows, switches
from cellbycell.common.llama import LlamaConfig, llama_parts
from cellbycell.common.masks import largest_change
from cellbycell.common.mixture_of_experts import deepseek_config
from cellbycell.common.multi_head_attention import (
    head_width,
    layer_projections,
    mask_per_head,
)
from cellbycell.common.parallel import count_letters, cut_weights, part_config
from cellbycell.common.position_similarity import frequencies, similarity
from cellbycell.common.positional_encoding import smallest_sets
from cellbycell.common.preferences import written
from cellbycell.common.rotary import stretched
from cellbycell.common.serving import (
    Pages,
    Request,
    Server,
    SharedPages,
    check_request,
    likeliest,
)
from cellbycell.common.speculative import (
    cut_cache,
    draw,
    judge,
    read_on,
    residual,
    what_followed,
)
from cellbycell.common.training import learning_rate

__all__ = [
    "DecoderConfig",
    "LlamaConfig",
    "Pages",
    "Request",
    "Server",
    "SharedPages",
    "answer_targets",
    "block_mask",
    "chat_batches",
    "chat_parts",
    "chat_row",
    "check_request",
    "count_letters",
    "cut_cache",
    "cut_weights",
    "decoder_layer_parameters",
    "deepseek_config",
    "draw",
    "frequencies",
    "from_q4_0",
    "from_q4_1",
    "from_q8_0",
    "head_width",
    "judge",
    "largest_change",
    "layer_parameters",
    "layer_projections",
    "learning_rate",
    "likeliest",
    "llama_parts",
    "mask_per_head",
    "nibbles",
    "pack_rows",
    "part_config",
    "projections",
    "prompt_ids",
    "read_head",
    "read_on",
    "recall_rows",
    "residual",
    "similarity",
    "smallest_sets",
    "stretched",
    "switches",
    "what_followed",
    "written",
]
