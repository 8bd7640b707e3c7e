"""rax: losses and metrics of ranking."""

import jax
import jax.numpy as jnp
import rax
from common import show

scores = jnp.array([[2.2, -1.3, 5.4, 0.2], [1.9, 0.1, 0.7, 0.9]])
labels = jnp.array([[1.0, 0.0, 2.0, 0.0], [0.0, 0.0, 1.0, 3.0]])
where = jnp.array([[True, True, True, False], [True, True, True, True]])
for name in (
    "softmax_loss",
    "listmle_loss",
    "poly1_softmax_loss",
    "pointwise_mse_loss",
    "pairwise_hinge_loss",
    "pairwise_logistic_loss",
    "pairwise_mse_loss",
    "pointwise_sigmoid_loss",
):
    function = getattr(rax, name)
    show(name, function(scores, labels, where=where), jax.grad(lambda s: function(s, labels, where=where))(scores))
for name in ("ndcg_metric", "mrr_metric", "dcg_metric", "ap_metric", "precision_metric", "recall_metric", "opa_metric"):
    show(name, jax.jit(getattr(rax, name))(scores, labels, where=where))
show("top 2", rax.ndcg_metric(scores, labels, topn=2), rax.dcg_metric(scores, labels, topn=3))
show("utilities", rax.utils.ranks(scores), rax.utils.sort_by(scores, [labels]))
