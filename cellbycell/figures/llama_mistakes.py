"""Loaders of *A Llama* with one mistake each, and what the model is asked."""

from dataclasses import replace

SQUARE = "q_proj", "o_proj"  # as wide as the model, on both sides
MISTAKES = (
    "no mistake",
    "epsilon 1e-6",
    "base 10,000",
    "rows in the file's order",
    "square ones not transposed",
    "key heads tiled",
    "input and post_attention exchanged",
    "gate and up exchanged",
)
ANSWERS = {
    "What is the capital of France?": "The capital of France is Paris.",
    "How many days are in a week?": "A week has 7 days.",
    "What do bees make?": "Bees make honey.",
    "Who wrote Romeo and Juliet?": "It was written by William Shakespeare.",
    "What is the opposite of hot?": "The opposite of hot is cold.",
    "What is 7 plus 5?": "7 plus 5 is 12.",
    "Which planet is the largest?": "The largest planet is Jupiter.",
    "What colour is a clear sky?": "A clear sky is blue.",
    "How many legs does a spider have?": "The number of its legs is 8.",
    "In which country is Tokyo?": "Tokyo is in Japan.",
}


def misread(config, weights, mistake):
    """Return sizes and weights as a loader with a mistake takes them.

    config: LlamaConfig; weights: {name: array}; mistake: of MISTAKES.
    """
    if mistake not in MISTAKES:
        raise ValueError(f"{mistake!r} is none of {', '.join(MISTAKES)}")
    found, share = dict(weights), config.num_heads // config.key_heads
    heads = {"q_proj": config.num_heads, "k_proj": config.key_heads}
    swaps = {"gate": "up", "input": "post_attention"}
    if mistake == "epsilon 1e-6":
        config = replace(config, epsilon=1e-6)
    if mistake == "base 10,000":
        config = replace(config, base=1e4)
    for name, w in weights.items():
        one = name.split(".")[-2]
        part = one.split("_")[0]
        if mistake == "rows in the file's order" and one in heads:
            rows = w.reshape(heads[one], 2, -1, w.shape[1])
            found[name] = rows.swapaxes(1, 2).reshape(w.shape)
        if part in swaps and mistake == f"{part} and {swaps[part]} exchanged":
            other = name.replace(part, swaps[part])
            found[name], found[other] = weights[other], w
        if mistake == "square ones not transposed" and one in SQUARE:
            found[name] = w.T
        if mistake == "key heads tiled" and one in SQUARE:
            rows = w.T if one == "o_proj" else w
            by_head = (share, config.key_heads, -1, len(w))
            rows = rows.reshape(by_head).swapaxes(0, 1).reshape(w.shape)
            found[name] = rows.T if one == "o_proj" else rows
    return config, found
