"""The server gives one browser of this machine what is in its site, and nobody anything else."""

import http.client
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from perfdiag.cli.viewing import Content, Server
from perfdiag.trace_schemas.errors import UsageError


@dataclass(frozen=True)
class Answer:
    """What a server said."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A trace, and beside it what nobody asked to show."""
    (tmp_path / "a.pftrace").write_bytes(b"trace" * 1000)
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    return tmp_path


@pytest.fixture
def server(folder: Path) -> Iterator[Server]:
    site = {
        "": Content("text/html", b"<html>"),
        "trace/a.pftrace": Content("application/octet-stream", folder / "a.pftrace"),
        "gone": Content("text/plain", folder / "gone"),
    }
    with Server() as server, server.running(site):
        yield server


def ask(server: Server, path: str, method: str = "GET", host: str = "", **headers: str) -> Answer:
    """Send a request as it is: no client tidies the path up."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.putrequest(method, path, skip_host=True)
    connection.putheader("Host", host or server.hosts[0])
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    response = connection.getresponse()
    answer = Answer(response.status, dict(response.headers), response.read())
    connection.close()
    return answer


def test_gives_what_is_in_the_site(server: Server, folder: Path) -> None:
    """The page at the address, and the file below it as it is."""
    assert ask(server, f"/{server.secret}/").body == b"<html>"
    answer = ask(server, f"/{server.secret}/trace/a.pftrace?v=1")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.body == (folder / "a.pftrace").read_bytes()


def test_says_what_it_would_give(server: Server) -> None:
    """HEAD has the length and no body."""
    answer = ask(server, f"/{server.secret}/trace/a.pftrace", "HEAD")
    assert (answer.status, answer.headers["Content-Length"], answer.body) == (200, "5000", b"")


@pytest.mark.parametrize(
    "name",
    [
        "secret.txt",
        "trace/secret.txt",
        "trace/../secret.txt",
        "../secret.txt",
        "../../../../../../etc/passwd",
        "/etc/passwd",
        "trace/%2e%2e/secret.txt",
        "trace/..%2fsecret.txt",
        "trace/%252e%252e%252fsecret.txt",
        "trace\\..\\secret.txt",
        "trace/..;/secret.txt",
        "trace/a.pftrace/../../secret.txt",
        "trace/a.pftrace%00.txt",
        "trace/a%2Epftrace",
        "file:///etc/passwd",
    ],
)
def test_other_files_do_not_exist(server: Server, name: str) -> None:
    """Whatever leads elsewhere, plain or encoded once or twice, is not found."""
    answer = ask(server, f"/{server.secret}/{name}")
    assert answer.status == 404
    assert b"secret" not in answer.body


@pytest.mark.parametrize("name", ["trace", "trace/", "trace//", ".", "./", "%2e/", "/"])
def test_folders_are_not_listed(server: Server, name: str) -> None:
    """A folder is nothing that one could ask for."""
    assert ask(server, f"/{server.secret}/{name}").status == 404


def test_nothing_without_the_secret(server: Server) -> None:
    """Another secret, a part of it, none at all, or the secret where it does not belong."""
    wrong = "A" * len(server.secret)
    for path in (
        "/",
        "/trace/a.pftrace",
        "//trace/a.pftrace",
        f"/{wrong}/trace/a.pftrace",
        f"/{server.secret[:-1]}/trace/a.pftrace",
        f"/{server.secret}",
        f"/x/{server.secret}/trace/a.pftrace",
        f"/{server.secret.swapcase()}/",
        "/%ff/",
        f"http://{server.hosts[0]}/{server.secret}/",
        "*",
    ):
        assert ask(server, path).status == 404, path


def test_secrets_cannot_be_guessed() -> None:
    """Each server has its own, of 256 bits."""
    with Server() as one, Server() as other:
        assert one.secret != other.secret
        assert len(one.secret) >= 43


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "0.0.0.0:{port}"]
)
def test_other_hosts_are_refused(server: Server, host: str) -> None:
    """A name that was made to lead to this machine is not ours (DNS rebinding)."""
    named = host.format(port=server.server_port)
    assert ask(server, f"/{server.secret}/", host=named).status == 403


def test_a_request_says_one_host(server: Server) -> None:
    """Two of them, or none, are no request of a browser."""
    assert ask(server, f"/{server.secret}/", hosT=server.hosts[0]).status == 403
    with socket.create_connection(("127.0.0.1", server.server_port), 10) as connection:
        connection.sendall(f"GET /{server.secret}/ HTTP/1.0\r\n\r\n".encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "http://127.0.0.1", "http://127.0.0.1:1", "https://{host}"],
)
def test_other_origins_are_refused(server: Server, origin: str) -> None:
    """A page of another site gets nothing, whatever it knows."""
    answer = ask(server, f"/{server.secret}/", Origin=origin.format(host=server.hosts[0]))
    assert answer.status == 403
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_own_origin_is_allowed(server: Server) -> None:
    """Under either name of the loopback interface; others are never told that they may."""
    for host in server.hosts:
        answer = ask(server, f"/{server.secret}/", host=host, Origin=f"http://{host}")
        assert answer.status == 200
        assert answer.headers["Access-Control-Allow-Origin"] == f"http://{host}"
    assert "Access-Control-Allow-Origin" not in ask(server, f"/{server.secret}/").headers


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "get"])
def test_nothing_can_be_sent(server: Server, method: str) -> None:
    """Only GET and HEAD are answered, and a body is no second request."""
    answer = ask(server, f"/{server.secret}/", method, Content_Length="0")
    assert (answer.status, answer.headers["Connection"]) == (405, "close")
    assert answer.headers["Allow"] == "GET, HEAD"


def test_pages_can_use_nothing_but_the_server(server: Server) -> None:
    """The policy names no other host, and neither frames nor referrers give the secret away."""
    headers = ask(server, f"/{server.secret}/").headers
    policy = headers["Content-Security-Policy"]
    assert "http" not in policy
    assert "*" not in policy
    assert policy.startswith("default-src 'none'")
    assert "frame-ancestors 'none'" in policy
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"


def test_a_file_that_is_gone_is_not_found(server: Server) -> None:
    """The user may remove the trace while the server runs."""
    assert ask(server, f"/{server.secret}/gone").status == 404


def test_listens_on_the_loopback_interface_only(server: Server) -> None:
    """Another address of this machine is refused, although it leads here as well."""
    assert server.server_address == ("127.0.0.1", server.server_port)
    with pytest.raises(ConnectionError):
        socket.create_connection(("127.0.0.2", server.server_port), 10)


def test_asks_no_name_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a network the name of the machine may take long to look up."""

    def lookup(*_: object) -> str:
        pytest.fail("looked a name up")

    for name in ("getfqdn", "gethostbyaddr", "gethostbyname"):
        monkeypatch.setattr(socket, name, lookup)
    with Server() as server, server.running({"": Content("text/html", b"")}):
        assert ask(server, f"/{server.secret}/").status == 200


def test_a_port_that_is_taken_is_a_usage_error(server: Server) -> None:
    """The message names the port and the option."""
    with pytest.raises(UsageError, match=rf":{server.server_port}: .*--port"):
        Server(server.server_port)


def test_a_browser_that_goes_away_is_no_error(
    server: Server, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A tab may be closed while the trace is on its way."""
    (folder / "a.pftrace").write_bytes(bytes(50_000_000))
    with socket.create_connection(("127.0.0.1", server.server_port), 10) as connection:
        path = f"/{server.secret}/trace/a.pftrace"
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {server.hosts[0]}\r\n\r\n".encode())
        connection.recv(10)
    assert ask(server, f"/{server.secret}/").status == 200
    assert capfd.readouterr() == ("", "")
