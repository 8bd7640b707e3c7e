"""jraph: graphs, networks of graphs, batches."""

import jax
import jax.numpy as jnp
import jraph
from common import show

graph = jraph.GraphsTuple(
    nodes=jnp.arange(6.0).reshape(3, 2),
    edges=jnp.ones((4, 1)),
    senders=jnp.array([0, 1, 2, 0]),
    receivers=jnp.array([1, 2, 0, 2]),
    n_node=jnp.array([3]),
    n_edge=jnp.array([4]),
    globals=jnp.zeros((1, 1)),
)
net = jraph.GraphNetwork(
    update_edge_fn=lambda e, s, r, g: e + s.sum(-1, keepdims=True),
    update_node_fn=lambda n, s, r, g: n + r,
    update_global_fn=lambda n, e, g: g + n.sum(-1, keepdims=True),
)
show("network", jax.jit(net)(graph))
show("gcn", jraph.GraphConvolution(lambda n: n * 2, add_self_edges=True)(graph).nodes)
show("gat", jraph.GAT(lambda n: n, lambda s, r, e: (s * r).sum(-1, keepdims=True), lambda n: n)(graph).nodes)
batch = jraph.batch([graph, graph])
show("batch", batch.nodes, batch.senders, [g.nodes for g in jraph.unbatch(batch)])
padded = jraph.pad_with_graphs(batch, 8, 10, 3)
show("padded", padded.nodes, jraph.get_node_padding_mask(padded))
show(
    "segments",
    jraph.segment_softmax(jnp.arange(4.0), jnp.array([0, 0, 1, 1]), 2),
    jraph.segment_mean(jnp.arange(4.0), jnp.array([0, 0, 1, 1]), 2),
)
show("grad", jax.grad(lambda n: net(graph._replace(nodes=n)).globals.sum())(graph.nodes))
