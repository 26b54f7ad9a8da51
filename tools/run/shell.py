"""Run code in this process as a kernel does, and return its outputs."""

import ast
import io
import sys
import warnings
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from unittest.mock import patch

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.pylabtools import select_figure_formats
from nbformat import v4
from traitlets.config import Config

# "retina" draws figures twice as dense, which the site shows as large.
FIGURES = "retina"
# What Python leaves unsaid, as long as nobody asks.
UNSAID = (
    *(DeprecationWarning, PendingDeprecationWarning),
    *(ImportWarning, ResourceWarning),
)


class Publisher(DisplayPublisher):
    """Takes what is displayed."""

    def publish(self, data, metadata=None, **_):
        shown = v4.new_output("display_data", data, metadata=metadata or {})
        self.shell.sent.append(shown)


class Hook(DisplayHook):
    """Takes the value that a cell ends with."""

    def __call__(self, value=None):
        if value is not None:
            data, _ = self.compute_format_data(value)
            self.shell.sent.append(v4.new_output("execute_result", data))


class Stream(io.StringIO):
    """Takes what is printed, in one output until another kind follows."""

    def __init__(self, name, sent):
        super().__init__()
        self.name, self.sent = name, sent

    def write(self, text):
        last = self.sent[-1:]
        if last and last[0].get("name") == self.name:
            last[0].text += text
        elif text:
            self.sent.append(
                v4.new_output("stream", name=self.name, text=text)
            )


class Shell(InteractiveShell):
    """The shell that `display` asks for; sent: what the cell has sent."""

    display_pub_class = Publisher
    displayhook_class = Hook
    sent = []

    def enable_gui(self, gui=None):
        pass  # there is no window


def start():
    """Make the shell, with matplotlib as a new kernel would have it."""
    import matplotlib  # here, as most processes draw nothing

    matplotlib.rc_file_defaults()
    no_history = Config(HistoryManager={"enabled": False})
    shell = Shell.instance(config=no_history)
    shell.enable_matplotlib("inline")
    select_figure_formats(shell, {FIGURES})


@contextmanager
def warnings_on_stderr():
    """Let warnings be seen as in a kernel, whatever pytest does with them."""

    def write(message, category, filename, lineno, *_):
        text = warnings.formatwarning(message, category, filename, lineno)
        sys.stderr.write(text)

    with warnings.catch_warnings():
        warnings.resetwarnings()
        for category in UNSAID:
            warnings.simplefilter("ignore", category)
        warnings.filterwarnings("default", "", DeprecationWarning, "__main__")
        # Of a CUDA build where there is no GPU; it is no output of the book.
        warnings.filterwarnings("ignore", "CUDA initialization")
        warnings.showwarning = write
        yield


def execute(tree, file, namespace):
    """Run the syntax tree of a cell as a kernel does; return its outputs."""
    shell = Shell.instance()
    shell.sent = sent = []
    ends = tree.body[-1:]
    last = tree.body.pop() if ends and isinstance(ends[0], ast.Expr) else None
    with (
        redirect_stdout(Stream("stdout", sent)),
        redirect_stderr(Stream("stderr", sent)),
        warnings_on_stderr(),
    ):
        try:
            exec(compile(tree, file, "exec"), namespace)
            if last is not None:
                shown = compile(ast.Interactive([last]), file, "single")
                with patch("sys.displayhook", shell.displayhook):
                    exec(shown, namespace)
        finally:
            shell.events.trigger("post_execute")  # shows figures
    return sent
