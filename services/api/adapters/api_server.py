"""Asks the API server that a kubeconfig names for its reviews."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from services.api.core.reviews import is_transient
from services.api.ports import ReviewFailed
from shared.apiserver.client import ApiClient
from shared.apiserver.errors import ApiError, Unreachable

_CALL_SECONDS = 10.0


class ApiServerClient:
    """ports.ReviewPost. Changed files of the kubeconfig count from the next call on."""

    def __init__(self, kubeconfig: Path, version: str) -> None:
        """Reads nothing yet."""
        self._client = ApiClient(kubeconfig, f"podbus-api/{version}")

    async def __call__(self, path: str, body: dict[str, Any]) -> Any:
        data = json.dumps(body).encode()
        try:
            answer = (await self._client.request("POST", path, body=data, within=_CALL_SECONDS)).check()
        except Unreachable as error:
            raise ReviewFailed(str(error), transient=not error.is_lasting) from error
        except ApiError as error:
            raise ReviewFailed(f"{path}: {error}", transient=is_transient(error.code)) from error
        if answer.code not in (200, 201):
            raise ReviewFailed(f"{path}: status {answer.code}")
        try:
            return json.loads(answer.body)
        except ValueError as error:
            raise ReviewFailed(f"{path}: the answer is not JSON") from error

    def check(self) -> None:
        """Raises OSError or ValueError when the kubeconfig can't be used now."""
        self._client.check()
