"""Serve a folder of pages on localhost."""

import gzip
import mimetypes
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMPRESSED = ("text/", "application/javascript", "application/json")


class Handler(SimpleHTTPRequestHandler):
    """Serve files, and leave the terminal alone."""

    def answer(self, body, kind, **headers):
        """Send a whole answer: its bytes, their MIME type, more headers."""
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", len(body))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class CompressingHandler(Handler):
    """Serve files compressed, as most hosts do."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            return self.send_error(404)
        body = path.read_bytes()
        kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
        headers = {}
        if kind.startswith(COMPRESSED) or path.suffix == ".svg":
            body, headers = gzip.compress(body), {"Content_Encoding": "gzip"}
        self.answer(body, kind, **headers)


def start(handler, folder, port=0):
    """Start a server of a folder in a thread; return it, at any free port.

    Raises OSError if the port is taken.
    """
    server = ThreadingHTTPServer(
        ("127.0.0.1", port), partial(handler, directory=folder)
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@contextmanager
def serving(folder, handler=Handler):
    """Serve a folder while the block runs; give its address."""
    with start(handler, folder) as server:
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
