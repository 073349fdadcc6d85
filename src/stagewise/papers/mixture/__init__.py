"""Two-mixture of linear classification, learned in three stages by a two-headed transformer.

A sequence names a group (c_k) and carries signed class signals; only the sign of its own group's signal v_k is the label.
Training finds three things in turn. First the neurons align with the class signals: on `consistent` samples, where all
signs agree, counting votes is enough, and their loss falls at once. That alignment switches the ReLU off on some samples,
and only then do the neurons align with the group signals too. On `conflicting` samples the votes cancel, and no neurons
can tell them apart while attention is uniform. So attention learns last: its scores start from almost nothing and grow
like a product of small weights, exponentially but from a tiny start, until class tokens look at the group token that
belongs to them. Then the conflicting loss falls, and the neurons finish the work.

Read on: `closed.py` (the exact system that the weights obey), `experiments.py`, `claims/`, `figures.py`.

Where the paper's print is off, the code carries the right formula. Its slips, once:
- Appendix B.1: the gradient of the negative head's neurons is printed with the positive head's attention.
- Section 5.2: the 36-number system lists the score block twice; the second is the block of key self-scores.
"""

TITLE = "Transformers provably learn two-mixture of linear classification via gradient flow"
