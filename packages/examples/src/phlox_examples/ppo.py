"""``./train ppo``: a cart learns to balance a pole, by proximal policy optimization.

A pole stands on a cart, and each 0.02 s the cart is pushed to the left or to the right by 10 N. An episode ends when
the pole leans by more than 12 degrees, when the cart has left its track, or after 500 steps; each step earns 1 (Barto,
Sutton, Anderson 1983). The policy is a network that says how probable each push is in a state.

A push was good if what was earned after it is more than what is usual in that state, which a second network, the
critic, learns. The advantage A is estimated by sums of the critic's errors d_t = 1 + g V(s_(t+1)) - V(s_t), which
fade, A_t = d_t + (g l) A_(t+1) (Schulman et al. 2015). Good pushes are made more probable, by steps that stop where
the ratio r of new and old probability leaves 1 +- 0.2 (Schulman et al. 2017):

    maximize the mean of min(r A, clip(r, 0.8, 1.2) A).

The carts are code like all else here. So `vmap` drives 64 of them, `scan` lets them run and trains on what has
happened, and a whole round is one compiled program, which no simulator outside of it interrupts.
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

import phlox
import phlox.numpy as jnp
import phlox_nn as nn
import phlox_optim as optim

from . import plots, report, results
from .errors import ProgramError
from .options import settings_of

NAME = "ppo"
GRAVITY, CART, POLE, HALF_LENGTH, PUSH, TIME = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
TRACK, LEAN, LONGEST = 2.4, np.deg2rad(12.0), 500
DISCOUNT, FADE, CLIP, ENTROPY = 0.99, 0.95, 0.2, 0.01
STEPS, PASSES, PARTS = 128, 4, 4  # of a round: steps of each cart, how often they are learnt, in how many batches

policy, critic = (nn.MLP((4, 64, 64, outputs), nn.tanh) for outputs in (2, 1))


class Cart(NamedTuple):
    """A cart: position, speed, angle of the pole and its speed (4,), and the number of steps of its episode."""

    state: Any
    age: Any


def placed(key: Any) -> Cart:
    """A cart at the beginning of an episode, nearly at rest in the middle."""
    return Cart(phlox.random.uniform(key, (4,), minval=-0.05, maxval=0.05), jnp.int32(0))


def pushed(state: Any, push: Any) -> Any:
    """The state after a step, for a push of 0 (left) or 1 (right)."""
    _, speed, angle, turning = state
    force = PUSH * (2.0 * push - 1.0)
    sin, cos = jnp.sin(angle), jnp.cos(angle)
    total = CART + POLE
    pressed = (force + POLE * HALF_LENGTH * turning**2 * sin) / total
    # The cart gives way to the falling pole.
    inertia = HALF_LENGTH * (4 / 3 - POLE * cos**2 / total)
    angular = (GRAVITY * sin - cos * pressed) / inertia
    linear = pressed - POLE * HALF_LENGTH * angular * cos / total
    return state + TIME * jnp.stack([speed, linear, turning, angular])


def step(cart: Cart, push: Any, key: Any) -> tuple[Cart, Any, Any]:
    """A step: the cart after it, which begins anew where the episode has ended; whether it fell; whether it ended."""
    state, age = pushed(cart.state, push), cart.age + 1
    fell = (jnp.abs(state[0]) > TRACK) | (jnp.abs(state[2]) > LEAN)
    ended = fell | (age >= LONGEST)
    new = phlox.tree.map(lambda begin, go_on: jnp.where(ended, begin, go_on), placed(key), Cart(state, age))
    return new, fell, ended


def advantages(values: Any, following: Any, fell: Any, ended: Any) -> Any:
    """A of each step (steps, carts), for values V of the states and of those that follow them."""

    def back(later: Any, row: Any) -> Any:
        value, next_value, fell, ended = row
        error = 1.0 + DISCOUNT * jnp.where(fell, 0.0, next_value) - value
        now = error + DISCOUNT * FADE * jnp.where(ended, 0.0, later)
        return now, now

    return phlox.lax.scan(back, jnp.zeros_like(values[0]), (values, following, fell, ended), reverse=True)[1]


def loss(params: Any, batch: dict[str, Any]) -> Any:
    """What a step of learning makes smaller: the policy's part, the critic's, and minus some entropy."""
    logs = nn.log_softmax(policy.apply(params["policy"], batch["state"]))
    ratio = jnp.exp(jnp.take_along_axis(logs, batch["push"][:, None], 1)[:, 0] - batch["log"])
    a = batch["advantage"]
    a = (a - a.mean()) / (a.std() + 1e-6)
    gain = jnp.minimum(ratio * a, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * a).mean()
    entropy = -(jnp.exp(logs) * logs).sum(1).mean()
    wrong = (critic.apply(params["critic"], batch["state"])[:, 0] - batch["target"]) ** 2
    return wrong.mean() / 2 - gain - ENTROPY * entropy


def driven(params: Any, carts: Cart, key: Any) -> tuple[Cart, dict[str, Any]]:
    """Lets all carts run for STEPS steps. Returns them, and what happened (steps, carts)."""

    def one(carts: Cart, key: Any) -> Any:
        push_key, begin_key = phlox.random.split(key)
        logs = nn.log_softmax(policy.apply(params["policy"], carts.state))
        push = phlox.random.categorical(push_key, logs)
        log = jnp.take_along_axis(logs, push[:, None], 1)[:, 0]
        after = phlox.vmap(pushed)(carts.state, push)
        new, fell, ended = phlox.vmap(step)(carts, push, phlox.random.split(begin_key, len(push)))
        happened = {"state": carts.state, "after": after, "push": push, "log": log, "fell": fell, "ended": ended}
        return new, {**happened, "age": carts.age + 1}

    return phlox.lax.scan(one, carts, phlox.random.split(key, STEPS))


def make_round(tx: Any) -> Any:
    """A round: carts run, and what happened is learnt. Also returns the number of ended episodes and their steps."""

    def learn(carry: Any, batch: Any) -> Any:
        params, state = carry
        value, gradient = phlox.value_and_grad(loss)(params, batch)
        updates, state = tx.update(gradient, state, params)
        return (optim.apply_updates(params, updates), state), value

    @phlox.jit
    def one_round(params: Any, state: Any, carts: Cart, key: Any) -> Any:
        run_key, order_key = phlox.random.split(key)
        carts, happened = driven(params, carts, run_key)

        def value(x: Any) -> Any:
            return critic.apply(params["critic"], x)[..., 0]

        values = value(happened["state"])
        a = advantages(values, value(happened["after"]), happened["fell"], happened["ended"])
        rows = {**{name: happened[name] for name in ("state", "push", "log")}, "advantage": a, "target": a + values}
        rows = phlox.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rows)

        def one_pass(carry: Any, key: Any) -> Any:
            order = phlox.random.permutation(key, len(rows["log"])).reshape(PARTS, -1)
            return phlox.lax.scan(learn, carry, phlox.tree.map(lambda x: x[order], rows))

        (params, state), _ = phlox.lax.scan(one_pass, (params, state), phlox.random.split(order_key, PASSES))
        ended = happened["ended"]
        return params, state, carts, ended.sum(), (ended * happened["age"]).sum()

    return one_round


def examine(params: Any, keys: Any) -> Any:
    """The returns of an episode for each key, in which the more probable push is made; and their paths."""

    def episode(key: Any) -> Any:
        def go(carry: Any, _: Any) -> Any:
            state, alive = carry
            state = pushed(state, policy.apply(params["policy"], state).argmax())
            alive = alive & (jnp.abs(state[0]) <= TRACK) & (jnp.abs(state[2]) <= LEAN)
            return (state, alive), (alive, state)

        _, (alive, path) = phlox.lax.scan(go, (placed(key).state, jnp.bool_(True)), length=LONGEST)
        # The step that ends an episode earns 1 as well.
        return jnp.minimum(alive.sum() + 1, LONGEST), path

    return phlox.vmap(episode)(keys)


def train(options: argparse.Namespace) -> dict[str, Any]:
    """The returns of each round, and those of the examination in the end."""
    keys = phlox.random.split(phlox.random.key(options.seed), 5)
    params = {"policy": policy.init(keys[0]), "critic": critic.init(keys[1])}
    total = options.rounds * PASSES * PARTS
    tx = optim.chain(optim.clip_by_global_norm(0.5), optim.adam(optim.linear_schedule(options.learning_rate, 0, total)))
    state, one_round = tx.init(params), make_round(tx)
    carts = phlox.vmap(placed)(phlox.random.split(keys[2], options.carts))
    look = phlox.jit(examine)
    exam = phlox.random.split(keys[4], 100)
    before, _ = look(params, exam)
    rows, returns = [], float("nan")
    with report.progress("Rounds", options.rounds) as shown:
        shown.row("round", "     steps", "mean return")
        for number in shown.counted(range(options.rounds)):
            key = phlox.random.fold_in(keys[3], number)
            params, state, carts, episodes, steps = one_round(params, state, carts, key)
            # In a round no episode may end; those that run are then at least as long as the last that did.
            returns = float(steps) / int(episodes) if int(episodes) else returns
            if not np.isfinite(np.asarray(params["policy"]["layers"]["0"]["weight"])).all():
                raise ProgramError("the network has become infinite: choose a smaller --learning-rate", status=1)
            rows.append({"steps": (number + 1) * STEPS * options.carts, "return": returns})
            if (number + 1) % max(1, options.rounds // 10) == 0:
                shown.row(str(number + 1), f"{rows[-1]['steps']:,}", f"{returns:.1f}")
    after, paths = look(params, phlox.random.clone(exam))  # from the same states as before
    return {"rounds": rows, "before": np.asarray(before), "after": np.asarray(after), "paths": np.asarray(paths)}


def draw(result: dict[str, Any], title: str) -> Figure:
    """The returns over the training, those of the examination, and some of its episodes."""
    figure = plots.figure(title, (12, 4.8))
    left, middle, right = figure.subplots(1, 3)
    steps = [row["steps"] / 1000 for row in result["rounds"]]
    left.plot(steps, [row["return"] for row in result["rounds"]], color=plots.BLUE, linewidth=2)
    left.axhline(LONGEST, color=plots.GREY, linewidth=1, linestyle="--")
    left.set(title="Return of episodes in training", xlabel="thousand steps of carts", ylim=(0, 530))
    plots.tidy(left)
    edges = np.linspace(0, LONGEST, 26)
    for name, label, color in (("before", "before", plots.GREY), ("after", "after", plots.ORANGE)):
        middle.hist(result[name], edges, color=color, alpha=0.7, label=f"{label}: mean {result[name].mean():.0f}")
    middle.set(title="100 episodes without chance", xlabel="return")
    middle.legend(frameon=False, loc="upper center")
    middle.spines[["top", "right"]].set_visible(False)
    times = TIME * np.arange(1, LONGEST + 1)
    for path, earned in zip(result["paths"][:5], result["after"][:5], strict=True):
        right.plot(times[:earned], np.rad2deg(path[:earned, 2]), linewidth=1)
    right.set(title="The pole in five of them", xlabel="seconds", ylabel="degrees", ylim=(-12, 12))
    plots.tidy(right)
    return figure


def run(options: argparse.Namespace) -> None:
    """Trains, examines, and draws."""
    settings = settings_of(options)
    results.make_folder(options.out, "--out")
    result = train(options)
    before, after = (float(result[name].mean()) for name in ("before", "after"))
    title = f"A pole is balanced for {after:.0f} of {LONGEST} steps; untrained, for {before:.0f}"
    contents = {"settings": settings, "rounds": result["rounds"], "return_before": before, "return_after": after}
    written = results.write(options, contents, draw(result, title))
    report.show(f"Mean return of 100 episodes: {after:.1f}. Wrote {' and '.join(written)}.")
