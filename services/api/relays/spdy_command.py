"""exec and attach over SPDY/3.1: kubectl, and every API server before 1.36."""

from __future__ import annotations

from services.api import spdy
from services.api.core.remote_command import expected_streams
from services.api.relays.command import CommandRelay, WorkerChannels
from services.api.relays.connection import CREATION_SECONDS, OpenTransport, log
from services.api.spdy import frames
from shared.contracts.streams import ExecOptions
from shared.streams.channels import STDERR, STDOUT

_OUTPUTS = {STDOUT: "stdout", STDERR: "stderr"}
_KINDS = ("error", "stdin", "stdout", "stderr", "resize")


class SpdyCommand(CommandRelay):
    def __init__(self, options: ExecOptions, protocol: str, open_worker: OpenTransport[WorkerChannels]) -> None:
        super().__init__(options, open_worker)
        self._session = spdy.Session()
        self._protocol = protocol
        self._expected = expected_streams(options, protocol)
        self._streams: dict[str, int] = {}
        self._kinds: dict[int, str] = {}
        self._outgoing: list[bytes | memoryview] = []
        self._started = False
        self._creation_timer = self.loop.call_later(CREATION_SECONDS, self._too_late)

    @property
    def is_v4(self) -> bool:
        return self._protocol.startswith("v4")

    def received(self, data: bytes) -> None:
        try:
            for event in self._session.receive(data):
                self._on_event(event)
        except spdy.ProtocolError as error:
            log.info("SPDY connection ends error=%s", error)
            self.abort()

    def output(self, channel: int, part: memoryview) -> None:
        stream_id = self._streams.get(_OUTPUTS[channel])
        if stream_id is not None and self._session.may_send(stream_id):
            for at in range(0, len(part), frames.MAX_DATA):
                piece = part[at : at + frames.MAX_DATA]
                self._outgoing += (frames.data_head(stream_id, len(piece)), piece)

    def flush(self) -> None:
        if self._outgoing:
            outgoing, self._outgoing = self._outgoing, []
            self.write(b"".join(outgoing))

    def say_end(self, text: bytes) -> None:
        session = self._session
        parts = [session.send(self._streams["error"], text)] if "error" in self._streams and text else []
        parts += [session.reset(stream_id) for stream_id in sorted(self._kinds)]
        self.write(b"".join([*parts, session.goaway()]))

    def gone(self) -> None:
        self._creation_timer.cancel()
        super().gone()

    def _on_event(self, event: spdy.Event) -> None:
        match event:
            case spdy.Opened():
                self._open(event)
            case spdy.Data():
                self._on_data(event)
            case spdy.End():
                if self._kinds.get(event.stream_id) == "stdin":
                    self.end_stdin()
            case spdy.Ping():
                self.write(self._session.pong(event.number))
            case spdy.Refused():
                self.write(event.answer)
            case spdy.Reset():
                self._on_reset(event)
            case spdy.GoneAway():
                return  # it closes next, or stays for what is open

    def _open(self, event: spdy.Opened) -> None:
        kind = event.headers.get("streamtype", "")
        if kind not in _KINDS or kind in self._streams:
            self.write(self._session.reset(event.stream_id, frames.RESET_REFUSED_STREAM))
            return
        self._streams[kind] = event.stream_id
        self._kinds[event.stream_id] = kind
        self.write(self._session.accept(event.stream_id))
        if not self._started and self._expected <= self._streams.keys():
            self._started = True
            self._creation_timer.cancel()
            self.start()

    def _on_data(self, event: spdy.Data) -> None:
        match self._kinds.get(event.stream_id):
            case "stdin":
                self.feed_stdin(event.payload)
            case "resize":
                self.feed_resize(event.payload)

    def _on_reset(self, event: spdy.Reset) -> None:
        """A client that cancels its error stream wants no more of this."""
        kind = self._kinds.pop(event.stream_id, "")
        if kind == "stdin":
            self.end_stdin()
        elif kind == "error":
            self.linger()
            self.gone()

    def _too_late(self) -> None:
        missing = sorted(self._expected - self._streams.keys())
        log.info("streams not opened within %.0f s missing=%s", CREATION_SECONDS, ",".join(missing))
        self.abort()
