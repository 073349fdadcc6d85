"""Gradient flow in stages: an adaptive solver follows the flow until each stage's event.

The solver is compiled once for all stages of all lanes: what moves, on which samples, and what ends the stage
are its arguments."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import optimistix
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from stagewise.errors import require
from stagewise.training import stiff
from stagewise.training.program import Program, Records, State
from stagewise.training.stages import EVENT, GAVE_UP, NOT_FINITE, NOT_RUN, TIME_RAN_OUT, Stage, System

BY_STAGE = ("ended", "outcome", "solver_steps")


class Motion(System):
    """A system that flows: the vector field of one lane."""

    @abstractmethod
    def velocity(
        self,
        weights: dict[str, Array],
        constants: dict[str, Any],
        samples: Float[Array | np.ndarray, " n"],
    ):
        """Minus the gradient of the expected loss under the sample weights, named like the weights."""


def begin(weights: dict[str, np.ndarray], constants: dict[str, np.ndarray], stages: int) -> State:
    """Return the state at time 0, before the first of `stages` stages. Every leaf has the lane as its first
    axis."""
    lanes = len(jax.tree.leaves(weights)[0])
    return {
        "weights": weights,
        "constants": constants,
        "time": np.zeros(lanes),
        "ended": np.full((lanes, stages), np.nan),
        "outcome": np.full((lanes, stages), NOT_RUN),
        "solver_steps": np.zeros((lanes, stages), int),
    }


@dataclass(frozen=True)
class Flow(Program):
    """A motion through its stages. A chunk is one stage, recorded at its start, at its end, and at some of
    the solver's own steps between them.

    The solver takes short steps where things happen, so records are dense there. Every seed has its own
    record times."""

    motion: Motion
    stages: tuple[Stage, ...]
    records_per_stage: int = 65
    relative_tolerance: float = 1e-8
    absolute_tolerance: float = 1e-12
    max_solver_steps: int = 512
    # Lanes are solved one after another by an implicit solver (`stiff.py`), and `max_solver_steps` bounds
    # how often the velocity is evaluated.
    stiff: bool = False
    # Lanes are solved one after another, not side by side. This is faster where the state of one lane fills
    # the processor's cache.
    one_by_one: bool = False

    @property
    def most_lanes(self) -> int:
        # A request to stop waits for the end of a chunk, which is long if lanes run one after another.
        return 16 if self.one_by_one or self.stiff else 256

    @property
    def chunks(self) -> int:
        return len(self.stages)

    @property
    def records(self) -> int:
        return len(self.stages) * self.records_per_stage

    def advance(self, state: State, chunk: int) -> tuple[State, Records]:
        stage = self.stages[chunk]
        state = jax.tree.map(np.asarray, state)
        weights, constants, lanes = state["weights"], state["constants"], len(state["time"])
        require(
            set(stage.moves) <= set(weights),
            f"stage {stage.name}: {stage.moves} are not all weights of the model",
        )
        moves = {name: float(name in stage.moves) for name in weights}
        watched = jax.eval_shape(
            self.motion.watched, *jax.tree.map(lambda leaf: leaf[0], (weights, constants))
        )
        require(stage.until.quantity in watched, f"stage {stage.name}: {stage.until.quantity} is not watched")
        chosen = {name: float(name == stage.until.quantity) for name in watched}
        reaches = stage.until.reaches
        threshold = constants[reaches] if isinstance(reaches, str) else np.full(lanes, float(reaches))
        ready = (state["outcome"][:, chunk - 1] == EVENT) if chunk else np.ones(lanes, bool)
        sign = 1.0 if stage.until.rising else -1.0
        fixed = (
            moves,
            self.motion.samples(stage.samples),
            chosen,
            sign,
            (self.relative_tolerance, self.absolute_tolerance),
        )
        limits = np.where(ready, stage.limit, 0.0)
        static = (self.motion, self.records_per_stage, self.max_solver_steps)
        by_lane = (weights, constants, sign * threshold, limits)
        if self.stiff:
            lane_by_lane = [jax.tree.map(lambda leaf: leaf[lane], by_lane) for lane in range(lanes)]
            solved = [stiff.solve(*static, fixed, *lane) for lane in lane_by_lane]
            solved = jax.tree.map(lambda *parts: np.stack(parts), *solved)
        elif self.one_by_one:
            solved = [
                _solve(*static, fixed, *jax.tree.map(lambda leaf: leaf[lane : lane + 1], by_lane))
                for lane in range(lanes)
            ]
            solved = jax.tree.map(lambda *parts: np.concatenate(parts), *solved)
        else:
            solved = _solve(*static, fixed, *by_lane)
        final, duration, result, taken, times, records = jax.tree.map(np.asarray, solved)
        outcome = np.where(ready, result, NOT_RUN)
        time = state["time"] + duration
        records = records | {"time": state["time"][:, None] + times}
        told = {"ended": np.where(outcome == EVENT, time, np.nan), "outcome": outcome, "solver_steps": taken}
        by_stage = {
            name: np.where(np.arange(len(self.stages)) == chunk, told[name][:, None], state[name])
            for name in BY_STAGE
        }
        return state | {"weights": final, "time": time} | by_stage, records

    def finished(self, state: State) -> bool:
        return False

    def outcomes(self, state: State) -> Records:
        return {name: np.asarray(state[name]) for name in BY_STAGE}

    def describe(self, chunk: int) -> tuple[str, int]:
        return f"stage {self.stages[chunk].name}", 0

    def labels(self):
        names = np.array([stage.name for stage in self.stages])
        of_record = np.repeat(names, self.records_per_stage)
        named = {name: ((name,), np.asarray(values)) for name, values in self.motion.coords.items()}
        return {"stage": (("record",), of_record), "stages": (("stages",), names)} | named

    @property
    def dims(self):
        return self.motion.dims | {"time": ()} | {name: ("stages",) for name in BY_STAGE}


@partial(jax.jit, static_argnums=(0, 1, 2))
def _solve(motion, records, max_steps, fixed, weights, constants, threshold, limit):
    """Solve one stage of all lanes, until its event or its limit. Returns final weights, duration, outcome,
    number of solver steps, record times and records."""
    moves, samples, chosen, sign, (relative, absolute) = fixed

    def lane(weights, constants, threshold, limit):
        def distance(weights):
            watched = motion.watched(weights, constants)
            return sign * (sum(chosen[name] * watched[name] for name in chosen)) - threshold

        def field(t, weights, args):
            velocity = motion.velocity(weights, constants, samples)
            return {name: moves[name] * velocity[name] for name in weights}

        runs = distance(weights) < 0  # else the event has already happened and the stage takes no time
        end = jnp.where(runs, limit, 0.0)
        shapes = jax.eval_shape(motion.measure, weights, constants)
        unpack = ravel_pytree(jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes))[1]

        # As one vector, measurements need one buffer in the solver's loop: a quarter less to compile.
        def measure(weights):
            return ravel_pytree(motion.measure(weights, constants))[0]

        every_step = diffrax.SubSaveAt(steps=1, fn=lambda t, y, args: measure(y))
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(field),
            diffrax.Tsit5(),
            t0=0.0,
            t1=end,
            dt0=None,
            y0=weights,
            stepsize_controller=diffrax.PIDController(rtol=relative, atol=absolute),
            saveat=diffrax.SaveAt(subs=[every_step, diffrax.SubSaveAt(t1=True)]),
            max_steps=max_steps,
            throw=False,
            event=diffrax.Event(
                lambda t, y, args, **_: distance(y), optimistix.Newton(rtol=1e-12, atol=1e-12)
            ),
        )
        still = ~runs | (limit == 0)
        assert solution.ts is not None and solution.ys is not None
        (step_times, (stop,)), (along, final) = solution.ts, solution.ys
        final = jax.tree.map(lambda new, old: jnp.where(still, old, new[0]), final, weights)
        duration = jnp.where(still, 0.0, stop)
        finite = jnp.all(jnp.array([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(final)]))
        result = solution.result
        # The solver may miss the event's own time within a rough step; then the end is past the threshold.
        passed = (result == diffrax.RESULTS.event_occurred) | (distance(final) >= 0)
        outcome = jnp.select(
            [~jnp.isfinite(distance(weights)), ~runs, ~finite, passed, result == diffrax.RESULTS.successful],
            [NOT_FINITE, EVENT, NOT_FINITE, EVENT, TIME_RAN_OUT],
            GAVE_UP,
        )
        ends = jax.lax.map(measure, jax.tree.map(lambda *both: jnp.stack(both), weights, final))
        last_step = 1 + jnp.sum(step_times < duration)  # the first saved step at the end or after it
        chosen_steps = jnp.round(jnp.linspace(0, last_step, records)).astype(int)

        def pick(saved, ends):
            ended = (chosen_steps == last_step).reshape(-1, *(1,) * (ends.ndim - 1))
            return jnp.where(ended, ends[1], jnp.concatenate([ends[:1], saved])[chosen_steps])

        times, recorded = pick(step_times, jnp.stack([0.0, duration])), jax.vmap(unpack)(pick(along, ends))
        return final, duration, outcome, solution.stats["num_steps"], times, recorded

    return jax.vmap(lane)(weights, constants, threshold, limit)
