"""Which processes of a distributed program are alive, and whether one of them has been told to end (preempted).

Both are known to the service to which all processes are connected (see `distributed`).
"""

from __future__ import annotations

import atexit
from collections.abc import Iterable
from typing import Any

from .._base.native import native
from .distributed import distributed_state

#: the client of the connection, and the synchronizer of the processes
_manager: tuple[Any, Any] | None = None


def is_last_step(step: int) -> bool:
    """Whether all processes are at the step after which they end, because one of them was told to (by SIGTERM).

    The first call begins to listen for the signal.
    """
    global _manager
    state = distributed_state()
    if state is None:
        return False
    # After `shutdown` and another `initialize` there is a new client.
    if _manager is None or _manager[0] is not state.client:
        manager = native.create_preemption_sync_manager()
        manager.initialize(state.client)
        _manager = state.client, manager
        # Functions registered last are called first: this one before the connection is closed.
        atexit.register(forget)
    reached: bool = _manager[1].reached_sync_point(step)
    return reached


def forget() -> None:
    """Ends what `is_last_step` has begun."""
    global _manager
    if _manager is not None:
        _manager[1].shutdown()
        _manager = None


def alive(processes: Iterable[int]) -> dict[int, int] | None:
    """The numbers of those of these processes that are alive, with a number that changes when one is restarted.

    Waits until all that are alive have called it, and gives them equal results. None without other processes.
    """
    state = distributed_state()
    if state is None:
        return None
    incarnations: dict[int, int] = state.client.get_live_nodes(sorted(set(processes)))
    return incarnations
