"""Mistakes, each in a line that says so: type checkers must find them, and nothing else (scripts/check-types)."""

import phlox
import phlox.numpy as jnp
import phlox_nn as nn
import phlox_optim as optim
from phlox import Array, lax, random

x = jnp.ones((2, 3))


def predict(weight: Array, x: Array) -> Array:
    return x @ weight


@phlox.jit
def step(weight: Array, x: Array) -> Array:
    slope: Array = phlox.grad(lambda w: predict(w, x).sum())(weight)
    return weight - slope


step(x)  # mistake: an argument is missing
step(x, x, x)  # mistake: an argument too many
step(x, y=x)  # mistake: there is no parameter of this name
step.lowr(x, x)  # mistake: misspelt
phlox.vmap(predict)(x)  # mistake: an argument is missing
phlox.value_and_grad(predict)(x, x, 3, 4)  # mistake: too many arguments
phlox.checkpoint(predict)(weigth=x, x=x)  # mistake: misspelt
x.smu()  # mistake: misspelt
x.at[0].sett(1)  # mistake: misspelt
x + "text"  # mistake: text is no operand
jnp.zeros((2, 3), dtyp="float32")  # mistake: misspelt
random.normal(random.key(0), shap=(2,))  # mistake: misspelt
jnp.sofmax(x)  # mistake: misspelt
jnp.linalg.slove(x, x)  # mistake: misspelt
phlox.jitt(predict)  # mistake: misspelt
phlox.nn.reluu(x)  # mistake: misspelt
phlox.scipy.special.gamaln(x)  # mistake: misspelt
phlox.scipy.stats.norm.logpdf(x, scal=2.0)  # mistake: misspelt
phlox.scipy.stats.gamma.cdf(x)  # mistake: the parameter of shape is missing
phlox.scipy.stats.norm.lgpdf(x)  # mistake: misspelt
lax.sacn(predict, x, x)  # mistake: misspelt
lax.sin(x, x)  # mistake: an argument too many
lax.add(x)  # mistake: an argument is missing
lax.cumsum(x, axs=0)  # mistake: misspelt
lax.reduce_max(x)  # mistake: an argument is missing
random.norml(random.key(0))  # mistake: misspelt
random.cauchy(random.key(0), shap=(2,))  # mistake: misspelt


def in_place(x: Array) -> Array:
    x[0] = 3.0  # mistake: arrays cannot be changed in place
    x[0] += 1  # mistake: arrays cannot be changed in place
    del x[1]  # mistake: arrays cannot be changed in place
    for row in x.flat:  # mistake: there is no such view
        print(row)
    return x.smu()  # mistake: misspelt; the lines above do not end the function


model = nn.Linear(2, 3)
tx = optim.adam(lr=1e-3)  # mistake: the parameter is called learning_rate
optim.sgd()  # mistake: the learning rate is missing
optim.adamw("fast")  # mistake: no number and no schedule
optim.chain(optim.clip(1.0), 0.1)  # mistake: no optimizer
training = optim.make_step(lambda params, batch: batch.sum(), 0.1)  # mistake: no optimizer
optim.fit(training.init({}), training, 3, epochs=1)  # mistake: a number is no source of batches
optim.fit(training.init({}), training, [x], epoch=1)  # mistake: misspelt
model.apply(3, x)  # mistake: no parameters
model.apply(model.init(random.key(0)), x, key=0)  # mistake: a seed is no key
