"""Who may ask, and how much they may send. Everything else is refused with one sentence and a code."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from live_server import Live

from support import Run
from tamedit.errors import UserError
from tamedit.runs.release import release
from tamedit.serve.served import load_served
from tamedit.serve.server_settings import Settings

TOKEN = "0123456789abcdefghij"


def check_refusal(answer: tuple[int, Any, dict[str, str]], status: int, code: str) -> str:
    assert answer[0] == status, answer
    assert set(answer[1]) == {"error", "code"}
    assert answer[1]["code"] == code
    sentence = answer[1]["error"]
    assert sentence.endswith(".")
    assert len(sentence) < 400
    assert answer[2]["content-security-policy"].startswith("default-src 'none'")
    return sentence


def raw(port: int, request: bytes, wait: float = 20.0) -> bytes:
    """What a server answers to these bytes."""
    with socket.create_connection(("127.0.0.1", port), timeout=wait) as line:
        line.sendall(request)
        return line.recv(65536)


HOSTS = ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil:{port}", "[::2]:{port}", ""]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("path", ["/", "/api/model"])
def test_only_its_own_name_is_answered(live: Live, host: str, path: str) -> None:
    check_refusal(live.ask("GET", path, headers={"Host": host.format(port=live.port)}), 403, "host")


def test_a_request_without_or_with_two_hosts_is_refused(live: Live) -> None:
    assert b"400" in raw(live.port, b"GET /api/model HTTP/1.1\r\n\r\n").split(b"\r\n")[0]
    two = f"GET /api/model HTTP/1.1\r\nHost: 127.0.0.1:{live.port}\r\nHost: evil\r\n\r\n".encode()
    assert raw(live.port, two).split(b" ")[1] in (b"400", b"403")


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST"])
def test_its_own_names_are_answered(live: Live, name: str) -> None:
    own = {"Host": f"{name}:{live.port}", "Origin": f"http://{name}:{live.port}", "Sec-Fetch-Site": "same-origin"}
    assert live.ask("GET", "/api/model", headers=own)[0] == 200


ORIGINS = ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1", "http://localhost:{port}"]


@pytest.mark.parametrize("origin", ORIGINS)
def test_pages_of_other_sites_may_not_ask(live: Live, points: dict[str, Any], origin: str) -> None:
    asked = {"series": points, "hide": [[3, 5]]}
    check_refusal(live.ask("POST", "/api/impute", asked, {"Origin": origin.format(port=live.port)}), 403, "origin")


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_nor_read_the_api_without_an_origin(live: Live, site: str) -> None:
    check_refusal(live.ask("GET", "/api/card", headers={"Sec-Fetch-Site": site}), 403, "origin")


@pytest.mark.parametrize("kind", ["text/plain", "multipart/form-data", "application/x-www-form-urlencoded", ""])
def test_forms_are_refused(live: Live, points: dict[str, Any], kind: str) -> None:
    check_refusal(live.ask("POST", "/api/impute", {"series": points}, {"Content-Type": kind}), 415, "type")


def test_a_token_is_asked_for_and_compared(start: Callable[..., Any]) -> None:
    with start(token=TOKEN) as guarded:
        for shown in (
            {},
            {"Authorization": f"Bearer {TOKEN}x"},
            {"Authorization": "Bearer "},
            {"Authorization": "Bearer é"},
        ):
            check_refusal(guarded.ask("GET", "/api/model", headers=shown), 401, "token")
        check_refusal(guarded.ask("POST", "/api/read?name=x", b"time,x\n"), 401, "token")
        assert guarded.ask("GET", "/api/model", headers={"Authorization": f"Bearer {TOKEN}"})[0] == 200
        status, page, _ = guarded.ask("GET", "/")  # the page itself has no secret, and asks with the token
        assert status == 200
        assert TOKEN not in page


@pytest.mark.parametrize(
    "settings", [{"host": "0.0.0.0"}, {"host": "192.168.1.5"}, {"host": "::"}, {"host": "example.org"}]
)
def test_another_address_needs_a_token(settings: dict[str, str]) -> None:
    with pytest.raises(UserError, match="`token` is needed"):
        Settings(**settings)
    with pytest.raises(UserError, match="at least 16"):
        Settings(**settings, token="short")
    assert Settings(**settings, token=TOKEN).address.endswith(f"/#token={TOKEN}")


def test_every_address_of_an_open_server_is_its_own_but_no_name() -> None:
    everywhere = Settings(host="0.0.0.0", port=80, token=TOKEN)
    assert everywhere.answers_to("192.168.1.5")
    assert everywhere.answers_to("[fe80::1]:80")
    assert not everywhere.answers_to("rebound.example")


def test_mistakes_on_the_command_line(
    mistake: Callable[..., str], smoke_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "--token" in mistake("serve", smoke_run, "--host", "0.0.0.0")
    assert "contains no trained model" in mistake("serve", tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert "choose another --port" in mistake("serve", smoke_run, "--port", taken.getsockname()[1])
    monkeypatch.setattr("tamedit.cli.serve.find_spec", lambda name: None)
    assert "pip install 'tamedit[serve]'" in mistake("serve", smoke_run)


def test_a_changed_release_is_not_served(smoke_run: Path, tmp_path: Path, run: Run) -> None:
    out = tmp_path / "release"
    release(smoke_run, out, acknowledge="without-privacy", curator="A <b>curator</b>")
    found = load_served(str(out))
    assert found.card.released
    assert not found.card.private
    assert found.card.not_covered == ["Trained without privacy: the model may reveal what it was trained on"]
    (out / "model-card.md").write_text("changed")
    with pytest.raises(UserError, match="not as it was released"):
        load_served(str(out))


BODIES = [
    b"",
    b"{",
    b"null",
    b"[]",
    b"\xff\xfe\x00",
    b'"text"',
    b"1e999",
    b'{"series": NaN}',
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b'{"series": {"times": ["a", "b"], "values": {"kwh": [NaN, 1]}}}',
    b'{"series": {"times": ["a", "b"], "values": {"kwh": [1]}}}',
    b'{"series": {"times": ["2024-01-01 00:00", "2024-01-01 01:00"], "values": {"kwh": [1, Infinity]}}}',
    b'{"series": {"times": ["2024-01-01 00:00", "2024-01-01 01:00"], "values": {"kwh": [1, 1e300]}}}',
    b'{"series": {"times": ["2024-01-01 00:00", "2024-01-01 01:00"], "values": {"a": [1, 2], "b": [1, 2]}}}',
    b'{"series": {"times": ["2024-01-01 00:00", "2024-01-01 05:00"], "values": {"time": [1, 2]}}}',
    b'{"series": {"times": ["2024-01-01 00:00", "2024-01-02 00:00"], "values": {"kwh": [1, null]}}}',
    b'{"series": {"times": ["x", "y"], "values": {"kwh": [1, null]}}}',
    b'{"series": {"times": [], "values": {}}, "samples": 1e30, "seed": -1, "other": 1}',
]


@pytest.mark.parametrize("path", ["/api/impute", "/api/forecast"])
@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_malformed_bodies_get_one_sentence(live: Live, path: str, body: bytes) -> None:
    status, found, _ = live.ask("POST", path, body)
    assert status in (400, 422), found
    assert set(found) == {"error", "code"}
    assert found["code"] in ("malformed", "not-possible")
    assert len(found["error"]) < 500
    assert "\n" not in found["error"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hide": [[5, 3]]}, "is no range of the 240 rows"),
        ({"hide": [[0, 241]]}, "is no range of the 240 rows"),
        ({"samples": 501}, "samples=501 is not possible"),
        ({"samples": "many"}, "samples='many' is not possible"),
        ({"colour": 1}, "`colour` is unknown; leave it out."),
        ({"series": None}, "series=None is not possible"),
        ({}, "Nothing is missing; hide some rows first"),
    ],
)
def test_a_mistake_is_named(live: Live, points: dict[str, Any], change: dict[str, Any], words: str) -> None:
    answer = live.ask("POST", "/api/impute", {"series": points, **change})
    assert answer[0] == 422
    assert words in answer[1]["error"]


TABLES = [
    b"",
    b"\n\n",
    b"a",
    b"time,x\n",
    b"\x1f\x8b\x08bomb",
    b"PK\x03\x04",
    b"\x00" * 1000,
    b"<html>",
    b"{}",
    b"time,x\n2024-01-01,a\n",
    b"time,x\n" + b"2024-01-01 00:00,1\n" * 3,
    b"x" * 100_000,
    b'time,x\n"' + b"1,2\n" * 100,
]


@pytest.mark.parametrize("table", TABLES, ids=range(len(TABLES)))
def test_what_is_no_table_gets_one_sentence(live: Live, table: bytes) -> None:
    answer = live.ask("POST", "/api/read?name=mine.csv", table, {"Content-Type": "text/csv"})
    sentence = check_refusal(answer, 422, "not-possible")
    assert "Traceback" not in sentence


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "/page/../stored.json",
        "/stored.json",
        "//etc/passwd",
        "/reference.html.j2",
        "/page/index.html",
        "/api/../../stored.json",
        "/static/%00",
        "/page.css%00.html",
        "/api/impute/../../x",
    ],
)
def test_only_known_files_are_given(live: Live, path: str) -> None:
    check_refusal(live.ask("GET", path), 404, "not-found")


def test_other_methods_are_refused(live: Live) -> None:
    for method, path in (("DELETE", "/api/model"), ("GET", "/api/impute"), ("PUT", "/"), ("OPTIONS", "/api/impute")):
        check_refusal(live.ask(method, path), 405, "method")


def test_every_answer_forbids_what_the_page_does_not_need(live: Live) -> None:
    for path in ("/", "/main.js", "/api/model", "/api/docs", "/nothing"):
        headers = live.ask("GET", path)[2]
        policy = headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", "no-store")
        assert "access-control-allow-origin" not in headers


def test_a_body_that_never_comes_is_given_up(start: Callable[..., Any]) -> None:
    with start(read_seconds=0.3) as hasty:
        lines = ["POST /api/impute HTTP/1.1", f"Host: 127.0.0.1:{hasty.port}", "Content-Type: application/json"]
        answer = raw(hasty.port, "\r\n".join([*lines, "Content-Length: 50", "", '{"series"']).encode())
        assert answer.startswith(b"HTTP/1.1 408")
        hasty.emptied()


def test_nothing_is_written(live: Live, points: dict[str, Any], smoke_run: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in smoke_run.rglob("*")}
    live.post("/api/impute", {"series": points, "hide": [[3, 5]], "samples": 4})
    live.ask("POST", "/api/read?name=../../x.csv", b"time,kwh\n2024-01-01 00:00,1\n", {"Content-Type": "text/csv"})
    assert {path: path.stat().st_mtime_ns for path in smoke_run.rglob("*")} == before
