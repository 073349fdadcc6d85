"""The LEGO paper's runs: the trained decoder of Section 7, and the theory's stages in closed form."""

from stagewise.papers.lego.experiments.theory import (
    Identities,
    OneStep,
    Recursion,
    Retrieval,
    Theory,
    TwoSteps,
)
from stagewise.papers.lego.experiments.training import DecoderTraining

__all__ = ["DecoderTraining", "Identities", "OneStep", "Recursion", "Retrieval", "Theory", "TwoSteps"]
