"""A web server for one browser on this machine.

It listens on the loopback interface only. Other programs of the machine can reach it there, and
so can any page in the browser; what keeps them out is a secret in the address, and that requests
in the name of another site or host are refused.
"""

import secrets
import shutil
import socket
import socketserver
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from threading import Thread
from typing import BinaryIO, cast

from perfdiag.cli.viewing.site import Content, Site
from perfdiag.trace_schemas.errors import UsageError

__all__ = ["Server"]

_LOOPBACK = "127.0.0.1"
_SECRET_BYTES = 32
_IDLE_S = 60
"""A connection on which nothing is asked for this long is closed."""

_POLL_S = 0.1
"""How often the server looks whether it shall end."""

_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self' 'wasm-unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",  # the UI sets styles of its elements
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self' blob: data:",
        "worker-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""Nothing but this server: no telemetry of the UI, no other trace processor on the machine."""

_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",  # the address holds the secret
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Vary": "Origin",
}


class Server(ThreadingHTTPServer):
    """Listens; what it has to answer with comes with `running`.

    Args:
        port: of the loopback interface; 0 for one that is free.

    Raises:
        UsageError: nothing can listen on the port.
    """

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        """Listen already: the port is known then."""
        self.site: Site = {}
        self.secret = secrets.token_urlsafe(_SECRET_BYTES)
        try:
            super().__init__((_LOOPBACK, port), _Handler)
        except (OSError, OverflowError) as error:
            msg = f"cannot listen on {_LOOPBACK}:{port}: {error}; name another --port, or none"
            raise UsageError(msg) from error

    @property
    def hosts(self) -> tuple[str, ...]:
        """What a browser on this machine can have asked for."""
        return f"{_LOOPBACK}:{self.server_port}", f"localhost:{self.server_port}"

    @property
    def address(self) -> str:
        """Where the page is; whoever knows it has the trace."""
        return f"http://{self.hosts[0]}/{self.secret}/"

    @contextmanager
    def running(self, site: Site) -> Iterator[str]:
        """Serve a site as long as the context lasts, which gives the address.

        Args:
            site: all that there is.
        """
        self.site = site
        Thread(target=self.serve_forever, args=(_POLL_S,), daemon=True).start()
        try:
            yield self.address
        finally:
            self.shutdown()

    def server_bind(self) -> None:
        """Bind without asking a name server for the name of the machine, as the parent does."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = _LOOPBACK, int(self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing where the browser has gone away."""
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):
            super().handle_error(cast("socket.socket", request), client_address)


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server_version = "perfdiag"
    sys_version = ""
    timeout = _IDLE_S
    server: Server

    def do_GET(self) -> None:
        """Send what the address names."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """Say what GET would send."""
        self._answer(with_body=False)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what is no request, or one that is neither GET nor HEAD, in as few words."""
        self.close_connection = True  # whatever follows is the body, which nobody reads
        unsupported = code == HTTPStatus.NOT_IMPLEMENTED
        self._refuse(HTTPStatus.METHOD_NOT_ALLOWED if unsupported else HTTPStatus(code))

    def _answer(self, with_body: bool) -> None:
        if not self._is_ours():
            self._refuse(HTTPStatus.FORBIDDEN)
            return
        content = self._content()
        source = None if content is None else _opened(content)
        if content is None or source is None:
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        file, size = source
        with file:
            self._head(HTTPStatus.OK, content.media_type, size)
            if with_body:
                shutil.copyfileobj(file, self.wfile, 1 << 20)

    def _is_ours(self) -> bool:
        """Whether the request is for this server, and not in the name of another site.

        A page whose host name was made to lead here (DNS rebinding) says its own name in `Host`.
        """
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or hosts[0] not in self.server.hosts:
            return False
        origins = self.headers.get_all("Origin", [])
        return all(origin == f"http://{hosts[0]}" for origin in origins)

    def _content(self) -> Content | None:
        """What the address names, which is taken as it is: nothing in it is decoded."""
        path = self.path.partition("?")[0]
        secret, slash, name = path[1:].partition("/")
        right = secrets.compare_digest(secret.encode(), self.server.secret.encode())
        return self.server.site.get(name) if right and slash and path[0] == "/" else None

    def _head(self, status: HTTPStatus, media_type: str, size: int) -> None:
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(size))
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        if status == HTTPStatus.OK and "Origin" in self.headers:
            self.send_header("Access-Control-Allow-Origin", self.headers["Origin"])
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()

    def _refuse(self, status: HTTPStatus) -> None:
        body = f"{status.phrase}\n".encode()
        self._head(status, "text/plain; charset=utf-8", len(body))
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet: addresses hold the secret."""


def _opened(content: Content) -> tuple[BinaryIO, int] | None:
    """The bytes and how many they are; None where the file is gone."""
    if isinstance(content.source, bytes):
        return BytesIO(content.source), len(content.source)
    try:
        return content.source.open("rb"), content.source.stat().st_size
    except OSError:
        return None
