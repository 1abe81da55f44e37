"""What is used by `with`, and closed where the block is left."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self  # of typing since Python 3.11


class Closing(abc.ABC):
    """Something that has to be closed."""

    @abc.abstractmethod
    def close(self) -> None:
        """Give up what it holds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
