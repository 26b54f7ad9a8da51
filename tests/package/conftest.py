"""What the tests of the package share: they run wherever it is installed."""


def pytest_configure(config):
    """Know the mark of pytest-xdist, which need not be installed."""
    config.addinivalue_line("markers", "xdist_group(name): one process")
