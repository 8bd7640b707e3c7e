"""Pages of the reference, one for each public module, and the ranks of pages in the search (a hook of mkdocs.yml).

The pages of the reference are not files of the repository: which modules are public, and what each of them shows, is
read from the packages, so a new name is on its page without a second list.
"""

import importlib
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from public_modules import public_modules

#: The names of each module that its page was made for. While pages are made some modules get further ones.
LISTED: dict[str, list[str]] = {}
PACKAGES = ("phlox", "phlox_nn", "phlox_models", "phlox_optim", "phlox_data", "phlox_compat", "phlox_examples")

#: Ranks of pages in the search, by the first pattern that their path matches: a factor of their score, or None for
#: pages that the search leaves out. Other pages have 1.
RANKS: list[tuple[str, float | None]] = [
    (r"tutorial/|guides/|from/|(index|installing|settings|debugging)\.md", 4),
    (r"api/phlox(_nn|_models|_optim|_data|\.numpy|\.lax|\.random|\.nn|\.tree|\.sharding)?\.md", 2),
    (r"api/phlox_examples|api/phlox_compat\.(example_libraries|jax_internals)", None),
    (r"notes/|(primitives|corners|special-functions|conformance|random-programs)\.md", None),
    (r"(from-nothing|tour|decisions|new-primitive|optax|performance|networks|libraries|scaling)\.md", 0.2),
    (r"api/(phlox_compat|phlox\.(extend|core|custom_batching|experimental|export))", 0.5),
]

#: Words that people type for a page whose headings do not have them. The search ranks such a page first.
WORDS = {
    "api/phlox_nn.md": "layers convolution dropout attention embedding normalization",
    "guides/data.md": "dataloader dataset batches shuffle",
    "guides/devices.md": "multi gpu distributed sharding data parallel",
    "guides/models.md": "hugging face transformers llama gpt bert generate pretrained weights safetensors tokenizer",
    "guides/performance.md": "slow profile benchmark recompilation",
    "guides/training.md": "fit train optimizer learning rate schedule early stopping gradient clipping",
    "tutorial/04-grad.md": "gradient derivative backpropagation",
    "tutorial/05-vmap.md": "vectorize batch",
    "tutorial/06-control-flow.md": "scan loop condition pytree",
    "tutorial/10-saving-debugging.md": "save load checkpoint nan print",
}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Imports all public modules, as mkdocstrings reads those that are imported, and lists their pages."""
    for package in PACKAGES:
        for name in names(package):
            importlib.import_module(name)
    for entry in config.nav or []:
        if "Reference" in entry:
            groups = [{package: [f"api/{name}.md" for name in names(package)]} for package in PACKAGES]
            entry["Reference"] = ["api/index.md", *groups]
    return config


def names(package: str) -> list[str]:
    """The public modules of a package; the one that only starts a program is not for importing."""
    found = (name for name in public_modules() if name.split(".")[0] == package)
    return sorted(name for name in found if not name.endswith("__main__"))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages."""
    modules = [name for package in PACKAGES for name in names(package)]
    LISTED.update((name, public_names(sys.modules[name])) for name in modules)
    pages = {f"api/{name}.md": page(sys.modules[name]) for name in modules}
    pages["api/index.md"] = overview(modules)
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> None:
    """Sets the rank of the page and its further words in the search."""
    if words := WORDS.get(page.file.src_uri):
        page.meta["tags"] = words.split()
    for pattern, rank in RANKS:
        if re.match(pattern, page.file.src_uri):
            page.meta["search"] = {"exclude": True} if rank is None else {"boost": rank}
            return


def on_post_build(config: MkDocsConfig) -> None:
    """Raises if a public name is missing: a part of mkdocstrings leaves out what it cannot read, without a word."""
    missing = []
    for module, entries in LISTED.items():
        text = (Path(config.site_dir) / "api" / f"{module}.html").read_text(encoding="utf-8")
        for entry in entries:
            shown = f'id="{module}.{entry}"' in text or f"<code>{entry}</code>" in text
            if not (shown or entry.startswith("__") or inspect.ismodule(getattr(sys.modules[module], entry))):
                missing.append(f"{module}.{entry}")
    if missing:
        raise PluginError(f"the reference lacks {len(missing)} public names: {', '.join(missing[:20])}")


def overview(modules: list[str]) -> str:
    """The first page of the reference: all modules with the first line of their docstrings."""
    rows = []
    for name in modules:
        first = (sys.modules[name].__doc__ or "").strip().split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
        rows.append(
            f"| [`{name}`]({name}.md) | {first.removeprefix(f'``{name}``:').removeprefix(f'{name}:').strip()} |"
        )
    imports = "`import phlox`, `import phlox.numpy as jnp` and `import numpy as np`"
    begin = f"All public modules. Examples assume {imports}; the other names in them are those of their module."
    return "\n".join(["# Reference", "", begin, "", "| module | what it has |", "|---|---|", *rows, ""])


def public_names(module: ModuleType) -> list[str]:
    """The names a module shows: those of `__all__`, else those without a leading underscore."""
    listed = getattr(module, "__all__", None)
    if not listed:
        named = module.__dir__() if "__dir__" in vars(module) else vars(module)
        listed = [name for name in named if not name.startswith("_")]
    return sorted(listed, key=str.lower)


def page(module: ModuleType) -> str:
    """The page of one module: what phlox defines with its docstring, the rest in a list that says whose it is."""
    name = module.__name__
    options = ["      members: false", "      show_root_heading: false", "      show_root_toc_entry: false"]
    lines = [f"# {name}", "", f"::: {name}", "    options:", *options, ""]
    others = []
    for entry in public_names(module):
        value = getattr(module, entry)
        if inspect.ismodule(value) or entry.startswith("__"):
            continue
        home = home_of(value)
        # The copy of optax has its own documentation, and is loaded in a way that cannot be read without importing it.
        ours = home.startswith("phlox") and ".adopted." not in home
        if ours and (inspect.isclass(value) or inspect.isroutine(value)):
            lines += [f"::: {name}.{entry}", ""]
        else:
            others.append(f"- `{entry}`: {kind(value)}")
    if others:
        lines += ["## Other names", "", *others, ""]
    return "\n".join(lines)


def home_of(value: object) -> str:
    """The module in which the value is written, also where it is wrapped."""
    inner = inspect.unwrap(value) if callable(value) else value
    return getattr(inner, "__module__", None) or ""


def kind(value: object) -> str:
    """What a name without a docstring of phlox's own stands for."""
    if isinstance(value, type) and not value.__module__.startswith("phlox"):
        return f"`{value.__module__}.{value.__qualname__}`"
    own = inspect.getdoc(value)
    optax = ".adopted." in home_of(value)
    if own and own != type(value).__doc__ and (optax or not isinstance(value, type)):
        return own.strip().split("\n\n")[0].replace("\n", " ")
    if isinstance(value, str | int | float | complex | bool | None | type(...)):
        return f"`{value!r}`"
    return f"`{type(value).__name__}`"
