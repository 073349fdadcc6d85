"""Appendix B and equation (7) in numpy, sum by sum as the paper writes them, without automatic
differentiation."""

from __future__ import annotations

import numpy as np

from stagewise.tasks.cooccurrence import Sentences


def respond(w: dict[str, np.ndarray], sentences: Sentences) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Attention [n, query l, key h], F and the errors g = 1 / (1 + exp(y F)) of every sequence."""
    K, Q = (np.moveaxis(w[name][:, sentences.tokens], 0, -1) for name in ("WK", "WQ"))  # [n, place, m]
    scores = np.einsum("nlm,nhm->nlh", Q, K) / np.sqrt(len(w["WK"]))
    raised = np.exp(scores - scores.max(-1, keepdims=True))
    attention = raised / raised.sum(-1, keepdims=True)
    G = w["signs"] @ w["W"] @ w["WV"]
    F = np.einsum("nlh,nh->n", attention, G[sentences.tokens])
    return attention, F, 1 / (1 + np.exp(sentences.label * F))


def flow(w: dict[str, np.ndarray], sentences: Sentences) -> dict[str, np.ndarray]:
    """dW, dW_V, dW_K, dW_Q under gradient flow, one sequence and one query after another."""
    attention, _, error = respond(w, sentences)
    (n, length), m, a = sentences.tokens.shape, len(w["WK"]), w["signs"]
    moved = {name: np.zeros_like(w[name]) for name in ("W", "WV", "WK", "WQ")}
    words = np.eye(w["WV"].shape[1])
    for i in range(n):
        X, pull = words[sentences.tokens[i]].T, error[i] * sentences.label[i] / n
        V, K, Q = w["WV"] @ X, w["WK"] @ X, w["WQ"] @ X
        for at in range(length):
            p, u = attention[i, at], w["W"].T @ a
            moved["W"] += pull * np.outer(a, V @ p)
            moved["WV"] += pull * np.outer(u, X @ p)
            tilt = p * (V.T @ u - u @ V @ p) / np.sqrt(m)
            moved["WK"] += pull * np.outer(Q[:, at], X @ tilt)
            moved["WQ"] += pull * np.outer(K @ tilt, X[:, at])
    return moved


def score_speed(w: dict[str, np.ndarray], sentences: Sentences, key: int, query: int) -> float:
    """Equation (7): the derivative of one score, by its two sums."""
    attention, _, error = respond(w, sentences)
    (n, length), m, total = sentences.tokens.shape, len(w["WK"]), 0.0
    for i in range(n):
        tokens = sentences.tokens[i]
        for at in range(length):
            p = attention[i, at]
            values = sum(sign * row @ w["WV"][:, tokens] for sign, row in zip(w["signs"], w["W"]))
            tilt = p * (values - values @ p)
            if tokens[at] == query:
                total += error[i] * sentences.label[i] * w["WK"][:, key] @ w["WK"][:, tokens] @ tilt
            total += (
                error[i]
                * sentences.label[i]
                * (w["WQ"][:, query] @ w["WQ"][:, tokens[at]])
                * tilt[tokens == key].sum()
            )
    return total / (n * np.sqrt(m))
