"""``./train matrix-factorization``: who would like what, from few ratings, by alternating least squares over devices.

A table R has a row for each user and a column for each item, and few of its entries are known. Supposed that taste has
few dimensions, R is nearly U V^T with thin matrices U and V, which minimize

    sum over known (i, j) of (R_ij - u_i . v_j)^2  +  c (|U|^2 + |V|^2).

With V fixed this is a small least-squares problem for each user, and with U fixed one for each item, both solved
exactly in turns: no step increases the sum (Zhou et al. 2008).

Users are spread over the devices, with their rows of R and U; V is on each of them. So the users' problems need nobody
else. An item's normal equations are sums over users,

    (sum of u_i u_i^T + c) v_j = sum of R_ij u_i,

of which each device has a part: `phlox.shard_map` runs the program on the part of each device, and `lax.psum` adds the
parts up. One device and eight must find the same numbers, up to the rounding of sums in another order.

The ratings are made from tastes that are known here, with noise: so is the error that the best guess must have.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import phlox
import phlox.numpy as jnp
from phlox.sharding import Mesh, NamedSharding, PartitionSpec as P

from . import plots, report, results
from .data_parallel import find_devices
from .errors import ProgramError
from .options import settings_of

NAME = "matrix-factorization"
NOISE = 0.5  # deviation of the ratings
DECAY = NOISE**2  # c: by Bayes' theorem, for tastes of variance 1
KNOWN, HIDDEN = 0.15, 0.05  # shares of the ratings
TOLERANCE = 1e-9


def ratings(options: argparse.Namespace) -> tuple[Any, Any, Any]:
    """All ratings (users, items), which of them are known, and which are hidden for the test."""
    random = np.random.default_rng(options.seed)
    users = random.standard_normal((options.users, options.rank))
    items = random.standard_normal((options.items, options.rank))
    table = users @ items.T + NOISE * random.standard_normal((options.users, options.items))
    chance = random.uniform(size=table.shape)
    return table, chance < KNOWN, chance > 1 - HIDDEN


def solved(features: Any, table: Any, known: Any, add: Any) -> Any:
    """The least-squares solution of each row of `table`, for `features` of its columns; `add` sums over devices."""
    products = add(jnp.einsum("nm,mr,ms->nrs", known, features, features))
    targets = add(jnp.einsum("nm,mr->nr", known * table, features))
    return jnp.linalg.solve(products + DECAY * jnp.eye(features.shape[1]), targets[..., None])[..., 0]


def factorize(devices: list[phlox.Device], options: argparse.Namespace) -> dict[str, Any]:
    """U and V, and for each round the loss and the errors of known and of hidden ratings."""
    table, known, hidden = ratings(options)
    mesh = Mesh(np.array(devices), ("users",))
    over_users, everywhere = P("users"), P()

    def rounds(table: Any, known: Any, hidden: Any, items: Any) -> Any:
        def add(part: Any) -> Any:
            return phlox.lax.psum(part, "users")

        def one(items: Any, _: Any) -> Any:
            users = solved(items, table, known, lambda part: part)
            items = solved(users, table.T, known.T, add)
            squares = (table - users @ items.T) ** 2
            loss = add((known * squares).sum() + DECAY * (users**2).sum()) + DECAY * (items**2).sum()
            errors = [jnp.sqrt(add((some * squares).sum()) / add(some.sum())) for some in (known, hidden)]
            return items, (loss, *errors)

        items, curves = phlox.lax.scan(one, items, length=options.rounds)
        return solved(items, table, known, lambda part: part), items, curves

    program = phlox.jit(
        phlox.shard_map(
            rounds, mesh=mesh, in_specs=(over_users, over_users, over_users, everywhere),
            out_specs=(over_users, everywhere, everywhere),
        )
    )  # fmt: skip

    def place(x: Any) -> Any:
        return phlox.device_put(jnp.asarray(x, float), NamedSharding(mesh, over_users))

    start = phlox.random.normal(phlox.random.key(options.seed), (options.items, options.rank))
    start = phlox.device_put(start, NamedSharding(mesh, everywhere))
    users, items, curves = program(place(table), place(known), place(hidden), start)
    loss, train, test = map(np.asarray, curves)
    return {"users": np.asarray(users), "items": np.asarray(items), "loss": loss, "train": train, "test": test}


def expected_error(options: argparse.Namespace) -> float:
    """About the error of the best guess of hidden ratings: the noise, and what is unknown of the tastes.

    Each of r numbers of a user is known from KNOWN * items ratings, up to NOISE^2 / (KNOWN * items), and likewise for
    items: Cramer and Rao's bound, with features of variance 1.
    """
    known_of_user, known_of_item = KNOWN * options.items, KNOWN * options.users
    return NOISE * float(np.sqrt(1 + options.rank / known_of_user + options.rank / known_of_item))


def compute(options: argparse.Namespace) -> dict[str, Any]:
    """The same factorization on one device and on several, and by how much they differ."""
    devices = find_devices(options.devices)
    with phlox.enable_x64(True), report.progress("Factorizing", 2) as shown:
        one = factorize(devices[:1], options)
        next(shown.counted([None]))
        several = factorize(devices, options)
        next(shown.counted([None]))
        shown.row("round", "loss on 1 device", f"loss on {options.devices}", "hidden ratings")
        for number in range(0, options.rounds, max(1, options.rounds // 10)):
            losses = (f"{run['loss'][number]:.6f}" for run in (one, several))
            shown.row(str(number + 1), *losses, f"{several['test'][number]:.4f}")
    return {"one": one, "several": several, "table": ratings(options)[0]}


def difference(result: dict[str, Any]) -> float:
    """The largest relative difference of any loss of the two runs."""
    one, several = result["one"]["loss"], result["several"]["loss"]
    return float(np.abs(several / one - 1).max())


def draw(result: dict[str, Any], options: argparse.Namespace, title: str) -> Figure:
    """The errors over rounds, the difference of the runs, and guesses beside ratings."""
    figure = plots.figure(title, (12, 4.8))
    left, middle, right = figure.subplots(1, 3)
    rounds = np.arange(1, options.rounds + 1)
    for name, label, color in (("train", "known", plots.BLUE), ("test", "hidden", plots.ORANGE)):
        plots.curve(left, rounds, result["several"][name], color, label)
    left.axhline(
        expected_error(options), color=plots.GREY, linewidth=1, linestyle="--", label="expected of hidden ones"
    )
    left.set(title="Error of ratings", xlabel="round", ylim=(0, None))
    left.legend(frameon=False)
    plots.part_names(left)
    one, several = result["one"]["loss"], result["several"]["loss"]
    change = np.abs(several / one - 1)
    middle.semilogy(rounds, np.maximum(change, 1e-17), "o-", color=plots.GREY)
    middle.axhline(TOLERANCE, color="black", linewidth=1)
    middle.set(title=f"Loss on 1 and on {options.devices} devices", xlabel="round", ylabel="relative difference")
    middle.set(ylim=(1e-17, 1e-7))
    plots.tidy(middle)
    guess = (result["several"]["users"] @ result["several"]["items"].T).ravel()
    some = np.random.default_rng(0).permutation(guess.size)[:3000]
    right.plot(guess[some], result["table"].ravel()[some], ".", color=plots.BLUE, markersize=2, alpha=0.5)
    right.axline((0, 0), slope=1, color=plots.GREY, linewidth=1)
    right.set(title="3000 of all ratings", xlabel="guess", ylabel="rating")
    plots.tidy(right)
    return figure


def run(options: argparse.Namespace) -> None:
    """Factorizes on one device and on several, and draws."""
    settings = settings_of(options)
    results.make_folder(options.out, "--out")
    result = compute(options)
    apart, error = difference(result), float(result["several"]["test"][-1])
    same = apart <= TOLERANCE
    devices = f"{options.devices} devices" if options.devices > 1 else "1 device"
    title = f"Factors on 1 device and on {devices} {'are the same' if same else 'DIFFER'}, to {apart:.0e}"
    contents = {
        "settings": settings,
        "losses": {name: result[name]["loss"].tolist() for name in ("one", "several")},
        "test_error": error,
        "expected_error": expected_error(options),
        "largest_difference": apart,
    }
    written = results.write(options, contents, draw(result, options, title))
    report.show(f"Hidden ratings are guessed up to {error:.3f}. Wrote {' and '.join(written)}.")
    if not same:
        raise ProgramError(f"the losses differ by {apart:.1e}, which is more than {TOLERANCE:.0e}", status=1)
