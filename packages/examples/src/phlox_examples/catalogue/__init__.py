"""The programs of ./train: what each is called, what it shows, how long it takes, and which options it has.

Imports only the standard library, so that ./train can list programs and reject misspelt options before it installs
anything. To add a program, write ``phlox_examples/<name with underscores>.py`` with ``run(options)``, and a row here.
"""

from __future__ import annotations

from . import science, training
from .rows import Option, Program

PROGRAMS = {program.name: program for program in (*training.PROGRAMS, *science.PROGRAMS)}

__all__ = ["PROGRAMS", "Option", "Program"]
