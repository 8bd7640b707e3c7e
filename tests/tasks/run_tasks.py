"""Runs tasks of a library, and writes their results: python run_tasks.py LIBRARY GPT2_FOLDER RESULTS TASK…"""

import importlib
import json
import os
import sys
import tempfile
from pathlib import Path

#: the tasks that begin with a folder of Hugging Face's form
GPT2_TASKS = ("load_weights", "generate")


def as_json(value):
    """An array as nested lists, a shape as a list."""
    return value.tolist() if hasattr(value, "tolist") else list(value)


def main(library, gpt2, file, *names):
    """Runs the tasks in their order, each with an empty folder or that of a small GPT-2."""
    tasks = importlib.import_module(f"{library}_tasks")
    results = {}
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            results[name] = getattr(tasks, name)(gpt2 if name in GPT2_TASKS else folder)
    # A process that Lightning starts for a further device has another rank.
    if os.environ.get("LOCAL_RANK", "0") == "0":
        Path(file).write_text(json.dumps(results, default=as_json))


if __name__ == "__main__":
    main(*sys.argv[1:])
