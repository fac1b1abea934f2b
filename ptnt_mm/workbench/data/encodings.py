"""Text of files that any program may have written, in the encoding that their first bytes show."""

import codecs

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def as_utf8(content: bytes) -> bytes:
    """The same text in UTF-8; programs on Windows write UTF-16 with a byte order mark.

    Raises:
        UnicodeDecodeError: if it has such a mark, but is not UTF-16.
    """
    return content.decode('utf-16').encode() if is_utf16(content) else content


def is_utf16(content: bytes) -> bool:
    """Whether text starts with the mark of UTF-16."""
    return content.startswith(_UTF_16)


def decoded_text(content: bytes) -> str:
    """Text in UTF-8 or UTF-16, without the mark of the encoding.

    Raises:
        UnicodeDecodeError: if it is in another encoding.
    """
    return as_utf8(content).decode('utf-8-sig')
