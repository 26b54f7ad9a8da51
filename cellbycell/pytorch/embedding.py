"""From words to vectors: its pytorch part, for what comes after it.

Built and explained in the chapter *From words to vectors* of the book.
Written by `make package`: change it in the chapter.
"""

import numpy as np
import torch
import torch.nn.functional as F


def name_loss(model, rows):
    """Return the mean loss of the letters of names, in nats.

    model: from ids (B, T) to logits (B, T, N); rows: T + 1 ids each.
    """
    rows = torch.as_tensor(rows)
    inputs, targets = rows[:, :-1], rows[:, 1:]
    is_first = torch.arange(inputs.shape[1]) == 0  # (T,)
    counts = (inputs != 0) | is_first  # (B, T)
    logits = model(inputs)  # (B, T, N)
    return F.cross_entropy(logits[counts], targets[counts])


def learn(
    model, rows, steps=300, rate=0.01, decay=0.01, seed=0, loss_of=name_loss
):
    """Train a model on rows drawn at random: return the losses.

    rows: T + 1 ids each, and each step draws 64; loss_of: a function of the
    model and the rows that were drawn.
    """
    rng, losses = np.random.default_rng(seed), []
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=decay)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = rate * (1 - step / steps)
        drawn = rows[rng.integers(len(rows), size=64)]
        loss = loss_of(model, torch.tensor(drawn))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
