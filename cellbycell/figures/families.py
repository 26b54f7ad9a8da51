"""The moving pictures of *Twenty models, one decoder*."""

from pathlib import Path

from .families_decoder import column_parts, draw_columns
from .moving import show_break, show_states

# What the newest decoders have: `python -m benchmarks.traits`.
TRAITS = Path(__file__).parent.parent / "data" / "traits.json"


def show_families(configs, others, start):
    """Return two families of decoders beside each other.

    Parameters
    ----------
    configs
        {family: the config of its decoder}.
    others
        The families that others are compared with; the first at the start.
    start
        The family that is chosen at the start.

    Returns
    -------
    IPython.display.HTML
        Two drawn decoders; what differs is coloured.
    """
    names = list(configs)
    words = {name: decoder_words(config) for name, config in configs.items()}

    def state(family, beside):
        one, two = names[family], others[beside]
        differing = [
            part for part in words[one] if words[one][part] != words[two][part]
        ]
        parts = {}
        for side, name in enumerate((one, two)):
            parts |= column_parts(side, name, configs[name], differing)
        said = f"{one} and {two}: {len(differing)} of {len(words[one])} "
        return said + "parts differ.", parts

    return show_states(
        "families",
        [
            dict(label="family", name="family", type="radio", choices=names)
            | dict(chosen=[names.index(start)]),
            dict(label="beside", name="beside", type="radio")
            | dict(choices=others, chosen=[0]),
        ],
        state,
        draw_columns,
    )


def _norm(config, place):
    """Return which norm is in one of the four places, or "nothing"."""
    if config.norms[place] is None:
        return "nothing"
    name = "LayerNorm" if config.centred else "RMSNorm"
    return f"{name}, 1 + w" if config.scale_offset else name


def _times(factor):
    """Return a factor in words, or nothing if it is one."""
    return "" if factor == 1 else f" × {factor:.3g}"


def _gate(config):
    """Return how the feed-forward layer works."""
    if config.num_experts:
        return f"mixture, {config.experts_asked} experts for each token"
    gate = "SiLU" if config.activation == "silu" else "GELU"
    return f"network gated by {gate}"


def decoder_words(config):
    """Return what is in each part of a decoder, name -> words."""
    own, cap = "a matrix of its own", config.logit_cap
    scale = config.score_scale
    if scale is None:
        scale = config.d_head**-0.5
    turns = "pairs" if config.pairs else "halves"
    turned = [
        f"{turns}, base {base:,.0f}" if base else "no positions"
        for base in config.bases
    ]
    sees = [f"{w} tokens" if w else "all" for w in config.windows]
    heads = {"none": "no norm", "head": "norm of each head"}
    heads |= {"width": "norm of all heads in one"}
    heads |= {"turned": "norm of each head, after the rotation"}
    wide = "side by side with attention: " * config.side_by_side
    score_cap = config.score_cap
    return {
        "embedding": f"table{_times(config.embedding_factor)}",
        "before attention": _norm(config, 0),
        "queries, keys": heads[config.heads_norm],
        "biases": " ".join(config.biases) or "none",
        "rotation": ", then ".join(dict.fromkeys(turned)),
        "sees": ", then ".join(dict.fromkeys(sees)),
        "scores": f"× {scale:.3g}"
        + (f", capped at {score_cap:g}" if score_cap else ""),
        "after attention": _norm(config, 1),
        "before feed-forward": _norm(config, 2),
        "feed-forward": wide + _gate(config),
        "after feed-forward": _norm(config, 3),
        "residual": f"sum{_times(config.residual_factor)}",
        "logits": ("the embedding's table" if config.tied else own)
        + _times(config.logit_factor)
        + (f", capped at {cap:g}" if cap else ""),
    }


def show_pairs(halves, pairs, filled, losses, texts):
    """Return what pairs in place of halves break.

    Parameters
    ----------
    halves, pairs
        Of each, in a dict: the logits of new weights and of a filled model,
        (B, T, N), as "new" and "filled", and the "names" and "shapes".
    filled
        The logits that a library has: of new weights, and of a filled model.
    losses, texts
        On held-out rows, and what is written, of the two.

    Returns
    -------
    IPython.display.HTML
        What a notebook shows.
    """
    passed = []
    for own, loss in zip((halves, pairs), losses, strict=True):
        gaps = [
            (own[name] - wanted).abs().max().item()
            for name, wanted in zip(("new", "filled"), filled, strict=True)
        ]
        whole = own["new"].shape == filled[0].shape
        passed.append(
            {
                "every tensor is found": own["names"],
                "the logits' shape, and no NaN": whole
                and not bool(own["new"].isnan().any()),
                "a new model's logits, within a thousandth": gaps[0] < 1e-3,
                "a filled model's logits, within a thousandth": gaps[1] < 1e-3,
                "the held-out loss is below 2.5": loss < 2.5,
            }
        )
    return show_break(
        "families-mistake",
        *([[text] for text in each] for each in texts),
        passed,
        "New weights are small, so scores are near zero, attention is nearly "
        "a mean, and positions hardly matter.",
    )
