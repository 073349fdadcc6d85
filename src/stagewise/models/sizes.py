"""The sizes of models, as settings."""

from __future__ import annotations

from dataclasses import dataclass

from stagewise.errors import require


@dataclass(frozen=True)
class Shape:
    """The sizes of a GPT. `inner` is the width of the multilayer perceptron, four times the width unless given."""

    layers: int = 1
    heads: int = 1
    width: int = 720
    vocabulary: int = 2
    positions: int = 0  # 0: as many as the texts are long
    inner: int = 0

    def __post_init__(self):
        for name, least in (("layers", 1), ("heads", 1), ("width", 1), ("vocabulary", 1), ("positions", 0), ("inner", 0)):
            value = getattr(self, name)
            require(least <= value <= 10**6, f"gpt: {name} must lie between {least} and 10^6, not {value} (set --gpt.{name})")
        require(
            self.width % self.heads == 0,
            f"gpt: {self.heads} heads do not divide a width of {self.width} (set --gpt.heads or --gpt.width)",
        )

    @property
    def hidden(self) -> int:
        return self.inner or 4 * self.width
