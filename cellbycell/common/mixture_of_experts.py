"""Experts in earnest: its common part, for what comes after it.

Built and explained in the chapter *Experts in earnest* of the book.
Written by `make package`: change it in the chapter.
"""

from types import SimpleNamespace


def deepseek_config(said):
    """Return the fields of a config.json as attributes, and some switches.

    Raises ValueError if it says what run_deepseek does not compute.
    """
    wanted = {"hidden_act": "silu", "norm_topk_prob": True}
    if said.get("model_type") != "deepseek_v32":  # which has an indexer
        wanted |= {"model_type": "deepseek_v3", "rope_interleave": True}
    wanted |= {"attention_bias": False, "tie_word_embeddings": False}
    rope = said.get("rope_parameters") or {}
    wrong = [n for n, value in wanted.items() if said.get(n) != value]
    if rope.get("rope_type") != "default":
        wrong.append("rope_parameters")
    if not said.get("q_lora_rank"):
        wrong.append("q_lora_rank")
    if not wrong:
        kept = said["topk_group"] * said["n_routed_experts"] // said["n_group"]
        if said["num_experts_per_tok"] > kept:
            wrong.append("num_experts_per_tok")
    if wrong:
        raise ValueError(f"{', '.join(wrong)}: load it with Transformers.")
    norm = dict(centred=False, scale_offset=0.0)
    inner = SimpleNamespace(**norm, epsilon=1e-6)  # whatever the config says
    switches = norm | dict(biases=(), activation="silu", inner=inner)
    centred = dict(centred=True, scale_offset=0.0, epsilon=1e-6)
    switches |= dict(centred_norm=SimpleNamespace(**centred))
    switches |= dict(base=rope["rope_theta"], epsilon=said["rms_norm_eps"])
    return SimpleNamespace(**said | switches)
