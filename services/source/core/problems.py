"""What is wrong with a manifest, as data: nothing in this package raises for bad input."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum


class Severity(StrEnum):
    """An error keeps its document from running, a warning doesn't."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault, told where it is.

    `line` counts from 1, 0 = the whole file; `document` counts from 1 in the file, 0 = the whole file;
    `field` is a Kubernetes field path or ""; `message` is Kubernetes-like text without the path; `hint`
    says what to do; `reason` is that of the event, "" = InvalidManifest or ManifestWarning.
    """

    severity: Severity
    path: str
    message: str
    line: int = 0
    document: int = 0
    field: str = ""
    hint: str = ""
    reason: str = ""

    @property
    def is_error(self) -> bool:
        return self.severity is Severity.ERROR

    def text(self) -> str:
        """One line for logs and terminals: `a.yaml:3: spec.containers: Required value (hint)`."""
        place = f"{self.path}:{self.line}" if self.line else self.path
        field = f"{self.field}: " if self.field else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}: {field}{self.message}{hint}"


def in_file(problems: Iterable[Problem], path: str) -> tuple[Problem, ...]:
    """The same problems, told of another file's name."""
    return tuple(replace(problem, path=path) for problem in problems)


def errors_of(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple(problem for problem in problems if problem.is_error)
