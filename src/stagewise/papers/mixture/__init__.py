"""Two-mixture of linear classification, learned in three stages by a two-headed transformer.

A sequence names a group (c_k) and carries signed class signals; only the sign of its own group's signal v_k
is the label. Training finds three things in turn. First the neurons align with the class signals: on
`consistent` samples, where all signs agree, counting votes is enough, and their loss falls at once. That
alignment switches the ReLU off on some samples, and only then do the neurons align with the group signals
too. On `conflicting` samples the votes cancel, and no neurons can tell them apart while attention is uniform.
So attention learns last: its scores start from almost nothing and grow like a product of small weights,
exponentially but from a tiny start, until class tokens look at the group token that belongs to them. Then the
conflicting loss falls, and the neurons finish the work.

Read on: `closed.py` (the exact system that the weights obey), `experiments.py` and `studies.py` (what is
run), `claims/` (what the paper says, by its sections), `figures.py`; then `orbits.py` (any number of groups
in 22 numbers), `construction.py` (Lemma 6.1), `features.py` (margins), `appendix_b.py` (the gradients as
printed) and `readings.py` (reading trajectories).

Where the paper's print is off, the code carries the right formula. Its slips, once:
- B.1: the gradient of the negative head's neurons is printed with the positive head's attention. Section 5.2
  and Appendix G
  list the block of scores twice; the second is the block of key self-scores.
- E.1, E.3, E.5 and Section 5.2: stage 2 takes the expectation over conflicting samples, each with probability
  1/4, but the
  printed derivatives weigh each by 1: they are 4 times too large (8 times in Section 5.2, which also applies
  at T1 a near
  symmetry that holds only later). The factors m in E.1 and 1/sqrt(m) in E.3 are stray.
- E.5: the last row repeats c1 with v1 under the key self-scores with the opposite sign of the row above;
  meant are
  v1 with v1 (positive) and v1 with v2 (negative). Not all variables vanish at T1: the self-scores' diagonal
  is omega^2.
- Lemma 6.1: the printed readout adds +1 to f for both labels, so every negative sample is wrong; the check in
  the proof writes
  the positive head twice and drops ReLU and bias. `construction.py` has weights that work for every K and L.
- G.1 writes N(0, omega^2 I) for columns that are N(0, omega^2 I / m). D.6 says "k in [K]" of a pattern that
  ends with stage 2.
- The bias b is listed with the heads but is one number, shared and not trained; Lemma 5.5 calls another
  constant b as well.
Open in the paper, and our choices: T1 (consistent loss 0.1), T2 (main score 1), epsilon 0.01, omega 0.1, m
128, sequences of
3 tokens in Figures 5 to 7, and neurons of scale 0.1 in Figure 3.
"""

TITLE = "Transformers provably learn two-mixture of linear classification via gradient flow"
