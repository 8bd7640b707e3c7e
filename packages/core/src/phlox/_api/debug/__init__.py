"""Inspection of running programs, and calls of Python and foreign functions from programs."""
