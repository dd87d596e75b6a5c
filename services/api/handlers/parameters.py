"""A route's parameters for the OpenAPI document.

Not as arguments of the endpoint: FastAPI would load pydantic.v1 to look at their types, 4 MiB.
"""

from __future__ import annotations

from typing import Any

CONTAINER_PATH = ("namespace", "pod", "container")
POD_PATH = ("namespace", "pod")


def openapi_parameters(*path: str, **query: str | list[str]) -> dict[str, Any]:
    """`path` by name; `query` by name with its type, a list of one for what may be given several times."""
    found: list[dict[str, Any]] = [
        {"in": "path", "name": name, "required": True, "schema": {"type": "string"}} for name in path
    ]
    for name, kind in query.items():
        schema = {"type": "array", "items": {"type": kind[0]}} if isinstance(kind, list) else {"type": kind}
        found.append({"in": "query", "name": name, "schema": schema})
    return {"parameters": found}
