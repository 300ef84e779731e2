"""Servers of this machine that break as those of others do."""

import re
import socket
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit


class Web:
    """A web server of some files.

    Attributes
    ----------
    files : dict of str to bytes
    ranges : bool
        Whether it gives parts of a file.
    cuts : list of int
        After how many bytes of a body it hangs up, answer by answer, but for those that ask for
        the first byte alone; afterwards no more.
    statuses : dict of str to int
        What it says of some paths instead of giving them.
    served : int
        How many bytes of bodies it sent.
    """

    def __init__(self, files, *, ranges=True):
        self.files, self.ranges = files, ranges
        self.cuts, self.statuses, self.served, self.asked, self.version = [], {}, 0, [], '"1"'


@contextmanager
def serving(files, *, ranges=True):
    """Give a web server, and its address."""
    web = Web(files, ranges=ranges)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_GET(self):
            path = unquote(urlsplit(self.path).path).lstrip("/")
            web.asked.append((self.path, self.headers))
            status = web.statuses.get(path, 200 if path in web.files else 404)
            content = web.files.get(path, b"") if status == 200 else b"never mind"
            asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            extra = {"ETag": web.version}
            if status == 200 and web.ranges and asked:
                start, end = int(asked[1]), min(int(asked[2]) + 1, len(content))
                extra["Content-Range"] = f"bytes {start}-{end - 1}/{len(content)}"
                status = 206
                if start >= len(content):
                    extra["Content-Range"], status = f"bytes */{len(content)}", 416
                content = content[start:end]
            self._send(status, content, extra)

        def _send(self, status, content, extra):
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **extra}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.headers.get("Range") != "bytes=0-0" and web.cuts:
                content = content[: web.cuts.pop(0)]
                self.close_connection = True
            web.served += len(content)
            try:
                self.wfile.write(content)
            except OSError:
                self.close_connection = True  # whoever asked has enough

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield web, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Proxy:
    """Passes bytes on to a server, and hangs up after so many of one direction.

    Attributes
    ----------
    down, up : int or None
        How many bytes of an answer, or of what is asked, come through; all by default.
    cuts : int
        How often it still hangs up.
    """

    def __init__(self):
        self.down = self.up = None
        self.cuts = self.made = 0

    def cut(self, *, down=None, up=None, times):
        """Hang up so often from now on."""
        self.down, self.up, self.cuts, self.made = down, up, times, 0


def _carry(proxy, source, target, way):
    passed = 0
    with suppress(OSError):
        while content := source.recv(1 << 16):
            passed += len(content)
            limit = getattr(proxy, way)
            if limit is not None and passed > limit and proxy.cuts > 0:
                proxy.cuts -= 1
                proxy.made += 1
                break
            target.sendall(content)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()


@contextmanager
def proxying(port):
    """Give a proxy of a server of this machine, and its address."""
    proxy = Proxy()
    listening = socket.create_server(("127.0.0.1", 0))

    def accept():
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", port))
            for source, target, way in ((client, server, "up"), (server, client, "down")):
                threading.Thread(
                    target=_carry, args=(proxy, source, target, way), daemon=True
                ).start()

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield proxy, f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()
