"""Attacks: nothing gets in, nothing gets out, and the server stays up."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import resource
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from page.conftest import HOSTILE, write_hostile
from page.served import TOKEN, Client, Server, invited, lead, serving

from tiebreak import tables
from tiebreak.page import guard

VIEWS = (
    "/",
    "/ask",
    "/watch",
    "/tasks",
    "/explain?task=0",
    "/people",
    "/download/labels.csv",
    "/media/a.png",
)
POSTS = ("/answer", "/skip", "/undo", "/keep", "/label", "/label/undo", "/invite", "/name")


def n_answers(server: Server) -> int:
    page = lead(server).get("/").body
    found = re.search(r'standing">([\d,]+)', page)
    assert found is not None
    return int(found[1].replace(",", ""))


@pytest.mark.parametrize("path", VIEWS)
def test_without_a_token_nothing_is_shown(server: Server, path: str) -> None:
    reply = Client(server).get(path)
    assert reply.status == 403
    assert "set-cookie" not in reply.headers
    assert "m01" not in reply.body


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], TOKEN + "x", "é" * 20])
def test_a_wrong_token_opens_nothing(server: Server, token: str) -> None:
    reply = Client(server).get(f"/?token={quote(token)}")
    assert reply.status == 403
    assert "set-cookie" not in reply.headers


def test_a_cookie_cannot_be_made_up(server: Server) -> None:
    own = guard.Tokens("another token, not this server's").cookie(guard.Visitor("00", "eve", True))
    for cookie in (own, "x", "", ".", own.partition(".")[0] + ".", "é"):
        forged = Client(server, cookie.encode("ascii", "ignore").decode())
        assert forged.get("/watch").status == 403
    honest = lead(server)
    assert honest.cookie is not None
    body, _, mac = honest.cookie.partition(".")
    assert Client(server, body[:-2] + "AA." + mac).get("/watch").status == 403


def test_the_cookie_is_strict_and_out_of_reach_of_scripts(server: Server) -> None:
    said = Client(server).get(f"/?token={TOKEN}").headers["set-cookie"].lower()
    assert "httponly" in said
    assert "samesite=strict" in said


def test_who_is_invited_is_no_lead(server: Server) -> None:
    client = invited(lead(server), server, "carl")
    assert client.get("/").status == 200
    for path in ("/watch", "/tasks", "/explain?task=0", "/people", "/download/labels.csv"):
        assert client.get(path).status == 403
    assert client.post("/label", task=0, label=0).status == 403
    assert client.post("/invite", who="x").status == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1", "", "a b"]
)
def test_a_foreign_host_is_refused(server: Server, host: str) -> None:
    client = lead(server)
    assert client.get("/watch", Host=host).status == 421
    assert client.get(f"/?token={TOKEN}", Host=host).status == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "", "https://127.0.0.1"])
def test_a_form_of_a_foreign_origin_is_refused(server: Server, origin: str) -> None:
    client = lead(server)
    before = n_answers(server)
    form = f"question={client.question}&says=0".encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": origin}
    assert client.send("POST", "/answer", form, headers).status == 403
    del headers["Origin"]
    assert client.send("POST", "/answer", form, headers).status == 403
    assert n_answers(server) == before


@pytest.mark.parametrize("path", POSTS)
def test_a_form_that_another_site_sends_is_refused(server: Server, path: str) -> None:
    client = lead(server)
    before = n_answers(server)
    form = urlencode({"question": client.question, "says": 0, "task": 0, "label": 0}).encode()
    for origin, site in (
        ("http://evil.example", "cross-site"),
        ("http://evil.example", "same-origin"),
        ("http://127.0.0.1:1", "same-site"),  # another server of this machine, with the cookie
        (server.address, "same-site"),
        (server.address, "cross-site"),
        (server.address, "none"),
        (None, "same-origin"),
    ):
        headers = {"Sec-Fetch-Site": site} | ({} if origin is None else {"Origin": origin})
        assert client.send("POST", path, form, headers).status == 403
    assert n_answers(server) == before


def test_browsers_without_fetch_metadata_are_let_in_by_their_origin(server: Server) -> None:
    client = lead(server)
    assert client.send("POST", "/undo", b"", {"Origin": server.address}).status == 303


def test_a_question_cannot_be_made_up(server: Server) -> None:
    client = lead(server)
    before = n_answers(server)
    forged = guard.Tokens("not this server's token").signed("question", ["same", "m01", "m02", "t"])
    for question in (forged, "", "x.y", client.question[:-1]):
        assert client.post("/answer", question=question, says=0).status == 409
    question = client.question
    for says in ("7", "-1", "same", "", "0 or 1"):
        assert client.post("/answer", question=question, says=says).status == 409
    assert n_answers(server) == before


@pytest.mark.parametrize(
    "path",
    [
        "/media/../secret.png",
        "/media/%2e%2e/secret.png",
        "/media/..%2fsecret.png",
        "/media/%252e%252e%252fsecret.png",
        "/media/..%5csecret.png",
        "/media//etc/passwd",
        "/media/%2fetc%2fpasswd",
        "/media/etc/passwd",
        "/media/etc/hostname.png",
        "/media/out.png",
        "/media/a.png%00.png",
        "/media/responses.csv",
        "/static/../server.py",
        "/static/..%2fserver.py",
        "/static/%2e%2e%2fserver.py",
        "/download/..%2fshared.db",
        "/download/labels.exe",
    ],
)
def test_no_path_leads_out_of_its_folder(server: Server, path: str) -> None:
    reply = lead(server).get(path)
    assert reply.status == 404
    assert b"secret" not in reply.raw
    assert b"root:" not in reply.raw


def test_a_file_below_the_folder_is_served_as_a_picture_only(server: Server) -> None:
    reply = lead(server).get("/media/a.png")
    assert reply.status == 200
    assert reply.headers["content-type"] == "image/png"
    assert "sandbox" in reply.headers["content-security-policy"]
    assert reply.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/", "/watch", "/people", "/nothing", "/static/page.js"])
def test_every_page_forbids_foreign_and_inline_scripts(server: Server, path: str) -> None:
    reply = lead(server).get(path)
    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    if reply.headers["content-type"].startswith("text/html"):
        assert not re.search(r"<script(?![^>]*src=)|\son\w+=|style=", reply.body)


def test_scripts_in_names_and_texts_are_text(tmp_path: Path) -> None:
    write_hostile(tmp_path / "r.csv")
    tasks = [f"{t}{HOSTILE}" for t in range(9)]
    shown = {"task": tasks, "text": [HOSTILE] * 9, "image": [f"{HOSTILE}.png"] * 9}
    tables.write_table(tmp_path / "t.csv", shown)
    (tmp_path / "m").mkdir()
    arguments = (
        "r.csv",
        "--session",
        "s.db",
        "--texts",
        "t.csv",
        "--media",
        "m",
        "--set",
        f"wording={HOSTILE}",
    )
    with serving(tmp_path, *arguments) as server:
        client = lead(server, HOSTILE[:70])
        pages = [client.get("/").body, client.answer(0).body, client.answer(1).body]
        pages += [client.get("/watch").body, client.get("/people").body]
        client.get("/")
        pages.append(client.get(f"/why?question={client.question}").body)
        pages.append(client.post("/label", task=1, label=1).body)
        pages.append(client.post("/invite", who=HOSTILE[:60]).body)
        pages.append(client.get("/watch?words=%3Cscript%3E&worker=%22%3E%3Cscript%3E").body)
        for page in pages:
            assert "<script>" not in page
            assert "<img src=x" not in page
            assert "&lt;script&gt;" in page


def test_a_body_of_100_mb_is_refused(server: Server) -> None:
    client = lead(server)
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as line:
        head = (
            f"POST /answer HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
            f"Origin: {server.address}\r\nCookie: tiebreak={client.cookie}\r\n"
            "Content-Length: 104857600\r\n\r\n"
        )
        line.sendall(head.encode())
        assert b" 413 " in line.recv(1000)
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as line:
        line.sendall(
            head.replace("Content-Length: 104857600", "Transfer-Encoding: chunked").encode()
        )
        sent = 0
        try:
            while sent < 100 * 1024 * 1024:
                line.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
                sent += 65536
        except OSError:
            pass  # hung up on
        assert sent < 20 * 1024 * 1024
    assert server.is_up()


def test_slow_clients_are_hung_up_on_and_hold_nobody_up(server: Server) -> None:
    client = lead(server)
    lines = [socket.create_connection(("127.0.0.1", server.port), timeout=60) for _ in range(50)]
    for number, line in enumerate(lines):
        length = "Content-Length: 1000\r\n\r\n" if number % 2 else ""
        line.sendall(
            f"POST /answer HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
            f"Origin: {server.address}\r\nCookie: tiebreak={client.cookie}\r\n{length}".encode()
        )
    began = time.monotonic()
    assert lead(server).get("/").status == 200
    assert time.monotonic() - began < 5.0  # it waited for none of them
    is_open = list(lines)
    while is_open and time.monotonic() - began < 2.0 * guard.REQUEST_WITHIN:
        for line in list(is_open):
            try:
                line.sendall(b"X")  # a byte now and then must not win more time
                line.settimeout(0.001)
                if line.recv(1000) == b"":
                    is_open.remove(line)
            except TimeoutError:
                line.settimeout(60)
            except OSError:
                is_open.remove(line)
        time.sleep(0.5)
    for line in lines:
        line.close()
    assert is_open == []
    assert time.monotonic() - began < guard.REQUEST_WITHIN + 5.0
    assert "Traceback" not in server.log.read_text()


def held_by(server: Server, n: int, head: str) -> list[socket.socket]:
    """Open connections that send part of a request, and no more."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(n + 500, limit[1]), limit[1]))
    lines = []
    for _ in range(n):
        line = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        with contextlib.suppress(OSError):  # hung up on
            line.sendall(head.encode())
        lines.append(line)
    return lines


@pytest.mark.parametrize("sends", ["nothing", "part of a head", "a body", "a login"])
def test_a_thousand_strangers_shut_nobody_out(server: Server, sends: str) -> None:
    head = {
        "nothing": "",
        "part of a head": "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
        "a body": "POST /answer HTTP/1.1\r\nHost: HERE\r\nOrigin: http://HERE\r\n"
        "Content-Length: 1000\r\n\r\nx",
        "a login": "POST /join HTTP/1.1\r\nHost: HERE\r\nOrigin: http://HERE\r\n"
        "Content-Length: 1000\r\n\r\nx",
    }[sends].replace("HERE", f"127.0.0.1:{server.port}")
    client = lead(server)
    lines = held_by(server, 1_034, head)
    try:
        for _ in range(5):
            began = time.monotonic()
            assert client.get("/").status == 200
            assert time.monotonic() - began < 2.0
    finally:
        for line in lines:
            line.close()
    assert "Traceback" not in server.log.read_text()
    time.sleep(guard.BURST / guard.RATE)  # until strangers of this address may ask again


def test_a_guest_with_a_thousand_slow_forms_shuts_nobody_out(server: Server) -> None:
    boss = lead(server)
    guest = invited(boss, server, "slow guest")
    head = (
        f"POST /answer HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nOrigin: {server.address}\r\n"
        f"Cookie: tiebreak={guest.cookie}\r\nContent-Length: 1000\r\n\r\nx"
    )
    lines = held_by(server, 1_034, head)
    try:
        for _ in range(5):
            assert boss.get("/").status == 200
    finally:
        for line in lines:
            line.close()
    assert "Traceback" not in server.log.read_text()
    time.sleep(guard.BURST / guard.RATE)  # until strangers of this address may ask again


@pytest.mark.parametrize("path", ["/answer", "/name", "/nothing", "/"])
def test_nothing_is_read_of_who_has_no_cookie(server: Server, path: str) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as line:
        line.sendall(
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
            f"Origin: {server.address}\r\nContent-Length: 1000\r\n\r\n".encode()
        )
        line.settimeout(5)
        assert b" 403 " in line.recv(1000)  # before a byte of the body came


def raw(server: Server, *lines: str) -> bytes:
    """Send a head as it is; return all that comes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as line:
        line.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1"))
        found = b""
        while part := line.recv(10_000):
            found += part
    return found


@pytest.mark.parametrize("host", ["[", "]", "[::1", "http://[", "[1", "a/[", "127.0.0.1/x", "x@y"])
def test_a_malformed_host_is_a_bad_request(server: Server, host: str) -> None:
    before = server.log.read_text()
    found = raw(server, "GET / HTTP/1.1", f"Host: {host}")
    assert found.startswith(b"HTTP/1.1 400 ")
    assert b"content-security-policy: default-src 'none'" in found.lower()
    said = server.log.read_text()[len(before) :].splitlines()
    assert len(said) == 1
    assert "Host" in said[0]
    assert host not in said[0] or len(host) == 1  # what strangers send is not repeated


@pytest.mark.parametrize("origin", ["[", "http://[", "http://[::1", "https://]", "//["])
def test_a_malformed_origin_is_a_bad_request(server: Server, origin: str) -> None:
    client = lead(server)
    before = server.log.read_text()
    for cookie in (f"tiebreak={client.cookie}", "a=b"):
        found = raw(
            server, "POST /answer HTTP/1.1", f"Host: 127.0.0.1:{server.port}", f"Origin: {origin}",
            f"Cookie: {cookie}", "Content-Length: 0",
        )  # fmt: skip
        assert found.startswith(b"HTTP/1.1 400 ")
        assert b"content-security-policy: default-src 'none'" in found.lower()
    said = server.log.read_text()[len(before) :].splitlines()
    assert len(said) == 2
    assert all("Origin" in line for line in said)


@pytest.mark.parametrize(
    ("target", "more"),
    [
        ("[", ""), ("http://[", ""), ("?token=[", ""), ("//[", ""), ("/%5b//[", ""), ("*", ""),
        ("/", "X-Forwarded-For: ["), ("/", "X-Forwarded-For: [::1]:x, ["),
        ("/", "X-Forwarded-Proto: ["), ("/join?invitation=%ff.%ff", ""), ("/?token=%ff", ""),
        ("/", "Cookie: tiebreak=\xe9.\xff"), ("/", "Cookie: tiebreak=[.["), ("/watch?page=%5b", ""),
        ("/", "Content-Length: -1"), ("/", "Transfer-Encoding: ["),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_lead", [True, False])
def test_other_malformed_requests_leave_no_traceback(
    server: Server, target: str, more: str, is_lead: bool
) -> None:
    client = lead(server)
    cookie = [f"Cookie: tiebreak={client.cookie}"] if is_lead else []
    extra = [more] if more else []
    found = raw(server, f"GET {target} HTTP/1.1", f"Host: 127.0.0.1:{server.port}", *cookie, *extra)
    assert found.startswith(b"HTTP/1.1 ")
    assert not found.startswith(b"HTTP/1.1 5")
    assert "Traceback" not in server.log.read_text()


def test_ten_thousand_requests_leave_it_up(server: Server) -> None:
    statuses: list[int] = []

    def many(n: int) -> None:
        line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        for _ in range(n):
            line.request("GET", "/watch", headers={"Connection": "keep-alive"})
            got = line.getresponse()
            got.read()
            statuses.append(got.status)
            if got.getheader("connection") == "close":
                line.close()

    threads = [threading.Thread(target=many, args=(1_250,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(statuses) == 10_000
    assert set(statuses) <= {403, 429}
    assert 429 in statuses
    time.sleep(guard.BURST / guard.RATE)
    assert lead(server).get("/").status == 200


def test_no_secret_is_logged(server: Server) -> None:
    client = lead(server, "someone")
    client.get("/nothing?token=" + TOKEN)
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as line:
        line.sendall(f"GET /?token={TOKEN} NONSENSE\r\n\r\n".encode())
        line.recv(1000)
    log = server.log.read_text()
    assert "Open http://127.0.0.1" in log
    assert TOKEN not in log
    assert (client.cookie or "?") not in log
    assert "someone" not in log


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tiebreak", "serve", *arguments],
        cwd=cwd, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0"], "--token"),
        (["--host", "192.168.1.5"], "--token"),
        (["--host", "::"], "--token"),
        (["--host", "0.0.0.0", "--token", "short"], "--token"),
        (["--kinds", "vote"], "tiebreak ask"),
        (["--media", "nowhere"], "--media"),
        (["--guidelines", "nowhere.md"], "nowhere.md"),
        (["--texts", "responses.csv"], "markdown"),
    ],
)
def test_what_is_not_safe_or_not_right_is_refused(
    messages: Path, arguments: list[str], said: str
) -> None:
    done = run("responses.csv", "--session", "refused.db", *arguments, cwd=messages)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr


def test_others_are_let_in_with_a_token_and_a_warning(messages: Path) -> None:
    arguments = ("responses.csv", "--session", "open.db", "--host", "0.0.0.0")
    with serving(messages, *arguments, "--allow-host", "labels.example") as running:
        assert "not encrypted" in running.log.read_text()
        client = lead(running)
        assert client.get("/", Host="labels.example").status == 200
        assert client.get("/", Host="10.1.2.3:80").status == 200  # an address is no name
        assert client.get("/", Host="evil.example").status == 421


def test_the_random_token_differs_each_time() -> None:
    assert len({guard.Tokens().token for _ in range(100)}) == 100
    assert min(len(guard.Tokens().token) for _ in range(100)) >= 32


def test_what_was_signed_for_one_purpose_serves_no_other() -> None:
    tokens = guard.Tokens("some token of sixteen")
    made = tokens.signed("invitation", ["ann"])
    assert tokens.read("invitation", made) == ["ann"]
    assert tokens.read("cookie", made) is None
    assert json.dumps(tokens.read("question", made)) == "null"
