"""The programs that compute: physics, statistics and mathematics."""

from __future__ import annotations

from .rows import Program

PROGRAMS: tuple[Program, ...] = ()
