"""Engines whose parts are somewhere else: each kernel that they know is translated into a question there."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, TypeVar

from spectral_irt.engines.engine import Each, Engine, Kernel

Translation = TypeVar("Translation", bound=Callable[..., Any])


class Translations(dict[Kernel, Callable[..., Any]]):
    """What is done instead of a kernel: a function of the engine, the part, and the arguments of the kernel.

    >>> ours = Translations()
    >>> @ours.of(len)
    ... def _length(engine, part):
    ...     return 7
    >>> ours[len](None, "somewhere else")
    7
    """

    def of(self, kernel: Kernel) -> Callable[[Translation], Translation]:
        """Decorates the translation of this kernel."""

        def known(translation: Translation) -> Translation:
            self[kernel] = translation
            return translation

        return known


class TranslatedEngine(Engine):
    """An engine that knows some kernels, and refuses others."""

    translations: ClassVar[Translations]

    @abstractmethod
    def refusal(self, kernel: Kernel) -> Exception:
        """What to raise where a kernel would need the answers themselves."""

    def map(self, kernel: Kernel, parts: Sequence[Any], *args: Any, each: Each = ()) -> Iterator[Any]:
        translation = self.translations.get(kernel)
        if translation is None or each:
            raise self.refusal(kernel)
        for part in parts:
            yield translation(self, part, *args)
