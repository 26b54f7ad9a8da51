"""*A Llama*: where the parameters of real ones are, counted and drawn."""

from dataclasses import replace
from math import prod

from ..checkpoint import llama_shapes
from .draw import Box, Picture, colour


def weigh_llamas(config, long_text):
    """Return what SmolLM2 and three of Meta's Llamas weigh in bfloat16.

    config: SmolLM2's LlamaConfig; long_text: the tokens of a full cache.
    Returns {name: parameters}, and {name: parameters, shares of the embedding
    and of SwiGLU, gigabytes of the weights and of the cache}, as texts.
    """
    small = replace(config, vocab_size=128256, num_layers=16, d_model=2048)
    small = replace(small, num_heads=32, key_heads=8, d_head=64, d_ff=8192)
    larger = {"num_layers": 32, "d_model": 4096, "d_head": 128, "d_ff": 14336}
    large = replace(small, tied=False, **larger)
    larger = {"num_layers": 80, "d_model": 8192, "num_heads": 64}
    totals, weighed = {}, {}
    for name, given in {
        "SmolLM2": config,
        "3.2 1B": replace(small, tied=True),
        "3.1 8B": large,
        "3.1 70B": replace(large, d_ff=28672, **larger),
    }.items():
        parts = {n: prod(shape) for n, shape in llama_shapes(given).items()}
        total = totals[name] = sum(parts.values())
        wide = sum(count for n, count in parts.items() if ".mlp." in n)
        shares = parts["model.embed_tokens.weight"] / total, wide / total
        # Keys and values, of two bytes each.
        cache_of_one = 4 * given.num_layers * given.key_heads * given.d_head
        gigabytes = 2 * total / 1e9, long_text * cache_of_one / 1e9
        weighed[name] = [f"{total:,}", *(f"{share:.0%}" for share in shares)]
        weighed[name] += [f"{size:.1f}" for size in gigabytes]
    return totals, weighed


def draw_weighs(weighed):
    """Return the shares of the parameters, and gigabytes as bars.

    weighed: {name: parameters, shares of the embedding and of SwiGLU in
    percent, gigabytes of the weights and of the cache}, all as texts.
    """
    told = "; ".join(
        f"{name}: embedding {of[1]}, SwiGLU {of[2]}, weights {of[3]} GB, "
        f"cache {of[4]} GB"
        for name, of in weighed.items()
    )
    picture = Picture(28 + 72 * len(weighed), f"Bars of {told}.")
    for x, role, name in (
        (108, "token", "embedding"), (206, "output", "SwiGLU"),
        (286, "key", "the rest"),
    ):  # fmt: skip
        style = f"fill:{colour(role)};fill-opacity:.4"
        picture.rect(Box(x, 6, 12, 12), style, radius=2)
        picture.text(x + 18, 17, name, at="start", size=12)
    largest = max(float(x) for of in weighed.values() for x in of[3:])
    for i, (name, of) in enumerate(weighed.items()):
        y = 30 + 72 * i
        picture.text(4, y + 16, name, at="start", bold=True)
        shares = [float(text.strip("%")) / 100 for text in of[1:3]]
        left, whole = 108, 268
        for role, share in zip(
            ("token", "output", "key"), [*shares, 1 - sum(shares)],
            strict=True,
        ):  # fmt: skip
            box = Box(left, y, whole * share, 22)
            style = f"fill:{colour(role)};fill-opacity:.4"
            picture.rect(box, style, radius=0)
            if share > 0.08:
                picture.text(box.top[0], y + 16, f"{share:.0%}", size=12)
            left += whole * share
        for j, (role, what) in enumerate(
            (("output", "weights"), ("key", "cache"))
        ):
            size = float(of[3 + j])
            at = y + 26 + 18 * j
            picture.text(102, at + 11, what, at="end", size=12)
            box = Box(108, at + 1, 190 * size / largest, 11)
            style = f"fill:{colour(role)};fill-opacity:.7"
            picture.rect(box, style, radius=0)
            picture.text(
                box.right[0] + 5, at + 11, f"{size:.1f} GB", at="start",
                size=12,
            )  # fmt: skip
    return picture
