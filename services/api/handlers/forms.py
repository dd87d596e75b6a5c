"""Posted forms: bounded in size and time."""

from __future__ import annotations

import asyncio

from fastapi import HTTPException, Request

FORM_SECONDS = 30.0
_FORM = "application/x-www-form-urlencoded"


def has_form(request: Request) -> bool:
    return request.method == "POST" and request.headers.get("content-type", "").partition(";")[0] == _FORM


async def read_form(request: Request, most: int) -> bytes:
    """The body, at most `most` bytes within 30 s. Raises 413 or 408."""
    body = bytearray()
    try:
        async with asyncio.timeout(FORM_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most:
                    raise HTTPException(413)
    except TimeoutError as error:
        raise HTTPException(408) from error
    return bytes(body)
