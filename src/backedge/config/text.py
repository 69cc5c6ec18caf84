"""Decodes the bytes of a file, and explains the errors of the YAML parser in plain words."""

from __future__ import annotations

import re
from typing import Any

from backedge.config.problems import Problem, WorkflowFileError

_OTHER_ENCODINGS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def decoded(data: bytes, most: int, file: str) -> str:
    """UTF-8 text, with or without a byte order mark. Raises WorkflowFileError for anything else."""
    if len(data) > most:
        sentence = f"the file has more than {most} bytes: move long texts into separate files"
        raise WorkflowFileError([Problem(1, 1, "", sentence, file)])
    if data.startswith(_OTHER_ENCODINGS):
        raise WorkflowFileError([Problem(1, 1, "", "the file is not UTF-8: save it as UTF-8", file)])
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        sentence = f"the byte 0x{data[error.start]:02x} is not UTF-8: save the file as UTF-8"
        raise WorkflowFileError([Problem(*_position(before), "", sentence, file)]) from error
    odd = _UNPRINTABLE.search(text)
    if odd:
        sentence = f"the control character U+{ord(odd[0]):04X} is not allowed: remove it"
        raise WorkflowFileError([Problem(*_position(text[: odd.start()]), "", sentence, file)])
    return text


def _position(before: str) -> tuple[int, int]:
    lines = re.split(r"\r\n|\n|\r", before)
    return len(lines), len(lines[-1]) + 1


def in_words(error: Any) -> tuple[int, int, str]:
    """Line, column and sentence for an error of the parser."""
    problem, context = str(error.problem or ""), str(error.context or "")
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return 1, 1, f"not valid YAML: {problem or context}"
    start = error.context_mark or mark
    opened = f"that starts in line {start.line + 1}, column {start.column + 1}"
    odd = re.search(r"found character '(.+)' that cannot start", problem)
    if "'\\t'" in problem or (odd and odd[1] == "\t"):
        sentence = "a tab character: use spaces"
    elif odd:
        sentence = f"a value cannot start with {odd[1]}: put the text in quotes"
    elif "scanning an alias" in context:
        mark, sentence = start, "a value cannot start with *: put the text in quotes"
    elif "mapping values are not allowed" in problem:
        sentence = "a colon is not expected here: look at the indentation, or put the text in quotes"
    elif "quoted scalar" in context and "end of" in problem:
        mark, sentence = start, f"the quoted text {opened} is not closed"
    elif "expected ',' or ']'" in problem:
        sentence = f"expected , or ] here: the list {opened} is not closed"
    elif "expected ',' or '}'" in problem:
        sentence = f"expected , or }} here: the mapping {opened} is not closed"
    elif "but found '<stream end>'" in problem:
        sentence = "the file ends in the middle of a list or mapping: close it with ] or }"
    elif "expected <block end>" in problem:
        sentence = f"this is not indented like the block {opened}"
    elif "could not find expected ':'" in problem:
        mark, sentence = start, "expected `key: value`: the colon is missing"
    else:
        sentence = f"not valid YAML: {problem}"
    return mark.line + 1, mark.column + 1, sentence
