"""Run a chapter in this process and record what its kernel would send."""

import ast
import io
from contextlib import redirect_stderr, redirect_stdout
from unittest.mock import patch

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from nbformat import v4
from traitlets.config import Config

from tools.net.run import Run


class Publisher(DisplayPublisher):
    """Takes what is displayed."""

    def publish(self, data, *_, **__):
        self.shell.sent.append(v4.new_output("display_data", data))


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


class Recording(Run):
    """A run that keeps the outputs of the cell that ran last."""

    def __init__(self, notebook):
        super().__init__(notebook)
        no_history = Config(HistoryManager={"enabled": False})
        self.shell = Shell.instance(config=no_history)
        self.shell.enable_matplotlib("inline")

    @property
    def outputs(self):
        return self.shell.sent

    def execute(self, tree, file):
        """Run the syntax tree of a cell as a kernel does."""
        self.shell.sent = sent = []
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        with (
            redirect_stdout(Stream("stdout", sent)),
            redirect_stderr(Stream("stderr", sent)),
        ):
            try:
                super().execute(tree, file)
                if last is not None:
                    shown = compile(ast.Interactive([last]), file, "single")
                    with patch("sys.displayhook", self.shell.displayhook):
                        exec(shown, self.namespace)
            finally:
                self.shell.events.trigger("post_execute")  # shows figures
