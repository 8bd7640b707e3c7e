"""The public functions that transform, compile, export and debug programs. Imports all layers below."""
