"""The shell in which a worker runs the body: IPython's own, with nobody at it.

It gives the body IPython's syntax, `display`, inline figures, the last expression's value and the tracebacks
that people know from the notebook. It keeps no history and no files, and it reads no configuration.
"""

# IPython is typed in part:
# mypy: allow-untyped-calls

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, NoReturn, TypeVar

from IPython.core import interactiveshell
from IPython.core.autocall import ExitAutocall
from IPython.core.error import UsageError
from IPython.core.history import HistoryManager
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell
from traitlets import Type, default

from nbshm.failures.packed_exceptions import Dumps
from nbshm.failures.tracebacks import ExceptionReport, report_exception
from nbshm.jobs import Body
from nbshm.replacing import replaced
from nbshm.worker.cells import CellCompiler, at_its_line
from nbshm.worker.descriptions import Describer
from nbshm.worker.event_loops import EventLoop
from nbshm.worker.refusals import refusal
from nbshm.worker.rendering import Renderer
from nbshm.worker.shell_parts import AT_BODY, ELSEWHERE, IN_BODY, LastValue, Leave, NoProfile, NothingKept
from nbshm.worker.streams import EventPublisher, Voice

T = TypeVar("T")


def _never() -> bool:
    return False


_REFUSED_MAGICS = ("debug", "pdb", "parallel")
_SIGNALLED = 128  # a shell tells that a command was ended by signal n with the exit code 128 + n


class WorkerShell(InteractiveShell):
    """An InteractiveShell without history, profile, configuration and keyboard."""

    compile: CellCompiler
    display_pub: EventPublisher
    displayhook: LastValue
    history_manager: HistoryManager

    compiler_class = Type(CellCompiler)
    display_pub_class = Type(EventPublisher)
    displayhook_class = Type(LastValue)

    def __init__(self, **traits: Any) -> None:
        self.transformed = ""
        self.value: Any = None
        self.interrupted: Callable[[], bool] = _never
        self.level = ELSEWHERE
        with replaced(interactiveshell, "PickleShareDB", NothingKept):  # IPython 8 opens one at once
            super().__init__(display_page=True, **traits)
        # It empties the namespace, which is `__main__`'s: what is compiled for functions in it complains.
        atexit.unregister(self.atexit_operations)
        self.db = NothingKept()
        self.event_loop = EventLoop()
        self.loop_runner = self.event_loop.run

    # What a plain shell would look for outside, or put there.

    def init_ipython_dir(self, ipython_dir: str | None) -> None:
        """Have a directory that exists, so that none is made."""
        self.ipython_dir = ipython_dir or tempfile.gettempdir()

    def init_profile_dir(self, profile_dir: object) -> None:  # noqa: ARG002  # IPython's signature
        """Have a profile in name only: parts of IPython ask for its directory, and must find none."""
        self.profile_dir = NoProfile(location=os.devnull)

    def init_virtualenv(self) -> None:
        """Leave `sys.path` as the notebook has it."""

    def init_sys_modules(self) -> None:
        """Leave `__main__` to the room that builds it."""

    def init_prompts(self) -> None:
        """Have no `sys.ps1`, by which libraries know that somebody types here: Lightning refuses DDP then."""
        for prompt in ("ps1", "ps2", "ps3"):
            vars(sys).pop(prompt, None)  # a forked worker has the kernel's

    def init_user_ns(self) -> None:
        """Put nothing into the namespace yet; `adopt` does."""

    def init_history(self) -> None:
        """Have a history that stays empty, for those parts of IPython that ask for one."""
        self.history_manager = HistoryManager(shell=self, parent=self, hist_file=":memory:", enabled=False)

    def init_traceback_handlers(self, custom_exceptions: Any) -> None:
        """Set up IPython's formatters, and with them what renders the failures that are reported."""
        super().init_traceback_handlers(custom_exceptions)
        self.renderer = Renderer(self.InteractiveTB, self.SyntaxTB)

    def init_magics(self) -> None:
        """Register IPython's magics, and refusals of those that can't work here."""
        super().init_magics()
        for name in _REFUSED_MAGICS:
            self.magics_manager.register_function(_refusing(name), magic_kind="line_cell", magic_name=name)

    @default("exiter")
    def _leave(self) -> ExitAutocall:
        return Leave(self)

    def enable_gui(self, gui: str | None = None) -> None:
        """Do nothing: no window system's loop runs in a worker, and `%matplotlib inline` needs none."""

    def debugger(self, force: bool = False) -> NoReturn:  # noqa: ARG002, FBT001, FBT002  # IPython's signature
        """Refuse to debug."""
        raise UsageError(refusal("debug"))

    # Commands and magics. IPython's own swallow an interrupt and go on with the next statement.

    def system(self, cmd: str) -> None:
        """Run a command of the system shell on descriptors 1 and 2; an interrupt ends it and goes on up."""
        command = self.var_expand(cmd, depth=1)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        code = subprocess.call(command, shell=True, executable=os.environ.get("SHELL"))  # noqa: S602  # as asked
        self.user_ns["_exit_code"] = code if code <= _SIGNALLED else _SIGNALLED - code
        if getattr(self, "system_raise_on_error", False) and code != 0:  # IPython 8 knows no such setting
            raise subprocess.CalledProcessError(code, cmd)

    def getoutput(self, cmd: str, split: bool = True, depth: int = 0) -> Any:  # noqa: FBT001, FBT002  # as above
        """Run a command and return its output."""
        output = super().getoutput(cmd, split=split, depth=depth + 1)
        self._go_on_unless_interrupted()
        return output

    def run_line_magic(self, magic_name: str, line: str, _stack_depth: int = 1) -> Any:
        """Run a line magic."""
        value = super().run_line_magic(magic_name, line, _stack_depth + 1)
        self._go_on_unless_interrupted()
        return value

    def _go_on_unless_interrupted(self) -> None:
        if self.interrupted():
            raise KeyboardInterrupt

    # Running.

    def adopt(self, module: types.ModuleType) -> None:
        """Run what comes in that module; IPython's own names are added where it has none of that name.

        In a forked worker those that act are the kernel's, as whose shell this process must not act.
        """
        self.user_module = module
        self.user_ns = module.__dict__
        history = self.history_manager
        own = {
            "In": history.input_hist_parsed,
            "Out": history.output_hist,
            "_ih": history.input_hist_parsed,
            "_oh": history.output_hist,
            "_dh": history.dir_hist,
            "get_ipython": self.get_ipython,
            "exit": self.exiter,
            "quit": self.exiter,
        }
        for name, value in own.items():
            if name in _ACTING and _is_ipythons(self.user_ns.get(name)):
                self.user_ns[name] = value
            self.user_ns.setdefault(name, value)
        self.user_ns_hidden = own

    def execute(self, text: str) -> Any:
        """Run text as a cell; return the value of its last expression, or raise what it raised.

        `InteractiveShell.run_cell` would do, but that keeps a copy of everything that is printed.
        """
        self.value, self.level = None, AT_BODY
        try:
            result = self._run(text)
        finally:
            self.level = ELSEWHERE
            self.events.trigger("post_execute")
        self.events.trigger("post_run_cell", result)
        if result.error_before_exec is not None:
            raise result.error_before_exec.with_traceback(None)  # it has only the compiler's own frames
        result.raise_error()
        value, self.value = self.value, None
        return value

    def _run(self, text: str) -> ExecutionResult:
        self.transformed = self.transform_cell(text)
        run = self.run_cell_async(text, transformed_cell=self.transformed)
        if self.should_run_async(text, transformed_cell=self.transformed):
            result: ExecutionResult = self.loop_runner(run)
            return result
        return _at_once(run)

    async def run_code(self, code_obj: types.CodeType, result: Any = None, *, async_: bool = False) -> bool:
        """Run a piece of code; what the body raises is kept, not shown."""
        self.level += 1
        try:
            if self.level != IN_BODY:
                return bool(await super().run_code(code_obj, result, async_=async_))
            self.displayhook.show_earlier()
            if async_:
                await eval(code_obj, self.user_global_ns, self.user_ns)  # noqa: S307  # the body is to be run
            else:
                exec(code_obj, self.user_global_ns, self.user_ns)  # noqa: S102  # likewise
        except BaseException as error:  # noqa: BLE001  # whatever ends the body is told by who runs it
            result.error_in_exec = error
            return True
        finally:
            self.level -= 1
        return False

    def _showtraceback(self, etype: Any, evalue: Any, stb: list[str]) -> None:
        """Show a traceback that IPython wants shown, but not the body's own: that one is reported."""
        if self.level != AT_BODY:
            super()._showtraceback(etype, evalue, stb)

    def prepare(self, body: Body) -> str:
        """Return the text to execute for a body; its lines will be called by their numbers in the cell."""
        text = at_its_line(body)
        self.ast_node_interactivity = body.interactivity
        self.compile.name(text, body.origin.filename)
        if body.origin.cell is not None:
            self.execution_count = body.origin.cell
            self.know_cells({body.origin.filename: body.origin.cell})
        return text

    def know_cells(self, numbers: Mapping[str, int]) -> None:
        """Call code by cell numbers in tracebacks, warnings and reports: execution counts by file name."""
        self.compile.cells.update(numbers)

    @contextlib.contextmanager
    def at_work(self, voice: Voice, interrupted: Callable[[], bool]) -> Iterator[None]:
        """Show displays by that voice, and heed interrupts, while this is entered."""
        self.display_pub.voice, self.interrupted = voice, interrupted
        try:
            yield
        finally:
            self.display_pub.voice, self.interrupted = None, _never

    def report(self, error: BaseException, *, dumps: Dumps = pickle.dumps) -> ExceptionReport:
        """Report an exception as the notebook would show it."""
        rendered = self.renderer.render(error)
        return report_exception(
            error, cells=self.compile.cells, rendered=rendered, dumps=dumps, describe=Describer()
        )


_ACTING = ("get_ipython", "exit", "quit")


def _is_ipythons(value: Any) -> bool:
    """Tell whether a shell has put a value there, not the person."""
    home = getattr(value, "__module__", None)
    return isinstance(home, str) and home.startswith(("IPython.", "ipykernel."))


def rehearse() -> None:
    """Run a cell in a module that nobody needs."""
    shell = warm_up()
    shell.adopt(types.ModuleType("rehearsal"))
    shell.execute("2**3")


def warm_up() -> WorkerShell:
    """Return this process's shell; the first call makes it and does what would cost each worker time."""
    if InteractiveShell.initialized():
        present = InteractiveShell.instance()
        if isinstance(present, WorkerShell):
            return present
        type(present).clear_instance()  # the kernel's, in a process forked from it
    shell: WorkerShell = WorkerShell.instance()
    _show_figures(shell)
    shell.execute("pass")
    try:
        shell.execute("1 / 0")
    except ZeroDivisionError as error:
        shell.report(error)
    return shell


def _show_figures(shell: WorkerShell) -> None:
    """Let matplotlib's inline back end show figures by this shell.

    In a forked process it has been set up for the kernel's shell, and would not be set up again.
    """
    inline = sys.modules.get("matplotlib_inline.backend_inline")
    if inline is not None:
        inline.configure_inline_support.current_backend = "unset"
        # Asking in the ordinary way for a back end that nobody has chosen would choose and load one.
        inline.configure_inline_support(shell, dict.get(inline.matplotlib.rcParams, "backend"))


def _at_once(run: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that waits for nothing, so that the code in it may start an event loop of its own."""
    try:
        run.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    raise RuntimeError("the cell waits for something, and was not recognised as asynchronous")


def _refusing(name: str) -> Callable[..., NoReturn]:
    def refused(_line: str, _cell: str | None = None) -> NoReturn:
        raise UsageError(refusal(name))

    return refused
