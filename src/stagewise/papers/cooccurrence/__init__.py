"""Word co-occurrence, learned in two phases by a one-layer transformer under gradient flow.

A sequence is positive if both target words mu1 and mu2 are in it; a common word mu3 is in every sequence, and
the rest are random tokens. The network adds up what every word contributes, G(mu), weighted by attention. In
Phase 1, a time of order 1/m, only G moves: both targets rise at once, since they occur mostly in positive
sequences, and with them the loss of the sequences that hold one target alone. Then those pull back, through
the word that all sequences share: G of the common word falls, and from T_0.5 on it falls faster than either
target rises and slower than both together. That is what lets one target be negative and two positive. At T1
every training sample is right and the loss is still of order one. In Phase 2 the pulls of the types balance
each other by themselves, G grows along the max-margin direction, and the loss falls like 1/t. Only now do
attention scores move, as they should: targets look at each other and away from the common word. But they move
by so little that margin and training time do not notice (claim `attn_share.size`).

Read on: `response.py` (what the loss reads), `closed.py` (the exact system that weights obey, by flow and by
descent), `forms.py` (the paper's six kinds of inner products and plain weights beside it), `experiments.py`
and `studies.py` (what is run), `claims/` (what the paper says, by its sections), `limits.py` (models of three
and seven numbers that predict the measurements), `figures.py`; then `initial.py` (how weights
start), `at_start.py` (what the proofs say of the start), `measured.py`, `readings.py` and `appendix_b.py`.

Where the paper's print is off, the code carries the right formula. Its slips, once:
- Theorem 3.2, third item: -G(mu3) <= constant must read >=.
- The experiment has m = 128 < m1 = 256, against Condition 1, and 160 places for 61 random tokens, against
  Assumption 2.3 (ii). There
  the path through W, negligible in the theory, is the larger one. `nL <= d` is more than needed: 3 + n(L -
  7/3) words are enough.
- "Kaiming initialization" is not one thing: the default of a linear layer and the normal variant differ by 6
  in variance, and neither
  starts with outputs near 0.01, as the proofs ask. Lemma D.8's last step needs c0 of about 0.003 in Condition
  1.
- Lemma 4.1 is printed without the sum over neurons that the text after it needs. Lemma 4.2 has s1^2 m F where
  Lemma E.16 has
  (s0^2 + s1^2) m F: the same order.
- `j in [m]` must be [m1] in Lemma C.1, Definition E.2 and Corollary E.13; Lemma C.1's last line has j for j1;
  Lemma E.17 prints time 0 for t;
  Corollary E.20 has F_i >= C for negative samples, where y_i F_i is meant; a ReLU's derivative is left over
  in the proof of Lemma E.9; the
  proof of F.8 lacks 1/n; Lemma F.16's change of scores drops two transposes.
- Corollary D.5: the Gaussian tail needs sqrt(2 log ...); the printed bound is short by sqrt 2 and fails in
  every other seed. Lemma D.8 drops a
  logarithm of its proof and holds all the same.
- Corollary F.17 prints 1/sqrt(m) for the softmax's speed; 1/m, as in its proof, is right. The proof of F.6
  puts the attracting ratio in (1, 2):
  it is 3/2 for many samples and 1.27 for 60 of length 5.
- Scores are key first: S12 is key mu1 and query mu2, and the falling ones are key mu3. Theorem 3.3 says
  nothing of C11, C22, C33, C13, C23.
Open in the paper, and our choices: C_T1 = 15 for all sizes, T* at a loss of 0.001, c0 = 0.1 and c1 = 1 in
Condition 1, C = 0.05 in
Lemma 4.3, the default of a linear layer for "Kaiming", signs a fixed at +-1 and no biases. At preset `quick`
training sets of the
theory have 30 samples instead of 60; claims about the start alone have 30, and trends in L and drawn types
18, at every preset.
"""

TITLE = "Training dynamics of transformers to recognize word co-occurrence via gradient flow analysis"
