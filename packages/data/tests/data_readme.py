"""The Python snippets of the README."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def snippets(*words):
    """Those that contain one of `words`, in order; all without words."""
    found = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    chosen = [text for text in found if not words or any(word in text for word in words)]
    assert chosen, f"{README} has no snippet with {words}"
    return chosen


def run(*words):
    """Runs those snippets one after the other, as one program; returns its names."""
    names = {}
    for text in snippets(*words):
        exec(compile(text, str(README), "exec"), names)
    return names
