"""The exercises of *A Llama, cell by cell*."""

import numpy as np

from . import Exercise

# 1: count the parameters

NAMES = "vocab_size hidden_size intermediate_size head_dim num_hidden_layers"
NAMES += " num_attention_heads num_key_value_heads tie_word_embeddings"


def count(matrices=3, norms=2, last=1, wide=None, tables=None, **changes):
    """Return an answer that counts otherwise.

    matrices: of SwiGLU; norms: of a layer; last: norms behind the layers;
    wide: the width of q_proj and o_proj, of the config; tables: how many;
    changes: {entry of the config: its value, of the config}.
    """

    def llama_parameters(config):
        config = config | {name: of(config) for name, of in changes.items()}
        d, heads = config["hidden_size"], config["num_attention_heads"]
        all_heads = wide(config) if wide else heads * config["head_dim"]
        few = config["num_key_value_heads"] * config["head_dim"]
        layer = 2 * d * (all_heads + few) + norms * d
        layer += matrices * d * config["intermediate_size"]
        how_many = tables or 2 - config["tie_word_embeddings"]
        total = how_many * config["vocab_size"] * d + last * d
        return total + config["num_hidden_layers"] * layer

    return llama_parameters


def configs():
    for row in [
        (128256, 2048, 8192, 64, 16, 32, 8, True),
        (23, 24, 40, 4, 3, 6, 3, False),
        (19, 32, 11, 16, 2, 4, 2, False),
    ]:
        yield (dict(zip(NAMES.split(), row, strict=True)),)


check_llama_parameters = Exercise(
    number=1,
    right=count(),
    cases=configs,
    mistakes={
        "tied: the last matrix is the embedding": count(tables=2),
        "not tied: the last matrix is one of its own": count(tables=1),
        "key heads are fewer, so two matrices are narrower": count(
            num_key_value_heads=lambda config: config["num_attention_heads"]
        ),
        "SwiGLU has three matrices": count(matrices=2),
        "each layer has two norms, and a last one stands behind": count(
            norms=0, last=0
        ),
        "each layer has two norms": count(norms=1),
        "the last norm is missing": count(last=0),
        "this is one layer": count(num_hidden_layers=lambda config: 1),
        "q_proj and o_proj are as wide as all heads": count(
            wide=lambda config: config["hidden_size"]
        ),
        "the heads together need not be as wide as the model": count(
            head_dim=lambda config: (
                config["hidden_size"] // config["num_attention_heads"]
            )
        ),
    },
    otherwise="add up the shapes of all names in a checkpoint",
)


# 2: from a kernel to a checkpoint


def joined(*axes):
    """Return an answer that joins the axes of a kernel in another order."""
    return lambda kernel: kernel.transpose(axes).reshape(-1, len(kernel))


def for_pairs(kernel):
    d, few, _ = kernel.shape
    pairs = kernel.reshape(d, few, 2, -1).transpose(1, 3, 2, 0)
    return pairs.reshape(-1, d)


def kernels():
    for sizes in ((6, 3, 4), (4, 2, 6)):
        yield (np.arange(1.0 * np.prod(sizes)).reshape(sizes),)


check_to_checkpoint = Exercise(
    number=2,
    right=joined(1, 2, 0),
    cases=kernels,
    mistakes={
        "a reshape does not exchange (in, out); transpose": joined(0, 1, 2),
        "the columns of a head are torn apart": joined(2, 1, 0),
        "these are sorted for pairs; both libraries have halves": for_pairs,
        "the heads stand in the opposite order": lambda kernel: joined(
            1, 2, 0
        )(kernel[:, ::-1]),
    },
    otherwise="row c K + k is column k of head c",
)


# 3: a larger base


def multiplied(power):
    """Return an answer that multiplies the base by a power of the factor."""
    return lambda base, factor, d_head: base * factor ** power(d_head)


check_larger_base = Exercise(
    number=3,
    right=multiplied(lambda d: d / (d - 2)),
    cases=lambda: [(10000.0, 8.0, 64), (5e5, 3.0, 6)],
    mistakes={
        "the last pair is d_head / 2 - 1, not d_head / 2": multiplied(
            lambda d: 1
        ),
        "the exponent is upside down": multiplied(lambda d: (d - 2) / d),
        "the last pair's exponent is 2 i / d_head, not i / d_head": multiplied(
            lambda d: 2 * d / (d - 2)
        ),
        "that base is smaller, and makes it faster": multiplied(
            lambda d: -d / (d - 2)
        ),
        "the base is not changed": multiplied(lambda d: 0),
        "this is the frequency, not the base": lambda base, factor, d: (
            base ** ((2 - d) / d) / factor
        ),
    },
    otherwise="(new base / base) ** ((d_head - 2) / d_head) is the factor",
)
