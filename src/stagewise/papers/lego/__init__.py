"""State tracking with a chain of thought: LEGO sentences over a group.

A sentence says x1 = g1(x0), x2 = g2(x1), … and then x0 = y0; what follows is x1 = y1, x2 = y2, and so on. To
write one answer a one-layer decoder must look at two clauses, the predicate of the next variable and the
answer just written, and apply the action to the value. Training goes in stages. First, on chains of length 1,
the perceptron learns to apply actions: for each value of the answer one neuron after another takes over a
pair of action and value, in an order set at the start. Then, on chains of length 2, attention learns where to
look: first at predicates, then at both clauses, then the two are balanced. How sharp it gets depends on the
group. If one action alone leads from a value to another (C_n), attention gets sharper with the vocabulary,
and what was learned at length 2 reaches far (Theorem 4.1). If many do (S_n), other clauses' actions help
along, training stops earlier, attention stays blurred by a constant, and the reach is a constant factor
(Theorem 5.1). A model can then write answers to chains twice as long, train on them, and so double its reach
again and again.

Read on: `tasks/groups.py`, `tasks/lego.py`, `models/clause_decoder.py` and `models/rollout.py` (the decoder
of Section 7), `learning.py`; for the theory `activation.py`, `one_step.py` (stage 1, values), `retrieval.py`
(stage 1, variables), `two_steps.py` (stage 2), `recursion.py` (Algorithm 2), `tensor_power.py`; `plain.py`,
`algorithms.py` and `gradients.py` (the whole of Definition 3.5, its training, and the paper's formulas, which
`identities.py` compares); `experiments.py` and `studies/`, `claims/`, `figures.py`; then `initial.py`,
`readings.py`.

Where the paper's print is off, the code carries the right formula. Its slips, once:
- (18b) has V(g') = +2B/n for actions outside the fibre; it must be negative, as (18c) and Lemma E.3 need.
  (18a) is a leading order: V(g) = C_alpha V(y) and
  V(g) + V(y) = 2B are exact. C_alpha of Theorem C.1 is C_Y of Definition C.6.
- The smooth ReLU of Definition 3.4 is called continuously differentiable; at -rho its slope jumps from 0 to
  -1. That of Assumption B.2 jumps at -w, where x^2/2 is half of -wx; the line is lowered here. Lemmas D.7 and
  E.7 hold for Definition 3.4 only.
- Algorithm 1 loops to T2, but its output is F^(T1+T2). Algorithm 2 trains the second answer alone, Algorithm
  1 both. (10a) has a stray i; Definition 5.1 calls
  the greedy model sampling.
- The gap of (20) is an absolute value, in Appendix D.5 it has a sign; here it has. Theorem D.1's proof has
  the gap of the first answer for that of the second.
- Induction D.2 lets stage 2.2 begin at 0.0001, below the 1/log d at which stage 2.1 ends. Lemma D.45 wants
  sigma0 << epsilon <= d^-1.01 at once.
- (12) with its constant 0.01 needs a clip of 127 by Lemma E.35; c1 there is half of what Induction E.2 and
  Lemma F.16 have. d^-E1 must stay above the least
  loss d^(1 - C_B).
- Fact B.1's indicator must be that of the target; Fact C.2(a) has slot 5 for slot 2; Definition C.7's gain
  has logit for 1 - logit; Claim A.1 has slot 2 for 1;
  Lemma B.5(a) gives log(d)/4 where each half must be log(d)/2. N(0, sigma0^2 I_d) stands for vectors of 5d.
- Section 5 says that symmetric groups have more distractors: of all actions 1/n have a given image in C_n and
  S_n alike. They are different tokens in S_n.
- Figure 1's text speaks of final answers and of all answers; here it is all answers, each its variable and
  its value.
Open in the paper, and our choices: 180 variables, embeddings and width of 128, an inner width of 256, no
layer norm, no skip of the asking clause (with it the second
band of Figure 2 is not there), 640 answers a batch, fresh data; at preset standard Adam at 2e-3 with a
cosine, 12000 steps for Figure 1a and 4000 before self-training, the same for both groups.
In the closed forms the clip is rounded over 0.05, and sizes d are up to 10^5.
"""

TITLE = "Transformers provably learn chain-of-thought reasoning with length generalization"
