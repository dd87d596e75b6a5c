"""Does the node's nats-server still keep values? Seen with 2.9.10: on a full disk it locks itself up for ever, while it
goes on accepting connections; newer ones switch JetStream off until they are started again."""

from __future__ import annotations

import json
import socket
from typing import IO, Any

from shared.contracts.registry import BUCKETS

_SECONDS = 3.0
_INBOX = "_INBOX_supervisor.1"


def keeps_values(port: int, user: str, password: str) -> bool:
    """Ask the server on that loopback port for the state of each bucket. A missing one is an answer too: the services
    make it. Raises OSError."""
    with socket.create_connection(("127.0.0.1", port), timeout=_SECONDS) as link, link.makefile("rb") as answers:
        options: dict[str, Any] = {
            "user": user,
            "pass": password,
            "name": "podbus-supervisor",
            "lang": "python",
            "version": "1",
        }
        options |= {"verbose": False, "pedantic": False, "headers": True, "no_responders": True}
        lines = [f"CONNECT {json.dumps(options)}", f"SUB {_INBOX} 1"]
        for bucket in BUCKETS:
            lines += [f"PUB $JS.API.STREAM.INFO.KV_{bucket.name} {_INBOX} 0", ""]
        link.sendall("".join(f"{line}\r\n" for line in lines).encode())
        return all(_is_fine(_next_answer(link, answers)) for _ in BUCKETS)


def _next_answer(link: socket.socket, answers: IO[bytes]) -> dict[str, Any] | None:
    """The next message's JSON; None when nobody answers such requests, or the server closes."""
    while line := answers.readline():
        verb, *rest = line.split()
        if verb == b"PING":
            link.sendall(b"PONG\r\n")
        elif verb == b"HMSG":  # "no responders" comes as a header without a body
            return None
        elif verb == b"MSG":
            answer: dict[str, Any] = json.loads(answers.read(int(rest[-1])))
            answers.readline()
            return answer
        elif verb == b"-ERR":
            return None
    return None


def _is_fine(answer: dict[str, Any] | None) -> bool:
    return answer is not None and answer.get("error", {}).get("code") in (None, 404)
