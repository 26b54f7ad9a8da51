"""What the tests of the package share: they run wherever it is installed."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))  # folders.py, beside the tests


def pytest_configure(config):
    """Know the mark of pytest-xdist, which need not be installed."""
    config.addinivalue_line("markers", "xdist_group(name): one process")
