"""IPython's side of the door: the magics, their help and their completion."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeVar

from IPython.core import completer
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class

from nbshm.errors import RunInterrupted
from nbshm.front.completion import suggest
from nbshm.front.debugging import refusing_debugger
from nbshm.front.help_texts import (
    DEFAULTS_HELP,
    PARALLEL_HELP,
    STACKS_HELP,
    STATUS_HELP,
    STRATEGY_HELP,
)
from nbshm.notebook import syntax_errors
from nbshm.notebook.cells import current_body
from nbshm.option_table import OPTIONS
from nbshm.options import OptionError, Options, parse, parse_defaults
from nbshm.processes.kernel_signals import interrupts_put_off
from nbshm.results import Results
from nbshm.session import Session
from nbshm.told_errors import told_in_words

F = TypeVar("F", bound=Callable[..., Any])


_TOO_MANY_OPEN = (
    "this kernel has no file descriptors left for a run. Close files that it has open, or raise the limit "
    "(ulimit -n) before Jupyter is started."
)


class _Magic:
    """Makes a method a magic whose help is composed, which a docstring can't be."""

    def __init__(self, kind: Literal["line", "cell"], name: str, text: str) -> None:
        self._kind = kind
        self._name = name
        self._help = text

    def __call__(self, function: F) -> F:
        function.__doc__ = self._help
        marks = {"line": line_magic, "cell": cell_magic}
        mark: Any = marks[self._kind]  # IPython's annotations accept no method
        marked: F = mark(self._name)(function)
        return marked


@magics_class
class ParallelMagics(Magics):
    """The magics of nbshm, and the session's defaults that they share."""

    shell: InteractiveShell

    def __init__(self, session: Session) -> None:
        super().__init__(session.shell)
        self.session = session
        self._chosen: dict[str, Any] = {}

    @property
    def defaults(self) -> Options:
        """The session's defaults as of now: the CPUs that it may use can have become others."""
        return Options(**self._chosen)

    @_Magic("cell", "parallel", PARALLEL_HELP)
    def run_cell_in_parallel(self, line: str, cell: str) -> Results | None:  # noqa: D102  # above
        if not cell.strip():
            raise UsageError("the cell is empty: write below the %%parallel line what each rank is to run.")
        try:
            with told_in_words(RunInterrupted()):
                return self._run_in_parallel(line, cell)
        except OptionError as problem:
            raise UsageError(str(problem)) from None
        except OSError as problem:
            if problem.errno != errno.EMFILE:
                raise
            raise UsageError(_TOO_MANY_OPEN) from None  # a line: IPython would open files to show a traceback

    def _run_in_parallel(self, line: str, cell: str) -> Results | None:
        options = parse(line, self.defaults)
        with interrupts_put_off():  # what was imported by half is not there in the next cell
            # Imported here: they import what the first parallel cell needs, and the load does not.
            from nbshm.runs import background, runner  # noqa: PLC0415

        body = current_body(cell, line, self.shell, self.session.notebook.cells)
        if options.background is not None:
            background.start(body, self.session, options)
            return None
        return runner.run(body, self.session, options)

    @_Magic("line", "%parallel", "Say where %%parallel must stand: below other lines it is a line magic.")
    def refuse_below_other_lines(self, line: str) -> None:  # noqa: ARG002, D102  # as the other magics
        raise UsageError(
            "%%parallel must be the first line of its cell (only %%time, %%capture and their like may stand "
            "above it)."
        )

    @_Magic("line", "parallel", DEFAULTS_HELP)
    def show_or_set_defaults(self, line: str) -> None:  # noqa: D102  # above
        if line.strip():
            self._chosen.update(_new_defaults(line))
            standby = self.defaults.standby
            if standby is not None:
                self.session.launcher.stand_by(standby)
        defaults = self.defaults
        for option in OPTIONS:
            if option.session:
                print(f"{option.name}={_in_force(option.name, defaults)}")  # noqa: T201  # what the magic is for

    @_Magic("line", "shm_strategy", STRATEGY_HELP)
    def show_or_set_strategy(self, line: str) -> None:  # noqa: D102  # above
        from nbshm.memory.tensors import strategies  # noqa: PLC0415  # imports torch

        name = line.strip()
        if not name:
            print("\n".join(strategies.overview()))  # noqa: T201  # what the magic is for
            return
        try:
            strategies.check_strategy(name)
        except strategies.NoStrategy as problem:
            raise UsageError(str(problem)) from None
        running = ", ".join(run.name for run in self.session.runs)
        if running and name != strategies.strategy():
            raise UsageError(
                f"the strategy can't be changed while this runs: {running}. torch would move tensors away "
                "from workers that use them. Wait until it has ended, or stop it."
            )
        strategies.use_strategy(name)
        print(name)  # noqa: T201  # as above

    @_Magic("line", "shm_status", STATUS_HELP)
    def show_or_clean_shared_memory(self, line: str) -> None:  # noqa: D102  # above
        from nbshm.front import status  # noqa: PLC0415  # imports the memory house

        match line.strip():
            case "":
                print("\n".join(status.overview(self.session)))  # noqa: T201  # what the magic is for
            case "clean":
                print(status.clean())  # noqa: T201  # as above
            case other:
                raise UsageError(f"%shm_status knows 'clean', not {other!r}.")

    @_Magic("line", "parallel_stacks", STACKS_HELP)
    def show_stacks(self, line: str) -> None:  # noqa: D102  # above
        cells, name = self.session.notebook.cells, line.strip()
        living = [run for run in self.session.runs if not name or run.is_called(name)]
        if name and not living:
            raise UsageError(f"no run called {name!r} is alive; %parallel_stacks without a name shows all.")
        for run in living:
            print(run.stacks(cells))  # noqa: T201  # what the magic is for
        if not living:
            print("no run is alive.")  # noqa: T201  # likewise


def _new_defaults(line: str) -> dict[str, Any]:
    if "=" not in line or "(" in line.partition("=")[0]:
        raise UsageError(
            f"'{line.strip()}' is no default of the session, like nprocs=4. "
            "To run code in several processes, begin a cell with %%parallel and write the code below."
        )
    try:
        return parse_defaults(line)
    except OptionError as problem:
        raise UsageError(str(problem)) from None


def _in_force(name: str, defaults: Options) -> str:
    if name == "threads" and defaults.threads is None:
        return f"{defaults.threads_per_worker} (a share of the CPUs)"
    if name == "standby" and defaults.standby is None:
        return "auto (as many as the last run had ranks)"
    value = getattr(defaults, name)
    return f"{value:g}" if isinstance(value, float) else str(value).lower()


class MagicsInstallation:
    """The magics and their completion in a shell, until it is closed."""

    def __init__(self, session: Session) -> None:
        shell = self._shell = session.shell
        self._before = {kind: dict(table) for kind, table in shell.magics_manager.magics.items()}
        shell.register_magics(ParallelMagics(session))
        # Versions of IPython before 8.6 ask nobody else.
        self._matchers = [_matcher(shell)] if hasattr(completer, "context_matcher") else []
        for matcher in self._matchers:
            shell.Completer.custom_matchers.append(matcher)
        syntax_errors.install(shell)
        self._debugger = refusing_debugger(shell)
        self._debugger.install()

    def close(self) -> None:
        """Take the magics out again; those that had their names before are back."""
        self._debugger.remove()
        syntax_errors.remove(self._shell)
        for kind, names in ParallelMagics.magics.items():
            table, before = self._shell.magics_manager.magics[kind], self._before[kind]
            for name in names:
                if name in before:
                    table[name] = before[name]
                else:
                    table.pop(name, None)
        for matcher in self._matchers:
            with contextlib.suppress(ValueError):
                self._shell.Completer.custom_matchers.remove(matcher)


def _matcher(shell: InteractiveShell) -> Any:
    offer = partial(completer.SimpleCompletion, type="param")

    def match_options(context: Any) -> dict[str, Any]:
        suggestions = suggest(context.text_until_cursor, shell.user_ns)
        if suggestions is None:
            return {"completions": []}
        return {
            "completions": [offer(text=text) for text in suggestions.texts],
            "matched_fragment": suggestions.typed,
            "suppress": bool(suggestions.texts),
            "ordered": True,
        }

    matcher: Any = completer.context_matcher(identifier="nbshm.options")
    return matcher(match_options)
