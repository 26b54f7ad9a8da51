"""A fault that the checks found in public models, made again and small."""

import pytest
import torch
from torch import nn

from cellbycell.checks import check_model

IDS = [[3, 4, 5, 6, 7, 8, 9, 10], [11, 12, 3, 4, 5, 6, 13, 14]]
WIDTH = 16


class LinearAttention(nn.Module):
    """A causal model whose keys become exp(key) + 1e-4, as in Performers.

    over: the axes of (B, T, D) over which the largest key is subtracted
    before the exponential. Without the 1e-4 it would cancel. Keys are four
    times as large as in a new layer, as if the model were trained.
    """

    def __init__(self, over):
        super().__init__()
        torch.manual_seed(0)
        self.over = over
        self.table = nn.Embedding(20, WIDTH)
        self.packed = nn.Linear(WIDTH, 3 * WIDTH)
        self.last = nn.Linear(WIDTH, 20)

    def forward(self, ids):
        x = self.table(ids)
        query, key, value = self.packed(x).chunk(3, -1)
        key = 4 * key
        if self.over:
            key = key - key.amax(self.over, keepdim=True)
        key, query = key.exp() + 1e-4, query.softmax(-1)
        weights = (query @ key.mT).tril()
        weights = weights / weights.sum(-1, keepdim=True)
        return self.last(x + weights @ value)


@pytest.mark.parametrize(("over", "failed"), [((1, 2), True), ((), False)])
def test_the_largest_key_of_all_is_of_the_future(over, failed):
    report = check_model(LinearAttention(over), IDS, pad_id=None)
    assert report.errors == []
    assert ("causality" in report.failed) is failed
    assert ("prefix_consistency" in report.failed) is failed
