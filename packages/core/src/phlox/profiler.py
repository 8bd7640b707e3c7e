"""``phlox.profiler``: records what a program does and when, and what its memory is used for, as ``jax.profiler`` does.

Recording is done by XLA's profiler; this module starts and stops it, and names what it shows. TensorBoard's profiler
plugin (xprof) and Perfetto show the result. Nothing of this module runs in programs that do not import it.
"""

from __future__ import annotations

import gzip
import json
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ._base import monitoring
from ._base.docstrings import docs_from
from ._base.errors import ArgumentError, OptionError, RefusedError
from ._base.public_names import publish
from ._base.wrapping import wraps
from ._xla import profiling
from ._xla.profiling import ProfileData, ProfileEvent, ProfileLine, ProfilePlane, profiler

__all__ = [
    "ProfileData",
    "ProfileEvent",
    "ProfileLine",
    "ProfileOptions",
    "ProfilePlane",
    "ProfileSession",
    "StepTraceAnnotation",
    "TraceAnnotation",
    "annotate_function",
    "device_memory_profile",
    "export_profile_data",
    "register_subprocess",
    "save_device_memory_profile",
    "start_server",
    "start_trace",
    "stop_server",
    "stop_trace",
    "trace",
]


class ProfileOptions(profiler.ProfileOptions):  # type: ignore[misc]
    """What is recorded: attributes to be set before it is given to `trace`.

    Attributes:
      host_tracer_level: detail of what the runtime does on the host: 0 nothing, 1 only annotations of users, 2 also
        the important parts of XLA's runtime (the default), 3 all parts.
      python_tracer_level: 1 records all calls of Python functions (the default), 0 none. Recording them makes Python
        slower, by up to several times.
      enable_hlo_proto: whether the compiled programs are part of the recording, with the names of `named_scope` and the
        lines of the user's program of each operation. True by default.
      duration_ms: milliseconds after which recording ends by itself; 0 for never.
      session_id: name of the folder of this recording; empty for the time of day.
      advanced_configuration: a dict of further options of XLA's profiler for some platforms.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> options = ProfileOptions()
    >>> options.python_tracer_level = 0
    >>> with trace(folder, profiler_options=options):
    ...     _ = jnp.arange(3) + 1
    """


class TraceAnnotation(profiler.TraceMe):  # type: ignore[misc]
    """A context that appears under a name in the recording, with the time that it took.

    Args:
      name: the name that is shown.
      **kwargs: further data that is shown with it: strings or numbers.

    >>> with TraceAnnotation("loading", examples=3):
    ...     batch = jnp.ones((3, 2))
    """


class StepTraceAnnotation(TraceAnnotation):
    """As `TraceAnnotation`, for one step of training: TensorBoard shows the times of steps side by side.

    Args:
      name: the name that is shown.
      **kwargs: further data; ``step_num`` is the number of the step.

    >>> for step in range(2):
    ...     with StepTraceAnnotation("train", step_num=step):
    ...         weights = jnp.ones(3)
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        super().__init__(name, _r=1, **kwargs)


class ProfileSession:
    """A recording of what this process and its devices do, from `start` to `stop`, or inside of ``with``.

    Args:
      log_dir: the folder for recordings, as TensorBoard's ``--logdir``. It and its parents are made. Each recording
        goes to a folder of its own, ``log_dir/plugins/profile/<time>``. None: the recording stays in memory.
      create_perfetto_link: True: `stop` prints an address that shows the recording in Perfetto, and waits until it is
        opened in a browser on this machine.
      create_perfetto_trace: True: `stop` also writes ``perfetto_trace.json.gz``, which https://ui.perfetto.dev opens.
      profiler_options: what is recorded; None for all.

    >>> with ProfileSession() as session:
    ...     _ = phlox.jit(jnp.sin)(1.0).block_until_ready()
    >>> "/host:CPU" in [plane.name for plane in session.profile_data.planes]
    True
    """

    def __init__(
        self,
        log_dir: os.PathLike[str] | str | None = None,
        create_perfetto_link: bool = False,
        create_perfetto_trace: bool = False,
        profiler_options: ProfileOptions | None = None,
    ) -> None:
        self.log_dir = None if log_dir is None else os.fspath(log_dir)
        self.create_perfetto_link = create_perfetto_link
        self.create_perfetto_trace = create_perfetto_trace or create_perfetto_link
        self.profiler_options = ProfileOptions() if profiler_options is None else profiler_options
        #: XLA's session; it also writes what it has recorded
        self._native: Any = None
        self._content: bytes | None = None

    def start(self) -> ProfileSession:
        """Begins to record, and returns the session.

        Raises:
          RefusedError: a recording is being made already.
        """
        global _session
        with _lock:
            if _session is not None:
                where = "in memory" if _session.log_dir is None else f"into {_session.log_dir!r}"
                raise RefusedError(
                    f"profiler: profile has already been started, {where}",
                    instead="stop_trace() before it; a process makes one recording at a time",
                )
            profiler.clear_metadata()
            profiler.set_metadata("platform_version", profiling.start_clients())
            self._native, self._content = profiler.ProfilerSession(self.profiler_options), None
            _session = self
            monitoring.annotation = TraceAnnotation
        return self

    def stop(self) -> ProfileData:
        """Ends the recording, writes it to the folder, if there is one, and returns what was recorded.

        Raises:
          RefusedError: no recording is being made.
        """
        global _session
        with _lock:
            if not self.is_running:
                raise RefusedError("profiler: no profile started", instead="start_trace(folder) before it")
            _session = None
            monitoring.annotation = None
            self._content = self._native.stop()
            profiler.clear_metadata()
        if self.log_dir is not None:
            self.export_profile_data(self.log_dir, self.create_perfetto_link, self.create_perfetto_trace)
        return ProfileData.from_serialized_xspace(self._content)

    def export_profile_data(
        self,
        log_dir: os.PathLike[str] | str,
        create_perfetto_link: bool = False,
        create_perfetto_trace: bool = False,
        session_id: str | None = None,
    ) -> None:
        """Writes what was recorded: the function `export_profile_data` for this session."""
        if self._content is None:
            why = "is still running" if self.is_running else "has not run"
            raise RefusedError(f"export_profile_data: the session {why}", instead="stop() before it")
        session_id = session_id or self.profiler_options.session_id
        folder = profiling.write(self._native, self._content, os.fspath(log_dir), session_id)
        if create_perfetto_trace or create_perfetto_link:
            path = _write_for_perfetto(folder)
            if create_perfetto_link:
                _offer_to_perfetto(path)

    @property
    def is_running(self) -> bool:
        """Whether the session records now."""
        return _session is self

    @property
    def profile_data(self) -> ProfileData | None:
        """What was recorded; None before the end."""
        return None if self._content is None else ProfileData.from_serialized_xspace(self._content)

    def __enter__(self) -> ProfileSession:
        return self.start()

    def __exit__(self, *_: Any) -> None:
        if self.is_running:
            self.stop()


#: the session that records now: XLA makes one recording at a time in a process
_session: ProfileSession | None = None
_server: Any = None
_lock = threading.Lock()


def start_trace(
    log_dir: os.PathLike[str] | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> ProfileSession:
    """Begins to record what this process and its devices do, until `stop_trace` is called.

    Args:
      log_dir: as for `ProfileSession`.
      create_perfetto_link: as for `ProfileSession`.
      create_perfetto_trace: as for `ProfileSession`.
      profiler_options: as for `ProfileSession`.

    Returns:
      The `ProfileSession`.

    Raises:
      RefusedError: a recording is being made already.

    >>> import tempfile
    >>> session = start_trace(tempfile.mkdtemp())
    >>> y = jnp.arange(3) + 1
    >>> data = stop_trace()
    """
    return ProfileSession(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options).start()


def stop_trace() -> ProfileData:
    """Ends the recording that `start_trace` began, and writes it to the folder given there.

    Files ``<host>.xplane.pb`` (for TensorBoard) and ``<host>.trace.json.gz`` (Chrome's format, of which Perfetto's file
    is a copy) are written.

    Returns:
      What was recorded, a `ProfileData`.

    Raises:
      RefusedError: no recording is being made.

    >>> import tempfile
    >>> session = start_trace(tempfile.mkdtemp(), create_perfetto_trace=True)
    >>> data = stop_trace()
    """
    session = _session
    if session is None:
        raise RefusedError("stop_trace: no profile started", instead="start_trace(folder) before it")
    return session.stop()


@docs_from(start_trace)
def trace(
    log_dir: os.PathLike[str] | str | None = None,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> ProfileSession:
    """A context that is recorded: `start_trace` before it, `stop_trace` after it, also after an error.

    Devices run while Python goes on: use ``block_until_ready`` inside of the context, or the end may be missing.

    Returns:
      A context manager, whose value is the `ProfileSession`.

    >>> import tempfile
    >>> with trace(tempfile.mkdtemp()):
    ...     _ = phlox.jit(jnp.sin)(1.0).block_until_ready()
    """
    return ProfileSession(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)


def export_profile_data(
    profile_data: ProfileSession,
    log_dir: os.PathLike[str] | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    session_id: str | None = None,
) -> None:
    """Writes a recording that was kept in memory.

    Args:
      profile_data: a `ProfileSession` that has ended. A `ProfileData` is refused: it cannot be written.
      log_dir: as for `ProfileSession`.
      create_perfetto_link: as for `ProfileSession`.
      create_perfetto_trace: as for `ProfileSession`.
      session_id: the name of the folder of this recording; None: that of the options, or the time of day.

    Raises:
      RefusedError: the session has not ended.
      ArgumentError: `profile_data` is no `ProfileSession`.

    >>> import tempfile
    >>> with ProfileSession() as session:
    ...     _ = jnp.arange(3) + 1
    >>> export_profile_data(session, tempfile.mkdtemp())
    """
    if not isinstance(profile_data, ProfileSession):
        raise ArgumentError(
            f"export_profile_data: profile_data is a {type(profile_data).__name__}", instead="a ProfileSession"
        )
    profile_data.export_profile_data(log_dir, create_perfetto_link, create_perfetto_trace, session_id)


def annotate_function(func: Callable[..., Any], name: str | None = None, **decorator_kwargs: Any) -> Callable[..., Any]:
    """A function that appears in the recording at each call, as with `TraceAnnotation`.

    Args:
      func: a function of any arguments.
      name: the name that is shown; None for the function's qualified name.
      **decorator_kwargs: further data that is shown with it: strings or numbers.

    Returns:
      A function that is called as `func` is and returns the same.

    Raises:
      ArgumentError: `func` cannot be called.

    >>> @annotate_function
    ... def load(count):
    ...     return jnp.ones((count, 2))
    >>> load(3).shape
    (3, 2)
    """
    if not callable(func):
        raise ArgumentError(
            f"annotate_function takes a function, got {func!r}",
            instead="functools.partial(annotate_function, name=...) as decorator, if a name is given",
            argument="func",
            value=func,
        )
    shown = name or getattr(func, "__qualname__", None) or getattr(func, "__name__", None) or type(func).__name__

    @wraps(func)
    def annotated(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(shown, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Starts a server by which TensorBoard ("capture profile") records this process from outside.

    Args:
      port: port of the server, on all interfaces of this machine.
      requires_backend: whether the devices are started first, which recordings of some of them need.

    Returns:
      The server; `stop_server` stops it.

    Raises:
      OptionError: there is a server already.
      OSError: the port is in use.

    >>> server = start_server(9012)
    >>> stop_server()
    """
    global _server
    with _lock:
        if _server is not None:
            raise OptionError("start_server: only one profiler server can be active at a time", instead="stop_server()")
        # XLA's server only logs that it found the port in use.
        socket.create_server(("", port)).close()
        if requires_backend:
            profiling.start_clients()
        _server = profiler.start_server(port)
        return _server


def stop_server() -> None:
    """Stops the server that `start_server` started, once no other reference to it is left.

    Raises:
      OptionError: there is no server.

    >>> server = start_server(9012)
    >>> stop_server()
    """
    global _server
    with _lock:
        if _server is None:
            raise OptionError("stop_server: no active profiler server", instead="start_server(port) before it")
        _server = None


def register_subprocess(pid: int, port: int) -> Callable[[], None]:
    """Has XLA record another process together with this one, as for processes that load data.

    Args:
      pid: number of the process.
      port: port of the server that it started with `start_server`.

    Returns:
      A function that ends it. Its deletion ends it too.

    Raises:
      RuntimeError: the process is registered already, does not answer within half a minute, or is this one.

    >>> end = register_subprocess(worker.pid, 9013)  # doctest: +SKIP
    """
    return profiler.register_subprocess(pid, port)


def device_memory_profile(backend: str | None = None) -> bytes:
    """What takes the memory of the devices: arrays and compiled programs by the lines of Python that made them.

    Args:
      backend: name of a platform; None for the default one.

    Returns:
      A compressed protocol buffer in the format of pprof (https://github.com/google/pprof), with the number and the
      bytes of what each line has made and is still alive.

    Raises:
      BackendError: there is no such backend.

    >>> import gzip
    >>> len(gzip.decompress(device_memory_profile())) > 0
    True
    """
    return gzip.compress(profiling.heap_profile(backend))


@docs_from(device_memory_profile)
def save_device_memory_profile(filename: os.PathLike[str] | str, backend: str | None = None) -> None:
    """Writes `device_memory_profile` to a file, for ``pprof --web <file>``.

    Args:
      filename: the file.

    >>> import os, tempfile
    >>> save_device_memory_profile(os.path.join(tempfile.mkdtemp(), "memory.prof"))
    """
    Path(filename).write_bytes(device_memory_profile(backend))


def _write_for_perfetto(folder: Path) -> Path:
    """Copies the trace in a folder without its `metadata`, which Perfetto does not take."""
    (source,) = folder.glob("*.trace.json.gz")
    with gzip.open(source) as file:
        content = json.load(file)
    content.pop("metadata", None)
    target = folder / "perfetto_trace.json.gz"
    with gzip.open(target, "wt") as file:
        json.dump(content, file)
    return target


def _offer_to_perfetto(path: Path, port: int = 9001) -> None:
    """Prints the address that shows this file in Perfetto, and serves the file until it has been fetched.

    Perfetto's page runs in the user's browser and may only fetch from this port of the same machine.
    """
    from http.server import HTTPServer, SimpleHTTPRequestHandler

    fetched = threading.Event()

    class OneFile(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != f"/{path.name}":
                self.send_error(404)
                return
            super().do_GET()
            fetched.set()

        def end_headers(self) -> None:
            self.send_header("Access-Control-Allow-Origin", "https://ui.perfetto.dev")
            super().end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", port), lambda *args: OneFile(*args, directory=str(path.parent))) as server:
        print(f"Open URL in browser: https://ui.perfetto.dev/#!/?url=http://127.0.0.1:{port}/{path.name}", flush=True)
        while not fetched.is_set():
            server.handle_request()


publish(__name__)
