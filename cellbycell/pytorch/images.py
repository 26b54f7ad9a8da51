"""Images are tokens, too: its pytorch part, for what comes after it.

Built and explained in the chapter *Images are tokens, too* of the book.
Written by `make package`: change it in the chapter.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from cellbycell.pytorch.encoder import Causal, Encoder
from cellbycell.pytorch.rotary import rotary


def cut_patches(images, size):
    """Cut pictures into square patches, row by row from the top left.

    images: (batch, colours, height, width) in PyTorch, colours last in
    TensorFlow; the result is (B, T, D), with D numbers in each patch.
    """
    rows = images.unflatten(2, (-1, size))  # the width is now axis 4
    cut = rows.unflatten(4, (-1, size))
    cut = cut.permute(0, 2, 4, 1, 3, 5)  # (..., C, C)
    return cut.flatten(3).flatten(1, 2)  # (B, T, D)


class ViT(nn.Module):
    """Read pictures as rows of patches behind a class token, (B, T, D).

    count: the patches of a picture; size: of a patch, in pixels.
    Source: Dosovitskiy et al. 2021, section 3.1.
    """

    def __init__(self, count, size, d_model, num_layers=1, num_heads=4):
        super().__init__()
        self.size = size
        self.embed_patch = nn.Linear(3 * size**2, d_model)
        self.class_token = nn.Parameter(torch.zeros(1, 1, d_model))
        self.table = nn.Parameter(torch.zeros(1 + count, d_model))
        self.encoder = Encoder(
            num_layers, d_model, num_heads, 2 * d_model, norm_first=True
        )

    def embed(self, images):
        x = self.embed_patch(cut_patches(images, self.size))  # (B, C, D)
        first = self.class_token.expand(len(x), 1, -1)  # (B, 1, D)
        return torch.cat([first, x], dim=1) + self.table  # (B, C + 1, D)

    def forward(self, images):
        return self.encoder(self.embed(images))


def clip_loss(images, texts, log_scale):
    """Return the loss of pairs: each finds its partner in the batch, ().

    images, texts (B, D): unit vectors, a row of each for a pair.
    Source: Radford et al. 2021, section 2.3.
    """
    logits = log_scale.exp() * images @ texts.T  # (B, B)
    own = torch.arange(len(logits))  # (B,)
    by_image = F.cross_entropy(logits, own)
    return (by_image + F.cross_entropy(logits.T, own)) / 2


class TextEncoder(nn.Module):
    """Read words, each with those before it; token_ids (B, T) to (B, T, D)."""

    def __init__(self, vocab_size, seq_len, d_model, num_layers=1):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.table = nn.Parameter(torch.zeros(seq_len, d_model))
        sizes = num_layers, d_model, 4, 2 * d_model
        self.encoder = Causal(Encoder(*sizes, norm_first=True))

    def forward(self, token_ids):
        return self.encoder(self.embedding(token_ids) + self.table)


class Clip(nn.Module):
    """Return unit vectors of pictures and of texts, (B, C) each.

    image, text: encoders; texts all have one length, and end with *end*.
    """

    def __init__(self, image, text, d_model, d_common):
        super().__init__()
        self.image, self.text = image, text
        self.image_proj = nn.Linear(d_model, d_common, bias=False)
        self.text_proj = nn.Linear(d_model, d_common, bias=False)
        start = torch.tensor(math.log(1 / 0.07))  # ()
        self.log_scale = nn.Parameter(start)

    def of_images(self, images):
        return F.normalize(self.image_proj(self.image(images)[:, 0]), dim=-1)

    def of_texts(self, token_ids):
        return F.normalize(self.text_proj(self.text(token_ids)[:, -1]), dim=-1)

    def forward(self, images, token_ids):
        return self.of_images(images), self.of_texts(token_ids)


def rotary_grid(x, rows, columns, base=10000.0):
    """Rotate half of the columns of x by the row, half by the column.

    x (..., T, K) with K divisible by 4; rows, columns (T,): of each patch.
    The result has x's shape.
    """
    by_row, by_column = x.chunk(2, dim=-1)  # (..., T, C)
    turned = rotary(by_row, rows, base), rotary(by_column, columns, base)
    return torch.cat(turned, dim=-1)  # (..., T, K)
