"""Sparse parity, with and without a chain of thought.

A sequence is n random bits; the answer is the parity of k secret ones. Without a chain of thought no single
bit says anything about the answer, gradients see noise, and every further secret bit multiplies the samples
that training needs. With a chain of thought the partial sums are written out: each depends on its predecessor
and one bit. That is a dependence that the first gradient sees. In the theory three steps of gradient descent
are enough, one stage each: neurons come to prefer the bit that matters, then attention turns to it and
becomes one-hot, then the outputs become right (Theorem 3). GPT-2 does the same: attention falls on the secret
while accuracy jumps. Without a chain of thought a small training set, used again and again, teaches what
fresh data does not. What we find besides: sparse attention is neither sufficient (a single head can close on
part of the secret and stay there) nor necessary (values that differ by place carry bits through uniform
attention); one head gets stuck in some seeds with a chain of thought too.

Read on: `tasks/parity.py`, `models/gpt.py` and `models/answers.py` (the exact fast path), `learning.py`
(training), `theory.py` (the one-layer network in table form; `plain.py` the same with weights),
`three_steps.py` (Theorem 3), `lemmas.py`, `construction.py` (Theorem 1), `experiments.py` and `studies/`
(what is run), `claims/`, `figures.py`; then `initial.py`, `identities.py`, `precision.py`,
`orthogonality.py`, `asymptotics.py`, `readings.py`.

Where the paper's print is off, the code carries the right formula. Its slips, once:
- Section 3.1 swaps the losses with and without a chain of thought. Theorem 3 has sgn(T) = b[i+1] where T > 0
  means bit 1; the end of Theorem
  1's proof drops the 1 in (-1)^(b+1). E A E lacks a transpose; the mask is lower triangular only with queries
  as columns.
- Theorem 1's proof has a_r - b_r <U, .> for a_r + b_r <U, .> and sums to k instead of 2m.
- Assumption 2 has log^20 in B, Lemma 5 uses log^10. Lemma 5.2 holds from n = 10^(10^47) on, B < nk from
  10^62: no instance can be run, and m = 2k
  neurons are too few at any size that can.
- eta2 is 4 k epsilon/3 in Assumption 2 and 4 m epsilon/3 in Lemma 25. Both miss the factor 1/4 of samples
  with given bits (Lemmas 23, 25),
  and Lemma 26 another 2: eta2 = 16 m epsilon/3 gives the projection 2 epsilon/3 and the signal epsilon/6.
  Lemma 23 has a stray 1/i.
- At the place i = n + 1 the own bit is always 0. So Lemma 18 loses a term, twice the signal, in every kappa;
  the score there is 8 times the others', which
  breaks Lemma 21's bound elsewhere; the third gradient is doubled, and attention's part exceeds Lemma 26's
  5/6 epsilon.
- Lemma 7: |delta| lost a factor sqrt 2, alpha's bound has an indicator that would claim zero noise. Lemma 9
  sums e_i for e_j. Lemma 21's U, V, W, Y pair the
  wrong inner products, and alphabar^2/(8 B m i') must be /(8 B^2 m i'^2). Lemma 25 has sign(nu at b[S[i]])
  for (-1)^(b[S[i]]) sign(nu at 0).
- Appendix C.2: (n = 20, k = 40) must be (40, 20); Figure 8's caption says (20, 6), Figure 9's `with CoT` is
  without; rates 6e-6, 8e-8 are 6e-5,
  8e-5. Figure 10 is one layer of two heads. Figure 3a counts 0.995 as solved. The inner width is 4 * 720, for
  the 3072 of the text is ignored by the
  library. The authors' runs have dropout 0.1, bfloat16 and clipping at 1; ours have float32, the clipping,
  and dropout as an option.
Open in the paper, and our choices: the secret is drawn from all bits but the last; sample counts are medians
over seeds at the best rate, with runs that
do not get there at the budget; evaluations come every four steps at first and then at 2 % of the steps so
far; width 64 has weights of scale 0.067
(the gain of 0.02 at 720), embeddings of 0.2 and a rate ten times larger.
"""

TITLE = (
    "From sparse dependence to sparse attention: unveiling how chain-of-thought enhances transformer "
    "sample efficiency"
)
