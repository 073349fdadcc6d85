"""What is watched of a decoder in training: names and sizes that claims and figures know too."""

from __future__ import annotations

import numpy as np

RAISED = ("nothing", "predicate", "answer")
BONUS = 2.0  # by which the score of the clause that is needed is raised, for the predicate or the answer
LOOKED = (5, 10, 20)  # lengths at which attention is watched, as in Figures 2, 6 and 7
WATCHED = 100  # sentences, as there
ORDER = np.array([3, 0, 4, 2, 1])  # of the predicates, in Figure 5
