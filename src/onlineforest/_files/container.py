"""The front door to model files: named arrays and strings in one file, with a digest.

Only gathers names; `header` describes the format.
"""

from onlineforest._files.errors import ModelFileError, ModelTooLargeError
from onlineforest._files.header import FORMAT_VERSION, MAX_HEADER_BYTES, Header, Tensor
from onlineforest._files.reading import Contents, read, read_header
from onlineforest._files.strict_json import parse_json
from onlineforest._files.writing import write

__all__ = [
    "FORMAT_VERSION",
    "MAX_HEADER_BYTES",
    "Contents",
    "Header",
    "ModelFileError",
    "ModelTooLargeError",
    "Tensor",
    "parse_json",
    "read",
    "read_header",
    "write",
]
