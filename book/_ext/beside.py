"""A diagram at the side that lights the part whose code is in view.

Five chapters build a model part by part. Each has its parts here, from the
output down to the tokens, with the words that their code is known by;
beside.js lights what the reader sees. Where the window is too narrow for a
sidebar, there is none.
"""

from html import escape

# A part: its name, its role, and words of its code; a list is a block.
PARTS = {
    "book/evening": [
        ("logits", "output", "logits embeddings token_embd.weight"),
        ("last norm", "", "output_norm"),
        [
            ("add", "", "ffn_down"),
            ("gate × up", "value", "ffn_gate ffn_up silu"),
            ("norm", "", "ffn_norm"),
            ("add", "", "found attn_output"),
            ("softmax, mask", "mask", "mask softmax weights"),
            ("turn q and k", "key", "turn angles speeds"),
            ("q, k, v", "query", "attn_q attn_k attn_v"),
            ("norm", "", "attn_norm"),
        ],
        ("table of tokens", "token", "token_embd LetterTable Embedding"),
    ],
    "book/encoder": [
        ("last norm", "", "Encoder LayerNorm"),
        [
            ("add and norm", "", "around_feed_forward AddAndNorm"),
            ("feed-forward", "value", "FeedForward feed_forward widen narrow"),
            ("add and norm", "", "around_attention AddAndNorm"),
            ("attention", "query", "MultiHeadAttention attention"),
        ],
        ("tokens and positions", "token", "embedding position_table"),
    ],
    "book/decoder": [
        ("logits", "output", "linear logits"),
        [
            ("feed-forward", "value", "feed_forward around_feed_forward"),
            ("attention to the memory", "key", "cross_attention memory"),
            ("attention to the past", "query", "around_attention causal_mask"),
        ],
        ("tokens and positions", "token", "embed embedding position_table"),
    ],
    "book/llama": [
        ("logits", "output", "linear logits tied"),
        ("last norm", "", "self.norm"),
        [
            ("add", "", "found"),
            ("SwiGLU", "value", "SwiGLU feed_forward"),
            ("norm", "", "feed_forward_norm"),
            (
                "grouped heads",
                "query",
                "query_proj key_proj value_proj attend_grouped",
            ),
            ("rotary", "key", "rotary_halves base"),
            ("norm", "", "attention_norm RMSNorm"),
        ],
        ("table of tokens", "token", "embedding"),
    ],
    "book/mixture_of_experts": [
        [
            ("put back, weighted", "output", "argsort shares pairs"),
            ("experts", "value", "expert experts up down"),
            ("sorted by expert", "token", "sort_pairs order counts"),
            ("router", "query", "router choose scores choose_with_bias"),
            ("latent attention", "key", "latent latents attend_latents"),
        ],
    ],
}


def drawn(parts):
    """Return parts as a list, the first on top."""
    rows = ""
    for part in parts:
        if isinstance(part, list):
            rows += f'<li class="block">{drawn(part)}</li>'
        else:
            name, role, words = part
            rows += (
                f'<li data-words="{escape(words)}" data-role="{role}">'
                f"{escape(name)}</li>"
            )
    return f"<ol>{rows}</ol>"


def put_beside(app, name, template, context, doctree):
    if name in PARTS:
        context["beside"] = drawn(PARTS[name])


def setup(app):
    app.connect("html-page-context", put_beside)
