"""The similarity of positions: its pytorch part, for what comes after it.

Built and explained in the chapter *The similarity of positions* of the book.
Written by `make package`: change it in the chapter.
"""

import torch

from cellbycell.common.position_similarity import frequencies


def rotation_matrix(offset, d_model, base=10000.0):
    """Return the matrix that moves every position by offset, (D, D).

    offset: any number, negative to step back. d_model: even. The columns
    are interleaved: sine, cosine, sine, cosine, and so on.
    """
    angles = offset * torch.tensor(frequencies(d_model, base))  # (C,)
    cos, sin = angles.cos(), angles.sin()  # (C,), (C,)
    # Each row of four becomes one 2 x 2 block.
    blocks = torch.stack([cos, sin, -sin, cos], dim=-1)  # (C, 4)
    return torch.block_diag(*blocks.reshape(-1, 2, 2))  # (D, D)
