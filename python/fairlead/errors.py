"""What a node answers when it does not do what it was asked. They are pickled and come back as they were."""


class RequestError(RuntimeError):
    """The node refused: `status` and `type` (the exception's name in Lambda's API)."""

    def __init__(self, status: int, type: str, message: str) -> None:
        super().__init__(f"{status} {type}: {message}")
        self.status, self.type, self._message = status, type, message

    def __reduce__(self) -> "tuple[type[RequestError], tuple[int, str, str]]":
        return RequestError, (self.status, self.type, self._message)


class FunctionError(RuntimeError):
    """The function failed; `payload` is what it said, often {"errorType", "errorMessage"}."""

    def __init__(self, payload: bytes) -> None:
        super().__init__(payload.decode(errors="replace"))
        self.payload = payload

    def __reduce__(self) -> "tuple[type[FunctionError], tuple[bytes]]":
        return FunctionError, (self.payload,)
