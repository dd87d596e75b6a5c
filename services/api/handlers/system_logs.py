"""/logs/: the files below /var/log, as Go's file server shows them; only links that stay below are followed."""

from __future__ import annotations

import html
import os
import stat
from pathlib import Path
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse, RedirectResponse

from services.api.handlers.answers import text
from services.api.handlers.parameters import openapi_parameters

_MISSING = "404 page not found\n"


def system_logs_router(root: Path) -> APIRouter:
    """Plain def endpoints: they run in a thread, as files are read."""
    router = APIRouter()

    def logs(request: Request) -> Response:
        inner = request.scope["path"].removeprefix("/logs").lstrip("/")
        found = _beneath(root, inner)
        if found is None:
            return text(404, _MISSING, nosniff=True)
        if not stat.S_ISDIR(found.stat().st_mode):
            return FileResponse(found)
        if inner and not request.scope["path"].endswith("/"):
            return RedirectResponse(f"{Path(inner).name}/", 301)
        return Response(_listing(found), media_type="text/html; charset=utf-8")

    router.add_api_route(
        "/logs/{path:path}",
        logs,
        methods=["GET"],
        summary="Files below the log directory",
        openapi_extra=openapi_parameters("path"),
    )
    return router


def _beneath(root: Path, inner: str) -> Path | None:
    """The regular file or directory that is meant; None when there is none below the root."""
    try:
        base = root.resolve(strict=True)
        found = (base / inner).resolve(strict=True)
        mode = found.stat().st_mode
    except (OSError, ValueError, RuntimeError):
        return None
    if found != base and base not in found.parents:
        return None
    return found if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else None


def _listing(directory: Path) -> bytes:
    with os.scandir(directory) as entries:
        names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in entries)
    links = "".join(f'<a href="{quote(name)}">{html.escape(name)}</a>\n' for name in names)
    return f"<pre>\n{links}</pre>\n".encode("utf-8", "surrogateescape")
