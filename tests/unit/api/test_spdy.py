"""SPDY/3.1: recordings of Kubernetes' client and server, and rules that hold however the bytes are cut."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.api.spdy import Data, End, Event, GoneAway, Opened, Ping, ProtocolError, Refused, Reset, Session, frames
from services.api.spdy.client import SpdyClient
from services.api.spdy.dictionary import HEADER_DICTIONARY
from services.api.spdy.frames import DataFrame, FrameReader, HeaderReader, HeaderWriter

RECORDED = Path(__file__).parents[2] / "golden" / "wire" / "spdy.txt"


def recorded(case: str, side: str) -> bytes:
    """What one side sent after its HTTP head."""
    lines = [line.split() for line in RECORDED.read_text().splitlines()]
    sent = b"".join(
        bytes.fromhex(words[2])
        for words in lines
        if words[:2] == [case, side] and len(words) == 3 and words[2] != "EOF"
    )
    return sent.partition(b"\r\n\r\n")[2]


def events_of(data: bytes, cuts: int | None = None) -> list[Event]:
    session = Session()
    pieces: Iterator[bytes] = (
        iter((data,)) if cuts is None else (data[at : at + cuts] for at in range(0, len(data), cuts))
    )
    return [event for piece in pieces for event in session.receive(piece)]


def joined(events: list[Event]) -> list[Event]:
    """Neighbouring data of one stream as one event."""
    result: list[Event] = []
    for event in events:
        before = result[-1] if result else None
        if isinstance(event, Data) and isinstance(before, Data) and before.stream_id == event.stream_id:
            result[-1] = Data(event.stream_id, before.payload + event.payload)
        else:
            result.append(event)
    return result


def test_the_dictionary_is_the_drafts() -> None:
    assert (len(HEADER_DICTIONARY), zlib.adler32(HEADER_DICTIONARY)) == (1423, 0xE3C6A7C2)


def test_a_recorded_exec_opens_error_stdin_stdout_and_stderr_and_closes_stdin() -> None:
    assert joined(events_of(recorded("EXEC", "C"))) == [
        Opened(1, {"streamtype": "error"}),
        Opened(3, {"streamtype": "stdin"}),
        Opened(5, {"streamtype": "stdout"}),
        Opened(7, {"streamtype": "stderr"}),
        Data(3, b"hi"),
        End(3),
    ]


def test_a_recorded_terminal_sends_its_size() -> None:
    events = joined(events_of(recorded("TTY", "C")))
    assert events[:3] == [
        Opened(1, {"streamtype": "error"}),
        Opened(3, {"streamtype": "stdout"}),
        Opened(5, {"streamtype": "resize"}),
    ]
    assert events[3] == Data(5, b'{"Width":80,"Height":24}\n')
    assert isinstance(events[4], Reset)
    assert isinstance(events[-1], GoneAway)


def test_a_recorded_port_forward_opens_pairs() -> None:
    opened = [event for event in events_of(recorded("PF", "C")) if isinstance(event, Opened)]
    assert [(one.stream_id, one.headers["streamtype"], one.headers["port"]) for one in opened] == [
        (1, "error", "80"),
        (3, "data", "80"),
        (5, "error", "9"),
        (7, "data", "9"),
    ]
    assert opened[0].headers["requestid"] == opened[1].headers["requestid"]


def test_a_recorded_server_is_understood_by_the_tests_own_client() -> None:
    client = SpdyClient()
    for kind in ("error", "stdin", "stdout", "stderr"):
        client.open({"streamtype": kind})
    client.receive(recorded("EXEC", "S"))
    assert bytes(client.streams[5].data) == b"OUT:hi"
    assert bytes(client.streams[7].data) == b"ERR"
    assert all(stream.answered and stream.reset == 5 for stream in client.streams.values())
    assert client.gone_away


@pytest.mark.parametrize("case", ["EXEC", "TTY", "PF"])
@pytest.mark.parametrize("cuts", [1, 2, 3, 7, 8, 9])
def test_the_cut_of_the_bytes_means_nothing(case: str, cuts: int) -> None:
    data = recorded(case, "C")
    assert joined(events_of(data, cuts)) == joined(events_of(data))


HEADERS = st.lists(st.tuples(st.from_regex(r"[a-z-]{1,12}", fullmatch=True), st.text(max_size=40)), max_size=6)


@given(st.lists(HEADERS, max_size=8))
def test_header_blocks_come_through_one_compressed_stream(blocks: list[list[tuple[str, str]]]) -> None:
    writer, reader = HeaderWriter(), HeaderReader()
    for block in blocks:
        assert reader.read(writer.write(block)) == dict(block)


@given(st.lists(st.tuples(st.integers(1, 4), st.binary(max_size=200), st.booleans()), max_size=20), st.integers(1, 64))
def test_data_frames_come_through_whole_and_in_order(sent: list[tuple[int, bytes, bool]], cuts: int) -> None:
    wire = b"".join(frames.data_head(stream, len(part), fin=fin) + part for stream, part, fin in sent)
    reader, got = FrameReader(), []
    for at in range(0, len(wire), cuts):
        got += [frame for frame in reader.feed(wire[at : at + cuts]) if isinstance(frame, DataFrame)]
    for stream in range(1, 5):
        assert b"".join(f.payload for f in got if f.stream_id == stream) == b"".join(
            part for one, part, _ in sent if one == stream
        )
    assert sum(f.is_last for f in got) == sum(fin for _, _, fin in sent)


@given(st.binary(max_size=400))
def test_garbage_ends_the_connection_and_nothing_else(data: bytes) -> None:
    session = Session()
    try:
        for event in session.receive(data):
            assert event is not None
    except ProtocolError:
        return


def test_a_client_ping_is_told_and_the_answer_to_none_is_ignored() -> None:
    assert events_of(frames.ping(1) + frames.ping(2)) == [Ping(1)]
    assert Session().pong(1) == frames.ping(1)


def test_settings_and_window_updates_are_read_and_ignored() -> None:
    ignored = frames.control(frames.SETTINGS, b"\0\0\0\0") + frames.control(frames.WINDOW_UPDATE, b"\0" * 8)
    assert events_of(ignored + frames.ping(3)) == [Ping(3)]


def test_an_id_that_does_not_grow_is_refused_with_a_protocol_error() -> None:
    writer = HeaderWriter()
    wire = frames.syn_stream(3, writer.write([("a", "b")])) + frames.syn_stream(1, writer.write([("a", "b")]))
    opened, refused = events_of(wire)
    assert opened == Opened(3, {"a": "b"})
    assert refused == Refused(1, frames.rst_stream(1, frames.RESET_PROTOCOL_ERROR))


def test_data_for_a_stream_that_never_was_is_refused_and_late_data_dropped() -> None:
    session, client = Session(), SpdyClient()
    stream, syn = client.open({"streamtype": "data"})
    assert len(list(session.receive(syn))) == 1
    session.reset(stream)
    assert list(session.receive(client.send(stream, b"late"))) == []
    assert list(session.receive(client.send(9, b"x"))) == [Refused(9, frames.rst_stream(9, 2))]


def test_both_halves_of_a_stream_close_by_themselves() -> None:
    session, client = Session(), SpdyClient()
    stream, syn = client.open({"streamtype": "data"})
    list(session.receive(syn))
    client.receive(session.accept(stream))
    assert list(session.receive(client.send(stream, b"", fin=True))) == [End(stream)]
    assert session.may_send(stream)
    client.receive(session.send(stream, b"bye", fin=True))
    assert client.streams[stream].ended
    assert session.send(stream, b"more") == b""
    assert session.open_streams == 0


def test_a_payload_larger_than_a_frame_is_cut() -> None:
    session, client = Session(), SpdyClient()
    stream, syn = client.open({"streamtype": "data"})
    list(session.receive(syn))
    payload = b"x" * (frames.MAX_DATA + 5)
    client.receive(session.send(stream, payload, fin=True))
    assert (len(client.streams[stream].data), client.streams[stream].ended) == (len(payload), True)


def test_more_streams_than_the_bound_are_refused_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.api.spdy.session.MAX_STREAMS", 2)
    session, client = Session(), SpdyClient()
    events = [event for _ in range(3) for event in session.receive(client.open({"a": "b"})[1])]
    assert [type(event) for event in events] == [Opened, Opened, Refused]


def test_a_header_block_that_unfolds_too_far_ends_the_connection() -> None:
    block = HeaderWriter().write([("a", "x" * (frames.MAX_HEADER_BYTES + 1))])
    with pytest.raises(ProtocolError, match="more than"):
        HeaderReader().read(block)


def test_another_version_and_an_endless_control_frame_end_the_connection() -> None:
    with pytest.raises(ProtocolError, match="version 2"):
        events_of(struct.pack(">HHI", 0x8002, 1, 0))
    with pytest.raises(ProtocolError, match="control frame of"):
        events_of(struct.pack(">HHI", 0x8003, 1, frames.MAX_CONTROL + 1))
