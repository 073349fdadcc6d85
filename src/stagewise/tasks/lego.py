"""LEGO: track a state through a chain of actions, written as clauses over variables.

A sentence has predicates x_l = g_l(x_{l-1}) for l = 1..L and answers x_l = y_l for l = 0..L. The values
follow: y_l = g_l(y_{l-1}). To answer x_l one needs two clauses: predicate l for the action and answer l - 1
for the value (Definitions 2.2 and 3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stagewise.errors import require
from stagewise.lazy import jax, jnp
from stagewise.tasks.groups import Action

if TYPE_CHECKING:
    from jaxtyping import Array, Int, Key

MOST_VARIABLES = 10**6


class Sentences(NamedTuple):
    """The parts in which sentences differ. Predicate l is made of variables[l], actions[l - 1], variables[l -
    1]; answer l is made of answered[l], values[l]. A true answer names the variable that its predicate
    defines; an answer that a model wrote may name another."""

    variables: Int[Array, "batch answers"]
    actions: Int[Array, "batch length"]
    answered: Int[Array, "batch answers"]
    values: Int[Array, "batch answers"]

    @property
    def length(self) -> int:
        return self.actions.shape[-1]


@dataclass(frozen=True)
class Lego:
    """Chains of clauses over a number of variables, with the values and actions of a group (Assumption
    3.2)."""

    action: Action = Action()
    variables: int = 180  # number of different variables; a chain names each at most once

    def __post_init__(self):
        require(
            2 <= self.variables <= MOST_VARIABLES,
            f"lego: variables must lie between 2 and {MOST_VARIABLES}, not {self.variables} (set "
            "--task.variables)",
        )

    def check_length(self, length: int) -> None:
        """Refuse a length whose chain needs more variables than there are."""
        most = self.variables - 1
        require(
            1 <= length <= most,
            f"lego: a chain of {self.variables} variables has a length between 1 and {most}, not {length} "
            "(set --task.variables)",
        )

    def depends_on(self, length: int, order: np.ndarray | None = None) -> np.ndarray:
        """Return the places of the two clauses that each answer 1..L needs, [length, 2]: its predicate, and
        the answer before it.

        Predicates come first in a sentence. They stand in order, unless `order` says which predicate stands
        at which place."""
        places = np.arange(length) if order is None else np.argsort(order)
        return np.stack([places, length + np.arange(length)], axis=1)

    def sample(self, key: Key[Array, ""], batch: int, length: int) -> Sentences:
        """Draw sentences: variables without replacement, a first value and independent actions. The other
        values follow from these."""
        of_variables, of_actions, of_values = jax.random.split(key, 3)
        order = jax.random.uniform(of_variables, (batch, self.variables), jnp.float32)
        _, variables = jax.lax.top_k(order, length + 1)
        actions = jax.random.randint(of_actions, (batch, length), 0, self.action.actions, jnp.int32)
        first = jax.random.randint(of_values, (batch,), 0, self.action.values, jnp.int32)
        drawn = variables, actions, follow(jnp.asarray(self.action.maps(), jnp.int32), first, actions)
        # Without the barrier XLA would draw all of it again wherever it is read.
        variables, actions, values = jax.lax.optimization_barrier(drawn)
        return Sentences(variables, actions, variables, values)


def follow(
    table: Int[Array, "actions values"], first: Int[Array, " batch"], actions: Int[Array, "batch length"]
) -> Int[Array, "batch answers"]:
    """Return the first value of each chain and the values after each of its actions."""

    def step(value, action):
        value = table[action, value]
        return value, value

    _, later = jax.lax.scan(step, first, actions.T)
    return jnp.concatenate([first[None], later]).T
