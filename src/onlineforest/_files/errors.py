"""The errors of model files. Must not know what is in a file."""

from __future__ import annotations


class ModelFileError(ValueError):
    """A file is not a model file, is damaged, or has another format or law than this library.

    The message begins with the path of the file and names the problem. Errors of the system, for
    example a missing file, are `OSError` instead.

    Examples
    --------
    >>> import io
    >>> import onlineforest
    >>> try:
    ...     onlineforest.load(io.BytesIO(b"A text, for example. " * 20))
    ... except onlineforest.ModelFileError as error:
    ...     print(error)
    the file is not a model file of onlineforest: it begins with the bytes b'A text, '.
    """

    __module__ = "onlineforest"


class ModelTooLargeError(ModelFileError):
    """The forest in a file would take more memory than `max_bytes`.

    Examples
    --------
    >>> import onlineforest
    >>> forest = onlineforest.OnlineForestRegressor(random_state=0).fit([[0.0], [1.0]], [3, 7])
    >>> forest.save("sevens.safetensors")
    >>> try:
    ...     onlineforest.load("sevens.safetensors", max_bytes=100)
    ... except onlineforest.ModelTooLargeError as error:
    ...     print(error)
    sevens.safetensors holds a forest of more than 100 bytes.
    """

    __module__ = "onlineforest"
