"""port-forward over SPDY/3.1: each forwarded connection is a pair of streams, error and data, with one request id."""

from __future__ import annotations

import asyncio

from services.api import spdy
from services.api.relays.connection import CREATION_SECONDS, UpgradedConnection, log
from services.api.relays.forward import OpenPort, PodPort, connect_port
from services.api.spdy import frames


class _Pair:
    """One forwarded connection (PortClient)."""

    def __init__(self, owner: SpdyForward, key: str) -> None:
        self._owner = owner
        self.key = key
        self.port = 0
        self.error: int | None = None
        self.data: int | None = None
        self.pod = PodPort(self)
        self.timer: asyncio.TimerHandle | None = None
        self._client_ended = False
        self._pod_ended = False

    def port_data(self, data: bytes) -> None:
        if self.data is not None:
            self._owner.send(self.data, data)

    def port_ended(self) -> None:
        for stream in (self.error, self.data):
            if stream is not None:
                self._owner.send(stream, b"", fin=True)
        self._pod_ended = True
        self._maybe_over()

    def port_failed(self, why: str) -> None:
        if self.error is not None:
            text = f"error forwarding port {self.port} to pod {self._owner.pod}, uid {self._owner.uid}: {why}"
            self._owner.send(self.error, text.encode(), fin=True)
        if self.data is not None:
            self._owner.send(self.data, b"", fin=True)
        self._owner.drop(self)

    def port_full(self, is_full: bool) -> None:
        self._owner.hold(self, is_full)

    def client_ended(self) -> None:
        self._client_ended = True
        self.pod.end()
        self._maybe_over()

    def _maybe_over(self) -> None:
        if self._client_ended and self._pod_ended:
            self.pod.close()
            self._owner.drop(self)


class SpdyForward(UpgradedConnection):
    def __init__(self, pod: str, uid: str, open_port: OpenPort) -> None:
        super().__init__()
        self.pod = pod
        self.uid = uid
        self._open_port = open_port
        self._session = spdy.Session()
        self._pairs: dict[str, _Pair] = {}
        self._by_stream: dict[int, tuple[_Pair, str]] = {}
        self._full: set[str] = set()
        """Keys of pairs whose pod takes no more: reading waits for all of them, as the protocol has no flow control."""

    def received(self, data: bytes) -> None:
        try:
            for event in self._session.receive(data):
                self._on_event(event)
        except spdy.ProtocolError as error:
            log.info("SPDY connection ends error=%s", error)
            self.abort()

    def send(self, stream_id: int, data: bytes, *, fin: bool = False) -> None:
        self.write(self._session.send(stream_id, data, fin=fin))

    def drop(self, pair: _Pair) -> None:
        """Over: its streams are forgotten, the connection goes on."""
        self._pairs.pop(pair.key, None)
        self.hold(pair, False)
        for stream in (pair.error, pair.data):
            if stream is not None:
                self._by_stream.pop(stream, None)

    def hold(self, pair: _Pair, is_full: bool) -> None:
        (self._full.add if is_full else self._full.discard)(pair.key)
        if self.transport is None or self.transport.is_closing():
            return
        if self._full:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def stop(self, why: str) -> None:
        for pair in list(self._pairs.values()):
            pair.port_failed(why)
            pair.pod.close()
        self.write(self._session.goaway())
        self.linger()

    def gone(self) -> None:
        for pair in list(self._pairs.values()):
            if pair.timer is not None:
                pair.timer.cancel()
            pair.pod.close()
        self._pairs.clear()

    def pause_writing(self) -> None:
        for pair in self._pairs.values():
            pair.pod.hold(True)

    def resume_writing(self) -> None:
        for pair in self._pairs.values():
            pair.pod.hold(False)

    def _on_event(self, event: spdy.Event) -> None:
        match event:
            case spdy.Opened():
                self._open(event)
            case spdy.Data():
                pair, kind = self._by_stream.get(event.stream_id, (None, ""))
                if pair is not None and kind == "data":
                    pair.pod.send(event.payload)
            case spdy.End():
                pair, kind = self._by_stream.get(event.stream_id, (None, ""))
                if pair is not None and kind == "data":
                    pair.client_ended()
            case spdy.Reset():
                self._on_reset(event.stream_id)
            case spdy.Ping():
                self.write(self._session.pong(event.number))
            case spdy.Refused():
                self.write(event.answer)
            case spdy.GoneAway():
                return

    def _open(self, event: spdy.Opened) -> None:
        kind, port = event.headers.get("streamtype", ""), event.headers.get("port", "")
        is_port = port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16
        # without an id the streams belong together by number: error N, data N+2
        key = event.headers.get("requestid") or str(event.stream_id - (2 if kind == "data" else 0))
        pair = self._pairs.get(key)
        if not is_port or kind not in ("error", "data") or (pair is not None and getattr(pair, kind) is not None):
            self.write(self._session.reset(event.stream_id, frames.RESET_REFUSED_STREAM))
            return
        if pair is None:
            pair = self._pairs[key] = _Pair(self, key)
            pair.timer = self.loop.call_later(CREATION_SECONDS, self._half, pair)
        pair.port = int(port)
        setattr(pair, kind, event.stream_id)
        self._by_stream[event.stream_id] = (pair, kind)
        self.write(self._session.accept(event.stream_id))
        if pair.error is not None and pair.data is not None:
            if pair.timer is not None:
                pair.timer.cancel()
            self.spawn(connect_port(self._open_port, pair.port, pair.pod, pair))

    def _on_reset(self, stream_id: int) -> None:
        """The client gives this connection up."""
        pair, _ = self._by_stream.get(stream_id, (None, ""))
        if pair is not None:
            if pair.timer is not None:
                pair.timer.cancel()
            pair.pod.close()
            self.drop(pair)

    def _half(self, pair: _Pair) -> None:
        if pair.error is not None:
            self.send(pair.error, f"timed out waiting for the data stream of request {pair.key}".encode(), fin=True)
        self.drop(pair)
