"""port-forward over WebSocket: two channels for each port of the query, data and error."""

from __future__ import annotations

from services.api.relays.connection import UpgradedConnection, log
from services.api.relays.forward import OpenPort, PodPort, connect_port
from services.api.relays.websocket_channels import ChannelSocket
from services.api.relays.websocket_frames import WebSocketGone


class _Port:
    """One port (PortClient): channel 2i for data, 2i+1 for its error."""

    def __init__(self, owner: WebSocketForward, index: int, port: int) -> None:
        self._owner = owner
        self.index = index
        self.port = port
        self.pod = PodPort(self)
        self.is_over = False

    def port_data(self, data: bytes) -> None:
        self._owner.send(2 * self.index, data)

    def port_ended(self) -> None:
        self.is_over = True
        self.pod.close()
        self._owner.port_over()

    def port_failed(self, why: str) -> None:
        text = f"error forwarding port {self.port} to pod {self._owner.pod}, uid {self._owner.uid}: {why}"
        self._owner.send(2 * self.index + 1, text.encode())
        self.is_over = True
        self._owner.port_over()

    def port_full(self, is_full: bool) -> None:
        self._owner.hold(self.index, is_full)


class WebSocketForward(UpgradedConnection):
    def __init__(self, pod: str, uid: str, ports: tuple[int, ...], protocol: str, open_port: OpenPort) -> None:
        super().__init__()
        self.pod = pod
        self.uid = uid
        self._open_port = open_port
        self._socket = ChannelSocket(protocol)
        self._ports = [_Port(self, index, port) for index, port in enumerate(ports)]
        self._full: set[int] = set()

    def begin(self) -> None:
        """After the handshake: each channel first says its port, two bytes, little-endian."""
        for one in self._ports:
            for channel in (2 * one.index, 2 * one.index + 1):
                self.send(channel, one.port.to_bytes(2, "little"))
        for one in self._ports:
            self.spawn(connect_port(self._open_port, one.port, one.pod, one))

    def received(self, data: bytes) -> None:
        try:
            for channel, payload, _ in self._socket.receive(data):
                if channel % 2 == 0 and channel // 2 < len(self._ports) and not self._ports[channel // 2].is_over:
                    self._ports[channel // 2].pod.send(payload)
        except WebSocketGone as gone:
            log.debug("websocket ends: %s", gone)
            self.write(self._socket.answers())
            self.linger()
            self.gone()
            return
        self.write(self._socket.answers())

    def send(self, channel: int, data: bytes) -> None:
        self.write(b"".join(self._socket.message(channel, data)))

    def port_over(self) -> None:
        if all(one.is_over for one in self._ports) and not self.is_over:
            self.write(self._socket.close())
            self.linger()

    def hold(self, index: int, is_full: bool) -> None:
        (self._full.add if is_full else self._full.discard)(index)
        if self.transport is None or self.transport.is_closing():
            return
        if self._full:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def stop(self, why: str) -> None:
        for one in self._ports:
            if not one.is_over:
                one.pod.close()
                one.port_failed(why)

    def gone(self) -> None:
        for one in self._ports:
            one.is_over = True
            one.pod.close()

    def pause_writing(self) -> None:
        for one in self._ports:
            one.pod.hold(True)

    def resume_writing(self) -> None:
        for one in self._ports:
            one.pod.hold(False)
