"""Sparse parity."""

TITLE = "From sparse dependence to sparse attention: unveiling how chain-of-thought enhances transformer sample efficiency"
