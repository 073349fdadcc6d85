"""The sizes of models, as settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stagewise.errors import require


@dataclass(frozen=True)
class Shape:
    """The sizes of a GPT. `inner` is the width of the multilayer perceptron, four times the width unless
    given."""

    layers: int = 1  # number of blocks, each attention and a perceptron
    heads: int = 1  # number of attention heads in each block; it must divide the width
    width: int = 720  # width of the residual stream
    vocabulary: int = 2  # number of different tokens
    positions: int = 0  # number of positions; 0: as many as the texts are long
    inner: int = 0  # width of the perceptron; 0: four times the width

    def __post_init__(self):
        for name, least in (
            ("layers", 1),
            ("heads", 1),
            ("width", 1),
            ("vocabulary", 1),
            ("positions", 0),
            ("inner", 0),
        ):
            value = getattr(self, name)
            require(
                least <= value <= 10**6,
                f"a model's {name} must lie between {least} and 10^6, not {value} (set --{name})",
            )
        require(
            self.width % self.heads == 0,
            f"{self.heads} heads do not divide a width of {self.width} (set --heads or --width)",
        )

    @property
    def hidden(self) -> int:
        return self.inner or 4 * self.width

    @property
    def weights(self) -> int:
        """How many numbers are trained, norms and biases aside."""
        blocks = self.layers * (4 * self.width**2 + 2 * self.width * self.hidden)
        return blocks + (self.vocabulary + self.positions) * self.width


@dataclass(frozen=True)
class Clauses:
    """The sizes of a decoder that reads clauses. `skip` adds the asking clause to the output of attention;
    `encoding` says how places are marked."""

    heads: int = 2  # number of attention heads; it must divide the width
    width: int = 128  # width of the output of attention
    embedding: int = 128  # width of a token's embedding; a clause has five tokens
    inner: int = 256  # width of the perceptron
    skip: bool = False  # whether the asking clause is added to the output of attention
    encoding: Literal["none", "learned", "sinusoidal"] = "none"  # how places are marked
    places: int = 320  # number of places that the encoding has room for
    token_scale: float = 0.2  # scale of the token embeddings at the start

    def __post_init__(self):
        for name in ("heads", "width", "embedding", "inner", "places"):
            value = getattr(self, name)
            require(
                1 <= value <= 10**5,
                f"decoder: {name} must lie between 1 and 10^5, not {value} (set --decoder.{name})",
            )
        require(
            1e-6 <= self.token_scale <= 100,
            f"decoder: token_scale must lie between 1e-6 and 100, not {self.token_scale:g} (set "
            "--decoder.token_scale)",
        )
        require(
            self.width % self.heads == 0,
            f"decoder: {self.heads} heads do not divide a width of {self.width} (set --decoder.heads or "
            "--decoder.width)",
        )

    @property
    def weights(self) -> int:
        """How many numbers are trained, tokens, heads and biases aside."""
        return 12 * self.embedding * self.width + self.width**2 + 2 * self.width * self.inner
