"""exec and attach over WebSocket: the clients of other languages, and dashboards."""

from __future__ import annotations

from services.api.relays.command import CommandRelay, WorkerChannels
from services.api.relays.connection import OpenTransport, log
from services.api.relays.websocket_channels import ChannelSocket
from services.api.relays.websocket_frames import WebSocketGone
from shared.contracts.streams import ExecOptions

_STDIN, _STDOUT, _STDERR, _ERROR, _RESIZE = range(5)


class WebSocketCommand(CommandRelay):
    def __init__(self, options: ExecOptions, protocol: str, open_worker: OpenTransport[WorkerChannels]) -> None:
        super().__init__(options, open_worker)
        self._protocol = protocol
        self._socket = ChannelSocket(protocol)
        self._outgoing: list[bytes | memoryview] = []

    @property
    def is_v4(self) -> bool:
        return self._protocol.startswith("v4.")

    def begin(self) -> None:
        """After the handshake: an empty message on the lowest output tells that we are ready (kubelet)."""
        lowest = _STDOUT if self.options.stdout else _STDERR if self.options.stderr else _ERROR
        self.write(b"".join(self._socket.message(lowest, b"")))
        self.start()

    def received(self, data: bytes) -> None:
        try:
            for channel, payload, is_end in self._socket.receive(data):
                if channel == _STDIN:
                    self.feed_stdin(payload)
                elif channel == _RESIZE:
                    self.feed_resize(payload, is_whole=is_end)
        except WebSocketGone as gone:
            log.debug("websocket ends: %s", gone)
            self.write(self._socket.answers())
            self.linger()
            self.gone()
            return
        self.write(self._socket.answers())

    def output(self, channel: int, part: memoryview) -> None:
        wanted = self.options.stdout if channel == _STDOUT else self.options.stderr
        if wanted:
            self._outgoing += self._socket.message(channel, part)

    def flush(self) -> None:
        if self._outgoing:
            outgoing, self._outgoing = self._outgoing, []
            self.write(b"".join(outgoing))

    def say_end(self, text: bytes) -> None:
        said = b"".join(self._socket.message(_ERROR, text)) if text else b""
        self.write(said + self._socket.close())
