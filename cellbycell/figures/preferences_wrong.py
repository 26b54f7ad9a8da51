"""Wrong lines of *Learn from your own text*, and where each of them pulls."""

import numpy as np

__all__ = ["far_weights", "slopes_of_mistakes"]
BETA = 0.5  # what a nat of KL costs


def far_weights(weights):
    """Return weights that have moved far, each by a fixed wave.

    weights: {name: array}
    """
    waves = {name: np.sin(np.arange(w.size)) for name, w in weights.items()}
    return {
        name: w + w.std() * waves[name].reshape(w.shape)
        for name, w in weights.items()
    }


def slopes_of_mistakes(model, rows, p, rewards):
    """Return the gradient of what equation (3) maximises, and wrong ones.

    Parameters
    ----------
    model
        The policy, in PyTorch.
    rows
        All texts that it can write, (B, C).
    p
        Their probabilities before the training, (B,).
    rewards
        (B,).

    Returns
    -------
    dict
        {name: gradient (P,)}, with all weights in one row; "right" first.
    """
    import torch

    from ..common import written

    ids, kept = torch.tensor(rows), written(rows).astype(float)  # (B, T)

    def log_rows(temperature=1.0, shift=1):
        """Return the logs of all tokens, pads too, (B, T)."""
        logits = model(ids)[:, 1 - shift : ids.shape[1] - shift] / temperature
        logs = logits.log_softmax(-1)  # (B, T, N)
        return logs.gather(-1, ids[:, 1:, None])[..., 0]

    def slope(weights, shift=1):
        """Return the gradient of weighted logs, (P,)."""
        total = (torch.tensor(weights) * log_rows(shift=shift)).sum()
        parts = torch.autograd.grad(total, [*model.parameters()])
        return torch.cat([part.ravel() for part in parts]).numpy()

    logs, cold = (
        (log_rows(t).detach().numpy() * kept).sum(-1) for t in (1.0, 0.5)
    )
    q, drift, chill = np.exp(logs), logs - np.log(p), np.exp(cold)  # (B,)
    gain = (q * (rewards - BETA * drift))[:, None]  # (B, 1)
    away = (q * (rewards + BETA * drift))[:, None]
    colder = chill * (rewards - rewards @ chill - BETA * drift)
    return {
        "right": slope(gain * kept),
        "pads counted": slope(gain * np.ones_like(kept)),
        "not shifted": slope(gain * kept, shift=0),
        "end left out": slope(gain * (rows[:, 1:] != 0)),
        "reference trains": slope((q * rewards)[:, None] * kept),
        "KL's sign": slope(away * kept),
        "colder sampler": slope(colder[:, None] * kept),
    }
