"""k-fold composition: follow a symbol through k levels, each by a hidden and a shown permutation.

A sequence shows k permutations sigma_i; the task hides k permutations pi_i. Asked for (i, j), the answer is
where j goes under sigma_i after pi_i, then under the next level's pair, and so on, r levels far: r hops. Two
times r hops are r hops after r hops, so log2(k) + 1 layers of attention are enough: the first finds out what
the hidden permutations are, each later one doubles the hops (Theorem 4). Learning that from k-fold data alone
is hopeless for learners that go by correlations: two targets agree hardly more often than chance, and the
excess falls exponentially in k (Theorem 5). But with easier data it takes a few gradient steps. Trained on 1,
2, 4, … hops in turn, layer after layer learns its part in one large step (Theorem 7). And if all hops are
trained at once, the same happens by itself: as long as a layer is not trained, what it hands on is the same
for all queries, and the layers after it get no gradient (Theorem 8).

Read on: `tasks/composition.py`, `models/blocks.py` and `models/attention_only.py` (the model to the letter),
`construction.py` (Theorems 4 and 9), `queries.py` (Section 4), `gradients.py` (one gradient in closed form
and by counting), `learning.py` (Algorithms 1 and 2); `models/encoder.py` and `encoder_steps.py` (Figure 3
right);
`experiments.py`, `studies.py`, `claims/`, `figures.py`; then `identities.py`, `counting.py`, `agreement.py`,
`initial.py`, `readings.py`.

Where the paper's print is off, the code carries the right formula. Its slips, once:
- Theorems 4 and 9 write the output at (1, j) and the label with x; j = x. After layer l + 1 the new block is
  at level i + 2^l - 1; i + 2^(l-1) is printed, twice, while the weights are right.
  The readout e_k (x) I reads level 1's queries only; the cyclic task needs 1_k (x) I.
- Theorem 9: the zero block is 0_{(m+2)NL}; p_{i_j} begins with e_{m,j}; scores lack e_{k,i'} inside the sums;
  the readout must leave out the coordinates of their own, or level k counts
  twice if it is one of the m; beta_2 >> beta_1 is not needed, beta_2 > beta_1 is enough. The embedding
  depends on which levels are moved, so on pi.
- Lemma 10 and Remark 11 have pi_k, rho_k in every factor. Lemma 12's proof: |agree - 1| is at most max(1, r -
  2); packing is defined with < r and counted with > r.
- Theorem 5's proof: tau^2 <= 2 (2 log N / N)^(k/2), printed with -k/2; the number of queries is N^Omega(k log
  log N). Appendix B's loss lacks its sign. Remark 6: Nk for kN log N.
- Lemma 15 writes W_OV for W_KQ, drops a transpose and the factor beta0/(kN), and its table of scores lacks
  the query's own key for j that is not fixed; the bound on the lead is right.
- The formula for the readout's gradient keeps one block of d; the others have expectation zero, except block
  1 for one hop. Both are here (`readout`).
- Lemma 28: the block of f^(l) is at level i + 2^(l-1) - 1. Theorem 7 asks for eps <= 1/(k^2 N^3), Theorem 14
  for eps log(1/eps) <= 1/(k^6 N^6). `0.99` in Theorem 14's proof is 0.01.
- Lemma 37 says of every single sample what is true of expectations: see `lem37` and `lem37.mean`.
- Algorithm 1 steps on all key-query matrices, Section 6 on one: the same to 1e-12.
Open in the paper, and our choices: beta0 = 1, the rate by the lead that one step gives (40), fresh sequences
in every step, all queries of a sequence where not said otherwise, readouts that learn from their own block;
for the
encoder everything but k = 4, 10^5 sequences and Adam.
"""

TITLE = "Learning compositional functions with transformers from easy-to-hard data"
