"""The flags `logging_level` and `debug_log_modules`: which loggers write to stderr, and from which level on."""

from __future__ import annotations

import logging
import sys

#: the loggers whose levels were changed, and their former levels
_former: list[tuple[logging.Logger, int]] = []
_handler = logging.StreamHandler(sys.stderr)
_handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))


def set_levels(own_name: str, level: str | None, modules: str | None) -> None:
    """Undoes what the last call did; sets a level for all messages, and DEBUG for those of modules "a,b".

    `own_name` is the name of the logger of all messages of phlox.
    """
    while _former:
        logger, former = _former.pop()
        logger.removeHandler(_handler)
        logger.setLevel(former)
    if level is not None and level != "NOTSET":
        _set_level(own_name, level)
        _set_level("jaxlib", level)
    for name in filter(None, (modules or "").split(",")):
        # All messages of phlox have one logger, whichever module of jax would write them.
        _set_level(own_name if name.split(".")[0] in ("jax", "phlox") else name, "DEBUG")


def _set_level(name: str, level: str) -> None:
    logger = logging.getLogger(name)
    _former.append((logger, logger.level))
    logger.addHandler(_handler)
    logger.setLevel(level)
