"""Checks for traps of compiled programs, which warn by default; see the flag `checks`."""
