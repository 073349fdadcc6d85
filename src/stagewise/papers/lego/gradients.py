"""The paper's gradient formulas, to be held against automatic differentiation of the plain model."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from stagewise.papers.lego.activation import clipped, smooth_relu
from stagewise.papers.lego.plain import activations, attention


def slopes(x: Float[Array, "n d m"], constants: dict) -> Float[Array, "n d m"]:
    """sReLU' at each neuron; zero where the clip holds its token's output."""
    inner = (jnp.clip(x, -constants["rho"], constants["rho"]) / constants["rho"]) ** (constants["q"] - 1)
    raw = smooth_relu(x, constants["rho"], constants["q"]).sum(-1, keepdims=True)
    free = jax.grad(lambda raw: clipped(raw, constants["top"], constants["clip_width"]).sum())(raw)
    return free * jnp.where(x > constants["rho"], 1.0, jnp.where(x < -constants["rho"], 0.0, inner))


def errors(weights, attended, target, constants):
    """E_j = 1{j is right} - logit_j, and sReLU' of each neuron."""
    x = activations(weights, attended, constants["bias"])
    outputs = clipped(
        smooth_relu(x, constants["rho"], constants["q"]).sum(-1), constants["top"], constants["clip_width"]
    )
    right = jax.nn.one_hot(target, outputs.shape[-1])
    return right - jax.nn.softmax(outputs, -1), slopes(x, constants), x


def of_neurons(
    weights,
    scores,
    clauses: Float[Array | np.ndarray, "n clause 5 d"],
    target: Int[Array | np.ndarray, " n"],
    constants: dict,
) -> Float[Array, "d m 5 d"]:
    """Fact A.1, minus the gradient: E[E_j sReLU'(Lambda_jr) sum_k Attn_k Z_k]."""
    attended = jnp.einsum("nk,nkpa->npa", attention(scores, clauses), clauses)
    error, slope, _ = errors(weights, attended, target, constants)
    return jnp.einsum("nj,njm,npa->jmpa", error, slope, attended) / len(clauses)


def fact_b(
    weights, clauses, target, constants: dict, actions: slice, values: slice
) -> tuple[Float[Array, "d m tokens"], Float[Array, "d m tokens"]]:
    """Equations 29 and 30 (38 and 39 for fibres), minus the gradient, as what is gained and what is lost, for
    actions and values: halves of E[(1 - logit_j) sReLU' 1{j is right, token there}] and E[logit_j sReLU' 1{j
    is wrong, token there}]. The slices say where tokens are."""
    attended = clauses.mean(1)
    error, slope, _ = errors(weights, attended, target, constants)
    aimed = jax.nn.one_hot(target, error.shape[-1])
    there = 2 * jnp.concatenate([attended[:, 1, actions], attended[:, 4, values]], -1)
    gained = jnp.einsum("nj,njm,na->jma", aimed * error, slope, there)
    lost = jnp.einsum("nj,njm,na->jma", (aimed - 1) * error, slope, there)
    return gained / (2 * len(clauses)), lost / (2 * len(clauses))


def of_scores(
    weights, scores, clauses, target, constants: dict, centred: bool = True
) -> Float[Array, "5 d 5 d"]:
    """Fact D.1, minus the gradient: E[sum_k Attn_k (Xi_k - sum_k' Attn_k' Xi_k') Z_query Z_k'], Xi_k of
    equation 41."""
    paid = attention(scores, clauses)
    error, slope, _ = errors(weights, jnp.einsum("nk,nkpa->npa", paid, clauses), target, constants)
    weighed = jnp.einsum("nj,njm,jmpa->npa", error, slope, weights)
    gain = jnp.einsum("npa,nkpa->nk", weighed, clauses)
    middle = (paid * gain).sum(-1, keepdims=True) if centred else 0
    return jnp.einsum("nk,npa,nkqb->paqb", paid * (gain - middle), clauses[:, -1], clauses) / len(clauses)


def lemma_a(
    weights, clauses, target, constants: dict, weighted: bool = True
) -> dict[str, Float[Array, "..."]]:
    """Lemmas A.1 and A.2, slot 4 at length 1, minus the gradient: by first slot, action and last variable,
    [d, m, tokens].

    Each is a half of E[(1 - logit_j) sReLU' 1{x1 = j, there}] - E[logit_j sReLU' 1{x1 != j, there}]."""
    attended = clauses.mean(1)
    error, slope, _ = errors(weights, attended, target, constants)
    aimed = jax.nn.one_hot(target, error.shape[-1])
    confident = aimed - error if weighted else jnp.full_like(error, 1 / error.shape[-1])  # logit_j

    def half(there: Float[Array | np.ndarray, "n a"]) -> Float[Array, "d m a"]:
        gained = jnp.einsum("nj,njm,na->jma", aimed * (1 - confident), slope, there)
        lost = jnp.einsum("nj,njm,na->jma", (1 - aimed) * confident, slope, there)
        return (gained - lost) / (2 * len(clauses))

    predicate, answer = clauses[:, 0], clauses[:, 1]
    return {
        "result": half(predicate[:, 0]),
        "action": half(predicate[:, 1]),
        "source": half(predicate[:, 2]),
        "answered": half(answer[:, 3]),
    }


def lemma_d(
    weights, scores, clauses, target, constants: dict
) -> tuple[Float[Array, "d d"], Float[Array, "d d"]]:
    """Lemmas D.1 and D.2, minus the gradients of Q[4, 3] and Q[4, 4]: sums over clauses k of
    E[Attn_k sum_j E_j sum_r sReLU'(Lambda) (<W_jr, Z_k> - Lambda + b) 1{query variable, key variable}]."""
    paid = attention(scores, clauses)
    error, slope, x = errors(weights, jnp.einsum("nk,nkpa->npa", paid, clauses), target, constants)
    gain = jnp.einsum("jmpa,nkpa->nkjm", weights, clauses) - (x - constants["bias"])[:, None]
    each = paid * jnp.einsum("nj,njm,nkjm->nk", error, slope, gain)
    by_slot = jnp.einsum("nk,na,nkqb->qab", each, clauses[:, -1, 3], clauses[:, :, 2:4]) / len(clauses)
    return by_slot[0], by_slot[1]
