"""A posted form is bounded in size and time, wherever one is read."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fastapi import HTTPException, Request

from services.api.handlers import forms
from services.api.handlers.forms import has_form, read_form


def a_post(*parts: bytes, ends: bool = True, kind: str = "application/x-www-form-urlencoded; charset=utf-8") -> Request:
    """`ends` False: nothing comes after the parts."""
    left = list(parts)

    async def receive() -> dict[str, Any]:
        if left:
            return {"type": "http.request", "body": left.pop(0), "more_body": bool(left) or not ends}
        await asyncio.Event().wait()
        raise AssertionError

    headers = [(b"content-type", kind.encode())]
    return Request({"type": "http", "method": "POST", "headers": headers, "query_string": b""}, receive)


async def test_a_form_is_read_whole() -> None:
    assert await read_form(a_post(b"cmd=", b"ls"), 100) == b"cmd=ls"


async def test_one_that_is_too_large_is_refused_as_soon_as_that_is_known() -> None:
    with pytest.raises(HTTPException) as caught:
        await read_form(a_post(b"x" * 60, b"x" * 60, ends=False), 100)
    assert caught.value.status_code == 413


async def test_one_that_drips_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "FORM_SECONDS", 0.05)
    with pytest.raises(HTTPException) as caught:
        await asyncio.wait_for(read_form(a_post(b"cmd=", ends=False), 100), 10)
    assert caught.value.status_code == 408


def test_only_a_form_is_one() -> None:
    assert has_form(a_post())
    assert not has_form(a_post(kind="application/json"))
