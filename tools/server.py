"""Serve a folder of pages on localhost."""

import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer


class Handler(SimpleHTTPRequestHandler):
    """Serve files, and leave the terminal alone."""

    def log_message(self, *_):
        pass


@contextmanager
def serving(folder):
    """Serve a folder at any free port while the block runs; say where."""
    handler = partial(Handler, directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
