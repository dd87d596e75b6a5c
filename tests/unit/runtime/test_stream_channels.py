"""Frames of several channels over one stream."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.streams.channels import RESIZE, STATUS, BrokenStream, ChannelReader, frame, head


@given(st.lists(st.tuples(st.integers(0, 2), st.binary(max_size=100)), max_size=12), st.integers(1, 50))
def test_every_channel_comes_through_in_order_however_the_bytes_are_cut(
    sent: list[tuple[int, bytes]], cuts: int
) -> None:
    wire = b"".join(frame(channel, payload) for channel, payload in sent)
    reader, got, ends = ChannelReader(), {0: b"", 1: b"", 2: b""}, 0
    for at in range(0, len(wire), cuts):
        for channel, part, is_end in reader.feed(wire[at : at + cuts]):
            got[channel] += bytes(part)
            ends += is_end
    for channel in got:
        assert got[channel] == b"".join(payload for one, payload in sent if one == channel)
    assert ends == len(sent)
    assert reader.is_between_frames


def test_a_part_of_a_frame_is_handed_on_before_its_end() -> None:
    reader = ChannelReader()
    assert [(c, bytes(p), e) for c, p, e in reader.feed(head(1, 4) + b"ab")] == [(1, b"ab", False)]
    assert not reader.is_between_frames
    assert [(c, bytes(p), e) for c, p, e in reader.feed(b"cd")] == [(1, b"cd", True)]


def test_the_engines_own_frames_are_read_as_they_are() -> None:
    assert [(c, bytes(p)) for c, p, _ in ChannelReader().feed(b"\x02\0\0\0\0\0\0\x03err")] == [(2, b"err")]


@pytest.mark.parametrize(
    "wire", [b"\x05\0\0\0\0\0\0\0", head(STATUS, 1 << 20), head(RESIZE, 1 << 20)], ids=["channel", "status", "resize"]
)
def test_what_isnt_ours_is_refused(wire: bytes) -> None:
    with pytest.raises(BrokenStream):
        list(ChannelReader().feed(wire))
