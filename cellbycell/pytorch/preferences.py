"""Learn from your own text: its pytorch part, for what comes after it.

Built and explained in the chapter *Learn from your own text* of the book.
Written by `make package`: change it in the chapter.
"""

import torch
import torch.nn.functional as F

from cellbycell.common.preferences import written
from cellbycell.pytorch.cache import generate


def finish_names(model, begun, choose, max_len=20):
    """Return rows of names (B, T) that begin with ids (B, C)."""
    return generate(
        model, torch.tensor(begun), max_len, 0, choose=choose
    ).numpy()


def token_logs(model, rows, first=1):
    """Return log q of each written token of rows, 0 elsewhere, (B, T)."""
    ids, kept = torch.tensor(rows), torch.tensor(written(rows, first))
    logs = model(ids[:, :-1]).log_softmax(-1)  # (B, T, N)
    logs = logs.gather(-1, ids[:, 1:, None])[..., 0]  # (B, T)
    return torch.where(kept, logs, 0.0)


def preference_loss(won, lost, won_before, lost_before, beta=0.1):
    """Return equation (5), the mean of pairs, from texts' log q and log p."""
    margin = (won - won_before) - (lost - lost_before)  # (B,)
    return -F.logsigmoid(beta * margin).mean()


def row_kl(student, teacher, rows, reverse):
    """Return the mean KL of two models at the written places of rows, ()."""
    ids, kept = torch.tensor(rows[:, :-1]), torch.tensor(written(rows))
    q, p = (model(ids).log_softmax(-1) for model in (student, teacher))
    one, other = (q, p) if reverse else (p, q)
    return (one.exp() * (one - other)).sum(-1)[kept].mean()
