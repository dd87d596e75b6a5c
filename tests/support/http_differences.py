"""Where an answer isn't the recorded kubelet 1.20.2's, and why. Any other difference is a fault."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.component.api.process import Answer

_PLAIN = "text/plain; charset=utf-8"
_LOGS = "the recorder's host wrote what it was asked; ours writes a log"
_HOST = "the recorder's host wrote the pod's name behind the command"
_PODS = "the pods are the test's; tests/component/api/test_endpoints.py holds their form"
_FINE = "since 1.32 the subresources that would have allowed it, and a line's end"
_NO_SPEC = "/spec is gone since 1.21"
_PROFILES = "profiles of a Go program: podbus says that profiling is disabled, as a kubelet may"
_OWN_METRICS = "podbus doesn't serve its own metrics yet"


@dataclass(frozen=True)
class Difference:
    """Our answer: its status, type, and the body or a part of it."""

    reason: str
    status: int
    body: bytes = b""
    part: bytes = b""
    content_type: str | None = _PLAIN
    location: str | None = field(default=None)

    def fault(self, answer: Answer) -> str:
        found = (answer.status, answer.headers.get("content-type"), answer.headers.get("location"))
        wanted = (self.status, self.content_type, self.location)
        if found != wanted:
            return f"{found} where the list says {wanted}"
        if (self.body and answer.body != self.body) or self.part not in answer.body:
            return f"body {answer.body!r} where the list says {self.body or self.part!r}"
        return ""


def _forbidden(verb: str, subresources: str) -> Difference:
    text = f"Forbidden (user=bob, verb={verb}, resource=nodes, subresource(s)=[{subresources}])\n"
    return Difference(_FINE, 403, text.encode())


def _log() -> Difference:
    return Difference(_LOGS, 200, b"log\n", content_type=None)


def _json(reason: str, status: int = 200, *, body: bytes = b"", part: bytes = b"") -> Difference:
    return Difference(reason, status, body, part, "application/json")


_LOG = "ALLOW GET /containerLogs/ns/p1/c1"
_EXEC = "ALLOW POST /exec/ns/p1/c1?command=ls&output=1 Connection:Upgrade Upgrade:"
_NOT_FOUND = b"404 page not found\n"
_DISABLED = b"profiling endpoint is disabled.\n"

DIFFERENCES: dict[str, Difference] = {
    "ALLOW GET /pods": _json(_PODS, part=b'"name":"p1","namespace":"ns","uid":"u9"}'),
    "ALLOW GET /pods/": _json(_PODS, part=b'"name":"p1","namespace":"ns","uid":"u9"}'),
    "NODEBUG GET /pods": _json(_PODS, part=b'{"kind":"PodList","apiVersion":"v1","metadata":{},"items":null}\n'),
    "ALLOW GET /runningpods/": _json(_PODS, part=b'"image":"sha256:ab"'),
    "ALLOW GET /stats": Difference("design: /stats and /stats/ both answer the Summary", 503, part=b"no stats answers"),
    "UNAUTH GET /stats": Difference("design: /stats answers the Summary, so it asks who comes", 401, b"Unauthorized"),
    "ALLOW GET /spec": Difference(_NO_SPEC, 404, _NOT_FOUND),
    "FORBID GET /spec/": Difference(_NO_SPEC, 404, _NOT_FOUND),
    _LOG: _log(),
    f"{_LOG}?tail=all&tailLines=7": _log(),
    f"{_LOG}?tail=7": _log(),
    f"{_LOG}?sinceTime=2020-01-01T00:00:00Z": _log(),
    f"{_LOG}?follow=abc": _log(),
    f"{_LOG}?follow": _log(),
    f"{_LOG}?follow=0": _log(),
    f"{_LOG}?unknown=1": _log(),
    f"{_LOG}/": _log(),
    f"{_LOG}?follow=true&previous=true&tailLines=5&limitBytes=10&timestamps=true&sinceSeconds=3": Difference(
        "the recorder's host looked at no state; c1 never ended before",
        400,
        b'previous terminated container "c1" in pod "p1" not found',
        content_type=None,
    ),
    "ALLOW GET /containerLogs/ns/errlog/c1": Difference(
        "the recorder's host failed after its first byte; a real one looks at the state before (C27)",
        400,
        b'container "c1" in pod "errlog" is waiting to start: ContainerCreating',
        content_type=None,
    ),
    "ALLOW POST /run/ns/p1/c1?cmd=ls%20-l": _json(_HOST, body=b'["ls" "-l"]'),
    "ALLOW POST /run/ns/p1/u9/c1?cmd=ls": _json(_HOST, body=b'["ls"]'),
    "ALLOW POST /run/ns/p1/c1": _json(_HOST, body=b'[""]'),
    "ALLOW POST /run/ns/p1/c1 Content-Type:application/x-www-form-urlencoded": _json(_HOST, body=b'["ls" "x"]'),
    f"{_EXEC}SPDY/3.1 X-Stream-Protocol-Version:v9.channel.k8s.io": Difference(
        "1.20.2 wrote the line twice, and the recording is cut",
        403,
        b"unable to upgrade: unable to negotiate protocol: client supports [v9.channel.k8s.io], server accepts"
        b" [v4.channel.k8s.io v3.channel.k8s.io v2.channel.k8s.io channel.k8s.io]\n",
    ),
    f"{_EXEC}foo X-Stream-Protocol-Version:v4.channel.k8s.io": Difference(
        "the headers are the test client's; a token isn't among them",
        400,
        b'unable to upgrade: missing upgrade headers in request: http.Header{"Accept-Encoding":[]string{"identity"},'
        b' "Connection":[]string{"Upgrade"}, "Content-Length":[]string{"0"}, "Upgrade":[]string{"foo"},'
        b' "X-Stream-Protocol-Version":[]string{"v4.channel.k8s.io"}}\n',
    ),
    "ALLOW GET /exec/ns/p1/c1?command=ls&output=1 Connection:Upgrade Origin:http://x"
    " Sec-WebSocket-Key:dGhlIHNhbXBsZSBub25jZQ== Sec-WebSocket-Protocol:v5.channel.k8s.io Sec-WebSocket-Version:13"
    " Upgrade:websocket": Difference("an empty body with a type is as empty", 403),
    "ALLOW GET /configz": _json("the recorder's host had an empty configuration", part=b'{"kubeletconfig":{"kind":'),
    "ALLOW GET /debug/pprof/": Difference(_PROFILES, 405, _DISABLED),
    "ALLOW GET /debug/pprof/cmdline": Difference(_PROFILES, 405, _DISABLED),
    "ALLOW GET /debug/pprof/nope": Difference(_PROFILES, 405, _DISABLED),
    "ALLOW POST /checkpoint/ns/p1/c1": Difference(
        "since 1.30; a runtime that makes none says so (C54)", 500, part=b"checkpointing of ns/p1/c1 failed ("
    ),
    "ALLOW GET /statusz": Difference("since 1.36", 200, part=b"\nkubelet statusz\n"),
    "AUTHZERR GET /pods": Difference(
        "since 1.32 /pods asks for pods first",
        500,
        b"Authorization error (user=bob, verb=get, resource=nodes, subresource=pods)",
    ),
    "FORBID GET /pods": _forbidden("get", "pods proxy"),
    "FORBID OPTIONS /pods": _forbidden("", "pods proxy"),
    "FORBID PATCH /pods": _forbidden("patch", "pods proxy"),
    "FORBID GET /stats/summary": _forbidden("get", "stats"),
    "FORBID GET /metrics/cadvisor": _forbidden("get", "metrics"),
    "FORBID GET /logs/x": _forbidden("get", "log"),
    "FORBID PUT /debug/flags/v": _forbidden("update", "proxy"),
    "FORBID POST /exec/a/b/c": _forbidden("create", "proxy"),
    "FORBID GET /exec/x": _forbidden("get", "proxy"),
}

NOT_ASKED: dict[str, str] = {
    **dict.fromkeys(
        (
            "ALLOW GET /metrics",
            "ALLOW POST /metrics",
            "ALLOW GET /metrics Accept:application/openmetrics-text; version=0.0.1",
            "ALLOW GET /metrics/probes",
            "ALLOW GET /metrics/probes Accept-Encoding:gzip",
            "RO GET /metrics/probes",
        ),
        _OWN_METRICS,
    ),
    **dict.fromkeys(
        ("STALE GET /healthz", "STALE GET /healthz?exclude=syncloop", "STALE GET /healthz/syncloop"),
        "here a worker that isn't heard makes it fail, after 20 s: tests/unit/api/test_handlers_web.py",
    ),
}
