"""Under load the server stays up: it answers or refuses, stops what nobody waits for, and holds no more than it may."""

import json
import socket
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from live_server import Live

PIECE = b"x" * 65536


def head(live: Live, path: str, length: int | None, kind: str = "application/json") -> bytes:
    """The first lines of a request; without a length its body comes in chunks."""
    size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    return f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{live.port}\r\nContent-Type: {kind}\r\n{size}\r\n\r\n".encode()


def long_work(points: dict[str, Any]) -> bytes:
    """A question that takes minutes: each of many passes is drawn sample by sample."""
    return json.dumps({"series": points, "horizon": 2000, "samples": 500, "compare": False}).encode()


def test_fifty_at_once_are_answered_or_refused(start: Callable[..., Any], points: dict[str, Any]) -> None:
    with start(computations=1, queue=3) as busy, ThreadPoolExecutor(51) as clients:
        asked = {"series": points, "hide": [[100, 110]], "samples": 50}
        highest: list[int] = []

        def watch() -> None:
            while len(highest) < 40:
                found = busy.health()
                highest.append(found["present"])
                assert found["computing"] <= 1
                time.sleep(0.02)

        watching = clients.submit(watch)
        answers = list(clients.map(lambda _: busy.ask("POST", "/api/impute", asked), range(50)))
        watching.result()
        counts = Counter(status for status, _, _ in answers)
        assert set(counts) == {200, 503}
        assert counts[200] >= 4
        assert max(highest) <= 4
        given = [found["channels"]["kwh"]["model"] for status, found, _ in answers if status == 200]
        assert all(one == given[0] for one in given)
        for status, found, headers in answers:
            if status == 503:
                assert found["code"] == "busy"
                assert headers["retry-after"] == "5"
        assert busy.wait(present=0)["finished"] == counts[200]
        busy.emptied()


def test_work_stops_when_the_client_is_killed(live: Live, points: dict[str, Any]) -> None:
    before, body = live.health(), long_work(points)
    line = socket.create_connection(("127.0.0.1", live.port))
    line.sendall(head(live, "/api/forecast", len(body)) + body)
    live.wait(computing=1)
    began = time.monotonic()
    line.close()
    after = live.wait(computing=0, present=0)
    assert time.monotonic() - began < 10
    assert after["cancelled"] == before["cancelled"] + 1
    assert after["finished"] == before["finished"]
    assert live.post("/api/impute", {"series": points, "hide": [[3, 5]], "samples": 4})["rows"] == [3, 4]


def test_a_client_that_waits_leaves_the_queue(live: Live, points: dict[str, Any]) -> None:
    before, body = live.health(), long_work(points)
    lines = [socket.create_connection(("127.0.0.1", live.port)) for _ in range(3)]
    for number, line in enumerate(lines):
        line.sendall(head(live, "/api/forecast", len(body)) + body)
        live.wait(present=number + 1)
    lines[1].close()
    live.wait(present=2, computing=1)
    lines[0].close()
    live.wait(present=1, computing=1)  # the third has its place now
    lines[2].close()
    assert live.wait(present=0, computing=0)["cancelled"] == before["cancelled"] + 3


def test_a_hundred_megabytes_are_refused_before_they_are_read(live: Live) -> None:
    with socket.create_connection(("127.0.0.1", live.port), timeout=20) as line:
        line.sendall(head(live, "/api/read?name=big.csv", 100_000_000, "text/csv"))
        answer = b""
        while not answer.rstrip().endswith(b"}") and (more := line.recv(65536)):  # head and body may come one by one
            answer += more
    assert answer.startswith(b"HTTP/1.1 413")
    assert json.loads(answer.partition(b"\r\n\r\n")[2]) == {
        "error": "This is more than 2 MB; send a part of it, or use tamedit impute for whole files.",
        "code": "too-large",
    }


def test_nor_do_they_fit_in_without_a_length(live: Live) -> None:
    sent, most = 0, 0
    with socket.create_connection(("127.0.0.1", live.port), timeout=20) as line:
        line.sendall(head(live, "/api/read?name=big.csv", None, "text/csv"))
        try:
            while sent < 100_000_000:
                line.sendall(b"10000\r\n" + PIECE + b"\r\n")
                sent += len(PIECE)
                most = max(most, live.doors.held)
        except OSError:
            pass  # the server has closed the line
    assert most <= 2_000_000
    assert sent < 20_000_000
    live.wait(present=0)
    live.emptied()


def test_many_uploads_together_are_bounded(live: Live) -> None:
    """Each is allowed; together they are more than the server holds."""
    lines = []
    for _ in range(6):
        line = socket.create_connection(("127.0.0.1", live.port), timeout=20)
        line.sendall(head(live, "/api/read?name=x.csv", 1_900_000, "text/csv") + b"x" * 1_800_000)
        lines.append(line)
    until = time.monotonic() + 1.5
    while time.monotonic() < until:
        assert live.doors.held <= 8_000_000
        time.sleep(0.01)
    statuses = [line.recv(4096).split(b" ")[1] for line in lines]  # those that were held are given up after two seconds
    assert set(statuses) == {b"503", b"408"}
    assert statuses.count(b"408") == 4
    for line in lines:
        line.close()
    live.emptied()
    assert live.health()["present"] == 0
