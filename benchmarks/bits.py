"""Round SmolLM2 in many ways, for the tables and plots of *Fewer bits*.

    python -m benchmarks.bits

It writes, in three minutes, what `cellbycell.figures.bits` shows: losses in
nats a token on a text, and an answer.
"""

import json

import torch
import torch.nn.functional as F
from torch import nn

from cellbycell.breaks import QUESTION
from cellbycell.figures.bits import FILE
from cellbycell.pytorch import quantise, restore
from cellbycell.smol import load_smol, smol_tokenizer, talk

TEXT = """\
The harbour master kept two books. In the first he wrote down every ship \
that came in: its name, its flag, what it carried, and how many men were on \
board. In the second he wrote down what he thought of it. The first book was \
read by the port authority in the capital once a year. The second book was \
read by nobody, and that was why he liked it better.

One morning in late October a small grey ship came in without a flag. It \
moved slowly past the lighthouse, turned once around the old buoy, and \
dropped its anchor in the middle of the bay, where no ship had ever anchored \
before. The harbour master took his telescope and looked for a name, but the \
paint on the bow had been scraped away. There were no men on the deck. He \
opened the first book, wrote the date and the hour, and then stopped, \
because he did not know what to write next.

He sent his assistant out in the rowing boat. The boy came back after an \
hour, wet and pale. "There is nobody on board," he said. "But the stove is \
warm, and there are six plates on the table, and the soup is still hot." The \
harbour master thought about this for a long time. Then he put the first \
book back on the shelf and opened the second.
"""
GROUPS = "32", "row", "tensor"
BITS = 8, 6, 5, 4, 3, 2
KINDS = "embedding", "query_proj", "key_proj", "value_proj", "output_proj"
KINDS += "gate", "up", "down"


def rounded(w, bits, group):
    """Return a matrix rounded, with a scale a group, a row or for all."""
    if group == "tensor":
        return rounded(w.reshape(1, -1), bits, "row").reshape(w.shape)
    columns = w.shape[-1] if group == "row" else int(group)
    return restore(*quantise(w, bits, columns)).to(w.dtype)


class Rounded:
    """SmolLM2, whose matrices are rounded for a while.

    text: what losses are measured on.
    """

    def __init__(self, text=TEXT):
        self.model = load_smol().requires_grad_(False)
        self.ids = torch.tensor([smol_tokenizer().encode(text).ids])  # (1, T)
        named = self.model.named_parameters()
        self.matrices = {n: w for n, w in named if w.ndim > 1}
        self.own = {n: w.data for n, w in self.matrices.items()}

    def loss(self, cache=None, start=0):
        """Return the loss on the text, from a token on, with a cache."""
        logits, _ = self.model(self.ids[:, start:], cache or [])
        wanted = self.ids[0, start + 1 :]
        return round(F.cross_entropy(logits[0, :-1], wanted).item(), 3)

    def weights(self, bits, group, kind="", answer=False):
        """Return the loss with matrices of a kind rounded, or an answer."""
        for name, w in self.matrices.items():
            if kind in name:
                w.data = rounded(self.own[name], bits, group)
        said = self.answer() if answer else self.loss()
        for name, w in self.matrices.items():
            w.data = self.own[name]
        return said

    def answer(self):
        """Return the answer to the question, of eight tokens at most."""
        return "".join(token for token, _ in talk(QUESTION, 8, self.model))

    def activations(self, bits, group):
        """Return the loss with the inputs of all layers' matrices rounded.

        In float64: a giant step makes whole numbers of 0 and 1, and the last
        digits of float32, which differ between processors, exchange some.
        """

        def round_inputs(part, inputs):
            return rounded(inputs[0], bits, group).reshape(inputs[0].shape)

        parts = [m for m in self.model.modules() if isinstance(m, nn.Linear)]
        hooks = [
            part.register_forward_pre_hook(round_inputs) for part in parts
        ]
        self.model.double()
        found = self.loss()
        self.model.float()  # exactly what it was
        for hook in hooks:
            hook.remove()
        return found

    def first_half(self):
        """Return the cache of the text's first half, and its length."""
        half = self.ids.shape[1] // 2
        return self.model(self.ids[:, :half], [])[1], half

    def cache(self, bits, keys=True, values=True):
        """Return the second half's loss, the first one's cache rounded."""
        cache, half = self.first_half()
        cache = [
            tuple(
                rounded(x, bits, "row") if wanted else x
                for x, wanted in zip(pair, (keys, values), strict=True)
            )
            for pair in cache
        ]
        return self.loss(cache, half)


@torch.no_grad()
def measured(text=TEXT):
    """Return all losses and answers, as JSON has them."""
    smol = Rounded(text)
    return {
        "text": text,
        "exact": smol.loss(),
        "second half": smol.loss(*smol.first_half()),
        "weights": {
            group: {str(bits): smol.weights(bits, group) for bits in BITS}
            for group in GROUPS
        },
        "answers": {
            str(bits): smol.weights(bits, "32", answer=True) for bits in BITS
        },
        "kinds": {kind: smol.weights(3, "32", kind) for kind in KINDS},
        "activations": {group: smol.activations(8, group) for group in GROUPS},
        "cache": {
            str(bits): [
                smol.cache(bits, values=False),
                smol.cache(bits, keys=False),
            ]
            for bits in (8, 4, 3, 2)
        },
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(measured(), indent=1) + "\n", "utf-8")
    print("written:", FILE.name)
