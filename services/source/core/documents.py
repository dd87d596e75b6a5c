"""The bytes of one manifest file -> its documents, or what is wrong with them."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.source.core.json_document import JsonError, read_json
from services.source.core.positions import Located, line_of
from services.source.core.problems import Problem, Severity
from services.source.core.yaml_document import YamlError, read_yaml

#: Kubernetes' limit for a manifest (kubelet: maxConfigLength).
MAX_FILE_BYTES = 10 * 1024 * 1024
#: Documents of one file, or items of one list: far more than a node can run.
MAX_DOCUMENTS = 5000
_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class Document:
    """One value of a file: JSON-like (dict, list, str, int, float, bool; never None at the top)."""

    index: int  # from 1, among the file's documents that aren't empty
    value: object
    _positions: Located = field(repr=False, compare=False)

    @property
    def line(self) -> int:
        """Where the document begins."""
        return self._positions.line

    def line_of(self, path: str) -> int:
        """The line of a field path (`spec.containers[0].name`), or of the deepest part of it that is
        there."""
        return line_of(self._positions, path) if path else self._positions.line


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """`whole` = the problems concern all of the file: nothing is known of what it meant to hold."""

    documents: tuple[Document, ...]
    problems: tuple[Problem, ...]
    whole: bool = False
    unread: int = 0  # documents that couldn't be parsed


def parse_documents(path: str, data: bytes) -> ParsedFile:
    """All documents of a file. JSON when the first character is "{", else YAML. Never raises."""
    text, fault = _decode(path, data)
    if fault is not None:
        return ParsedFile((), (fault,), whole=True, unread=1)
    documents: list[Document] = []
    problems: list[Problem] = []
    unread = index = 0
    reader = read_json(text) if text.lstrip()[:1] == "{" else read_yaml(text)
    for found in reader:
        index += 1
        if index > MAX_DOCUMENTS:
            unread += 1
            problems.append(Problem(Severity.ERROR, path, f"more than {MAX_DOCUMENTS} documents in one file"))
            break
        if isinstance(found, JsonError | YamlError):
            unread += 1
            problems.append(Problem(Severity.ERROR, path, found.message, found.line, index, "", found.hint))
        else:
            documents.append(Document(index, found[0], found[1]))
    if not index:
        problems.append(Problem(Severity.WARNING, path, "the file holds no document, only comments"))
    return ParsedFile(tuple(documents), tuple(problems), whole=unread > 0 and not documents, unread=unread)


def _decode(path: str, data: bytes) -> tuple[str, Problem | None]:
    def fault(message: str, hint: str = "", line: int = 0) -> tuple[str, Problem]:
        return "", Problem(Severity.ERROR, path, message, line, hint=hint)

    if len(data) > MAX_FILE_BYTES:
        return fault(f"the file is larger than {MAX_FILE_BYTES // 2**20} MiB")
    if data.startswith(_UTF16_BOMS):
        return fault("the file is UTF-16 (or UTF-32) text; manifests are UTF-8", "save it as UTF-8")
    data = data.removeprefix(_UTF8_BOM)
    if not data.strip():
        # What a writer leaves for a moment between truncating and writing.
        return fault("the file is empty", "remove the file to remove its pods")
    zero = data.find(b"\0")
    if zero >= 0:
        if zero <= 1 and len(data) > 3:
            return fault("the file looks like UTF-16 text; manifests are UTF-8", "save it as UTF-8")
        return fault("the file holds a NUL byte: it isn't text", line=data.count(b"\n", 0, zero) + 1)
    try:
        return data.decode("utf-8"), None
    except UnicodeDecodeError as error:
        return fault(
            f"not valid UTF-8: {error.reason} (byte {data[error.start]:#04x})",
            line=data.count(b"\n", 0, error.start) + 1,
        )
