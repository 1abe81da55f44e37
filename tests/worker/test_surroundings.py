"""Surroundings captured in one process and taken over in others."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nbshm.notebook.surroundings import threads_per_worker

CHILD = Path(__file__).with_name("surrounded_child.py")
TIMEOUT = 60


class Notebook:
    """Code that a kernel runs, and code that its workers run in the same surroundings."""

    def __init__(self, directory: Path) -> None:
        self._file = str(directory / "surroundings")
        self._elsewhere = directory / "elsewhere"
        self._elsewhere.mkdir()

    def kernel(self, before: str, after: str = "", **environment: str):
        return self._run("kernel", before, after, environment)

    def worker(self, code: str, *, rank: int = 1, before: str = "", **environment: str):
        return self._run("worker", f"rank = {rank}\n{before}", code, environment)

    def _run(self, part: str, before: str, after: str, environment: dict[str, str]):
        inherited = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
        child = subprocess.run(
            [sys.executable, str(CHILD), part, self._file, before, after],
            env={**inherited, **environment},
            cwd=self._elsewhere,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        assert (child.returncode, child.stderr) == (0, "")
        return ast.literal_eval(child.stdout)


@pytest.fixture
def notebook(tmp_path: Path) -> Notebook:
    return Notebook(tmp_path)


def test_the_process_state_is_the_notebooks(notebook, tmp_path):
    notebook.kernel(
        "import logging, os, sys\n"
        f"os.chdir({str(tmp_path)!r})\n"
        "sys.path.append('/nowhere/else')\n"
        "os.environ['NOW'] = 'yes'\n"
        "os.environ['TZ'] = 'Asia/Tokyo'\n"
        "sys.setrecursionlimit(2345)\n"
        "logging.getLogger().setLevel(logging.DEBUG)\n"
        "os.umask(0o027)\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
    )
    code = (
        "import logging, os, sys, time\n"
        "result = (os.getcwd(), sys.path[-1], os.environ['NOW'], 'GONE' in os.environ,\n"
        "  time.localtime(0).tm_hour, sys.getrecursionlimit(), logging.getLogger().level,\n"
        "  os.umask(0), len(os.sched_getaffinity(0)))"
    )
    expected = (str(tmp_path), "/nowhere/else", "yes", False, 9, 2345, 10, 0o027, 1)
    assert notebook.worker(code, GONE="since") == expected


def test_a_directory_that_has_gone_while_the_cell_started_does_no_harm(notebook, tmp_path):
    (tmp_path / "gone").mkdir()
    notebook.kernel(f"import os\nos.chdir({str(tmp_path / 'gone')!r})\nos.rmdir({str(tmp_path / 'gone')!r})")
    assert notebook.worker("import os\nresult = os.path.basename(os.getcwd())") == "elsewhere"


def test_a_rank_finds_its_rendezvous_in_the_environment_and_the_persons_own_values_win(notebook):
    notebook.kernel("import os\nos.environ['MASTER_ADDR'] = '10.0.0.1'")
    names = ["RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"]
    found = notebook.worker(f"import os\nresult = [os.environ[name] for name in {names}]", rank=2)
    assert found == ["2", "2", "3", "3", "10.0.0.1", "29501"]


def test_warning_filters_are_the_notebooks(notebook):
    notebook.kernel(
        "import warnings\n"
        "warnings.simplefilter('error', RuntimeWarning)\n"
        "warnings.filterwarnings('ignore', 'never mind', UserWarning)\n"
        "class Own(UserWarning): pass\n"
        "warnings.simplefilter('error', Own)\n"
    )
    code = (
        "import warnings\n"
        "warnings.warn('never mind this')\n"
        "try: warnings.warn('broken', RuntimeWarning)\n"
        "except RuntimeWarning: result = 'raised'"
    )
    assert notebook.worker(code) == "raised"


def test_pythons_own_filters_go_on_meaning_what_they_meant(notebook):
    notebook.kernel("")
    code = (
        "import warnings\n"
        "with warnings.catch_warnings(record=True) as kept:\n"
        "  warnings.warn_explicit('old', DeprecationWarning, 'f.py', 1, module='__main__')\n"
        "  warnings.warn_explicit('old', DeprecationWarning, 'f.py', 2, module='library')\n"
        "result = [warning.lineno for warning in kept]"
    )
    assert notebook.worker(code) == [1]


def test_a_filter_for_a_library_waits_until_it_is_imported(notebook):
    notebook.kernel("import numpy, warnings\nwarnings.simplefilter('error', numpy.exceptions.ComplexWarning)")
    code = (
        "import sys, warnings\n"
        "imported = 'numpy' in sys.modules\n"
        "import numpy\n"
        "try: numpy.array([1j]).astype(float)\n"
        "except numpy.exceptions.ComplexWarning: result = (imported, 'raised')"
    )
    assert notebook.worker(code) == (False, "raised")


def test_levels_of_loggers_are_the_notebooks_whatever_their_libraries_set_when_they_are_imported(
    notebook, tmp_path
):
    (tmp_path / "talker" / "parts").mkdir(parents=True)
    for where, logger in (("talker", "talker"), ("talker/parts", "talker.parts")):
        text = f"import logging\nlogging.getLogger({logger!r}).setLevel(logging.INFO)"
        (tmp_path / where / "__init__.py").write_text(text)
    imports = f"import logging, sys\nsys.path.append({str(tmp_path)!r})\nimport talker.parts\n"
    notebook.kernel(
        f"{imports}logging.getLogger('talker').setLevel(logging.ERROR)\n"
        "logging.getLogger('talker.parts').setLevel(logging.DEBUG)"
    )
    code = f"{imports}result = [logging.getLogger(name).level for name in ('talker', 'talker.parts')]"
    assert notebook.worker(code) == [40, 10]
    before_the_import = f"import logging\nlogging.getLogger('talker').setLevel(logging.WARNING)\n{code}"
    assert notebook.worker(before_the_import) == [30, 10]


def test_a_library_that_makes_its_logger_of_a_class_of_its_own_can_be_imported(notebook, tmp_path):
    """astropy, in the module of its name; absl, in one below that."""
    (tmp_path / "starry" / "logger").mkdir(parents=True)
    (tmp_path / "starry" / "__init__.py").write_text("")
    (tmp_path / "starry" / "logger" / "__init__.py").write_text(
        "import logging\n"
        "class StarryLogger(logging.Logger):\n"
        "  def set_defaults(self): self.setLevel(logging.INFO)\n"
        "before = logging.getLoggerClass()\n"
        "logging.setLoggerClass(StarryLogger)\n"
        "log = logging.getLogger('starry')\n"
        "log.set_defaults()\n"
        "logging.setLoggerClass(before)"
    )
    imports = f"import logging, sys\nsys.path.append({str(tmp_path)!r})\nimport starry\n"
    notebook.kernel(f"{imports}import starry.logger\nstarry.logger.log.setLevel(logging.ERROR)")
    code = (
        f"{imports}made = 'starry' in logging.Logger.manager.loggerDict\n"
        "import starry.logger\nresult = made, starry.logger.log.level"
    )
    assert notebook.worker(code) == (False, 40)


def test_a_logger_of_a_class_of_the_notebooks_has_its_level_in_a_rank(notebook):
    notebook.kernel(
        "import logging\nclass Own(logging.Logger): pass\n"
        "logging.setLoggerClass(Own)\nlogging.getLogger('own').setLevel(logging.ERROR)"
    )
    assert notebook.worker("import logging\nresult = logging.getLogger('own').level") == 40


def test_nothing_is_imported_that_the_notebook_has_not_imported(notebook):
    heavy = "sorted({'torch', 'numpy', 'pandas', 'matplotlib', 'IPython'} & set(sys.modules))"
    assert notebook.kernel("", f"import sys\nresult = {heavy}") == []
    assert notebook.worker(f"import sys\nresult = {heavy}") == []


def test_torchs_state_is_the_notebooks(notebook):
    notebook.kernel(
        "import torch\n"
        "torch.set_default_dtype(torch.float64)\n"
        "torch.set_default_device('meta')\n"
        "torch.use_deterministic_algorithms(True, warn_only=True)\n"
        "torch.backends.cudnn.benchmark = True\n"
        "torch.set_float32_matmul_precision('high')\n"
        "torch.set_grad_enabled(False)\n"
        "torch.autograd.set_detect_anomaly(True, check_nan=False)\n"
        "torch.set_warn_always(True)\n"
        "torch.multiprocessing.set_sharing_strategy('file_system')\n"
        "torch.set_printoptions(precision=2, sci_mode=True)\n"
    )
    code = (
        "import torch\n"
        "result = (str(torch.zeros(1).dtype), str(torch.zeros(1).device),\n"
        "  torch.are_deterministic_algorithms_enabled(),\n"
        "  torch.is_deterministic_algorithms_warn_only_enabled(),\n"
        "  torch.backends.cudnn.benchmark, torch.get_float32_matmul_precision(), torch.is_grad_enabled(),\n"
        "  torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled(),\n"
        "  torch.is_warn_always_enabled(),\n"
        "  torch.multiprocessing.get_sharing_strategy(), torch.get_num_threads(),\n"
        "  str(torch.tensor(0.5, device='cpu')))"
    )
    expected = (
        *("torch.float64", "meta", True, True, True, "high", False),
        *(True, False, True, "file_system", 2, "tensor(5.00e-01)"),
    )
    assert notebook.worker(code) == expected


# How each of torch's switches is set, how it is read, and what is to be found.
SWITCHES = {
    "torch.autograd.set_multithreading_enabled(False)": ("torch._C._is_multithreading_enabled()", False),
    "future.set_swap_module_params_on_conversion(True)": (
        "future.get_swap_module_params_on_conversion()",
        True,
    ),
    "future.set_overwrite_module_params_on_conversion(True)": (
        "future.get_overwrite_module_params_on_conversion()",
        True,
    ),
    "invariants.enable()": ("invariants.is_enabled()", True),
    "backends.mha.set_fastpath_enabled(False)": ("backends.mha.get_fastpath_enabled()", False),
    "backends.cuda.enable_flash_sdp(False)": ("backends.cuda.flash_sdp_enabled()", False),
    "backends.cudnn.enabled = False": ("backends.cudnn.enabled", False),
    "torch.utils.deterministic.fill_uninitialized_memory = False": (
        "torch.utils.deterministic.fill_uninitialized_memory",
        False,
    ),
    "Distribution.set_default_validate_args(False)": ("Distribution._validate_args", False),
    "torch.compiler.set_stance('force_eager')": ("compiled()", False),
}
SWITCHED = """
import torch
from torch import __future__ as future, backends
from torch.distributions import Distribution
from torch.sparse import check_sparse_tensor_invariants as invariants
"""


def test_torchs_switches_are_the_notebooks(notebook):
    notebook.kernel("\n".join([SWITCHED, *SWITCHES]))
    looks = ", ".join(look for look, _ in SWITCHES.values())
    code = (
        f"{SWITCHED}compiled = torch.compile(torch.compiler.is_compiling, backend='eager')\nresult = {looks}"
    )
    assert notebook.worker(code) == tuple(found for _, found in SWITCHES.values())


@pytest.mark.parametrize("enabled", [True, False])
def test_how_einsum_is_planned_is_as_in_the_notebook(notebook, enabled):
    pytest.importorskip("opt_einsum")
    options = "torch.backends.opt_einsum"
    notebook.kernel(f"import torch\n{options}.strategy = 'optimal'\n{options}.enabled = {enabled}")
    assert notebook.worker(f"import torch\nresult = {options}.strategy, {options}.enabled") == (
        "optimal",
        enabled,
    )


def test_precisions_that_were_set_one_by_one_are_the_notebooks(notebook):
    notebook.kernel("import torch\ntorch.backends.cuda.matmul.fp32_precision = 'tf32'")
    assert notebook.worker("import torch\nresult = torch.backends.cuda.matmul.fp32_precision") == "tf32"


def test_the_locale_is_the_notebooks(notebook):
    notebook.kernel("import locale\nlocale.setlocale(locale.LC_TIME, 'C.UTF-8')", LC_ALL="C")
    code = (
        "import locale\nresult = [locale.setlocale(which) for which in (locale.LC_TIME, locale.LC_NUMERIC)]"
    )
    assert notebook.worker(code, LC_ALL="C") == ["C.UTF-8", "C"]


def test_modules_are_found_where_the_notebook_has_loaded_them_from(notebook, tmp_path):
    """Whatever name it gave them, and though there is another of that name on the path by now."""
    for name in ("here", "there"):
        (tmp_path / name / "parts").mkdir(parents=True)
        (tmp_path / name / "plain.py").write_text(f"where = {name!r}")
        (tmp_path / name / "parts" / "__init__.py").write_text("")
        (tmp_path / name / "parts" / "one.py").write_text(f"where = {name!r}")
    (tmp_path / "elsewhere" / "plug1.py").write_text("where = 'plugged'")
    plugged = str(tmp_path / "elsewhere" / "plug1.py")
    notebook.kernel(
        "import importlib.util, sys\n"
        f"sys.path.append({str(tmp_path / 'here')!r})\n"
        "import parts.one, plain\n"
        f"sys.path[-1] = {str(tmp_path / 'there')!r}\n"
        f"spec = importlib.util.spec_from_file_location('plug', {plugged!r})\n"
        "sys.modules['plug'] = importlib.util.module_from_spec(spec)\n"
    )
    code = "import parts.one, plain, plug\nresult = parts.one.where, plain.where, plug.where"
    assert notebook.worker(code) == ("here", "here", "plugged")


def test_modules_are_found_in_the_directories_that_relative_entries_meant(notebook, tmp_path):
    """Those of namespace packages too."""
    for name in ("one", "two"):
        (tmp_path / name / "shared").mkdir(parents=True)
        (tmp_path / name / "shared" / f"{name}.py").write_text(f"where = {name!r}")
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone" / "module.py").write_text("where = 'alone'")
    notebook.kernel(
        "import os, sys\n"
        f"os.chdir({str(tmp_path)!r})\n"
        "sys.path[:0] = ['one', 'two', '']\n"
        "import alone.module, shared.one, shared.two\n"
        "os.chdir('/')\n"
    )
    code = (
        "import alone.module, shared.one, shared.two, sys\n"
        "result = alone.module.where, shared.one.where, shared.two.where, sys.path[2]"
    )
    assert notebook.worker(code) == ("alone", "one", "two", "")


def test_numpys_state_is_the_notebooks(notebook):
    notebook.kernel(
        "import numpy\nnumpy.set_printoptions(precision=2, formatter={'bool': lambda x: 'ab'[int(x)]})\n"
        "numpy.seterr(divide='raise')"
    )
    code = (
        "import numpy\n"
        "try: numpy.array([1.0]) / 0\n"
        "except FloatingPointError: result = str(numpy.array([1 / 3])), str(numpy.array([True]))"
    )
    assert notebook.worker(code) == ("[0.33]", "[b]")


def test_pandas_options_are_the_notebooks(notebook):
    pytest.importorskip("pandas")
    notebook.kernel(
        "import pandas\n"
        "pandas.set_option('display.max_rows', 7)\n"
        "pandas.set_option('display.float_format', lambda value: f'<{value:.1f}>')\n"
    )
    code = (
        "import sys\nimported = 'pandas' in sys.modules\nimport pandas\n"
        "shown = pandas.Series([0.25]).to_string(index=False)\n"
        "result = imported, pandas.get_option('display.max_rows'), shown"
    )
    assert notebook.worker(code) == (False, 7, "<0.2>")


def test_decimals_are_computed_and_integers_written_as_in_the_notebook(notebook):
    notebook.kernel(
        "import decimal, sys\nsys.set_int_max_str_digits(9999)\n"
        "decimal.getcontext().prec = 7\ndecimal.getcontext().rounding = decimal.ROUND_UP\n"
        "decimal.getcontext().traps[decimal.Inexact] = True"
    )
    code = (
        "import decimal, sys\nhere = decimal.getcontext()\n"
        "result = here.prec, here.rounding, here.traps[decimal.Inexact], sys.get_int_max_str_digits()"
    )
    assert notebook.worker(code) == (7, "ROUND_UP", True, 9999)


@pytest.mark.parametrize(
    ("library", "change", "look", "found"),
    [
        ("xarray", "xarray.set_options(keep_attrs=True)", "xarray.get_options()['keep_attrs']", True),
        (
            "sklearn",
            "sklearn.set_config(assume_finite=True, transform_output='pandas')",
            "sklearn.get_config()['assume_finite'], sklearn.get_config()['transform_output']",
            (True, "pandas"),
        ),
        (
            "mpmath",
            "mpmath.mp.dps = 50; mpmath.mp.pretty = True; mpmath.iv.prec = 99",
            "mpmath.mp.dps, mpmath.mp.prec, mpmath.mp.pretty, mpmath.iv.prec",
            (50, 169, True, 99),
        ),
    ],
)
def test_options_of_other_libraries_are_the_notebooks(notebook, library, change, look, found):
    pytest.importorskip(library)
    notebook.kernel(f"import {library}\n{change}")
    code = f"import sys\nimported = '{library}' in sys.modules\nimport {library}\nresult = imported, {look}"
    expected = found if isinstance(found, tuple) else (found,)
    assert notebook.worker(code) == (False, *expected)


def test_variables_of_cvxpy_have_numbers_that_neither_the_notebook_nor_another_rank_gives(notebook, tmp_path):
    (tmp_path / "cvxpy" / "lin_ops").mkdir(parents=True)
    (tmp_path / "cvxpy" / "lin_ops" / "lin_utils.py").write_text(
        "class Counter: count = 1\nID_COUNTER = Counter()"
    )
    notebook.kernel(
        f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\n"
        "import cvxpy.lin_ops.lin_utils as utils\nutils.ID_COUNTER.count = 41"
    )
    code = "import cvxpy.lin_ops.lin_utils as utils\nresult = utils.ID_COUNTER.count"
    numbers = [notebook.worker(code, rank=rank) for rank in range(2)]
    assert numbers == [1_000_041, 2_000_041]


def test_figures_have_the_notebooks_settings_and_are_drawn_inline(notebook):
    pytest.importorskip("matplotlib")
    notebook.kernel("import matplotlib\nmatplotlib.rcParams['figure.dpi'] = 50\nmatplotlib.use('webagg')")
    code = "import matplotlib\nresult = matplotlib.rcParams['figure.dpi'], matplotlib.rcParams['backend']"
    assert notebook.worker(code) == (50, "module://matplotlib_inline.backend_inline")


COLORMAP = """
import matplotlib, matplotlib.colors
class Bands(matplotlib.colors.ListedColormap): pass
def register():
    for kind in (matplotlib.colors.ListedColormap, Bands):
        matplotlib.colormaps.register(kind([(0, 0, 0), (0, 1, 0)], kind.__name__))
"""


def test_a_colormap_that_was_registered_is_there_and_can_be_the_default(notebook):
    pytest.importorskip("matplotlib")
    notebook.kernel(f"{COLORMAP}\nregister()\nmatplotlib.rcParams['image.cmap'] = 'Bands'")
    code = (
        "import matplotlib, matplotlib.figure\n"
        "image = matplotlib.figure.Figure().add_subplot().imshow([[0, 1]])\n"
        "result = image.get_cmap().name, tuple(map(float, matplotlib.colormaps['ListedColormap'](1)))"
    )
    assert notebook.worker(code) == ("Bands", (0.0, 1.0, 0.0, 1.0))


def test_what_registers_a_colormap_when_it_is_imported_can_be_imported_in_a_rank(notebook):
    pytest.importorskip("matplotlib")
    notebook.kernel(f"{COLORMAP}\nregister()")
    code = (
        f"{COLORMAP}\nregister()\n"
        "try: register()\n"
        "except ValueError as error: result = type(matplotlib.colormaps['Bands']) is Bands, str(error)"
    )
    assert notebook.worker(code) == (True, 'A colormap named "ListedColormap" is already registered.')


def test_a_colormap_that_can_not_be_pickled_stays_in_the_notebook(notebook):
    pytest.importorskip("matplotlib")
    notebook.kernel(
        f"{COLORMAP}\nregister()\nimport threading\n"
        "torn = Bands([(0, 0, 0)], 'torn')\ntorn.lock = threading.Lock()\n"
        "matplotlib.colormaps._cmaps['torn'] = torn"  # `register` copies it
    )
    assert notebook.worker(
        "import matplotlib\nresult = [n in matplotlib.colormaps for n in ('torn', 'Bands')]"
    ) == [False, True]


def test_figures_are_in_the_formats_that_the_notebook_has_configured(notebook):
    pytest.importorskip("matplotlib_inline")
    notebook.kernel(
        "import matplotlib_inline.config\n"
        "inline = matplotlib_inline.config.InlineBackend.instance()\n"
        "inline.figure_format = 'svg'\n"
        "inline.print_figure_kwargs = {'dpi': 50}"
    )
    code = (
        "import matplotlib_inline.config\n"
        "inline = matplotlib_inline.config.InlineBackend.instance()\n"
        "result = inline.figure_formats, inline.print_figure_kwargs"
    )
    assert notebook.worker(code) == ({"svg"}, {"dpi": 50})


def test_a_backend_that_draws_into_files_stays(notebook):
    pytest.importorskip("matplotlib")
    notebook.kernel("import matplotlib\nmatplotlib.use('agg')")
    assert notebook.worker("import matplotlib\nresult = matplotlib.rcParams['backend']") == "agg"


DRAW = """
import random, numpy, torch
from nbshm.notebook.seeds import draw_seeds
def draw(): return random.random(), numpy.random.rand(), torch.rand(1).item()
def seed(): random.seed(0), numpy.random.seed(0), torch.manual_seed(0)
def differ(one, other): return all(a != b for a, b in zip(one, other, strict=True))
def numbers(seeds): return seeds.random, seeds.numpy, seeds.torch
"""


def test_a_notebook_that_seeds_again_repeats_and_each_draw_is_another(notebook):
    code = """
seed(); first, second = draw_seeds(), draw_seeds()
seed(); again = draw_seeds()
seed(); expected = draw()
seed(); given = draw_seeds(5); undisturbed = draw()
result = again == first, differ(numbers(first), numbers(second)), undisturbed == expected, numbers(given)
"""
    assert notebook.kernel(DRAW, code) == (True, True, True, (5, 5, 5))


def test_ranks_draw_different_numbers_and_a_rank_repeats(notebook):
    notebook.kernel("")
    code = """
def drawn(rank):
    apply_surroundings(surroundings, rank=rank, nprocs=3)
    return draw()
first, other, again = drawn(0), drawn(1), drawn(0)
result = differ(first, other), again == first
"""
    assert notebook.worker(DRAW + code) == (True, True)


OPENCV = "seeds, threads = [], []\nsetRNGSeed, setNumThreads = seeds.append, threads.append"


def test_opencvs_generator_is_seeded_in_each_rank(notebook, tmp_path):
    (tmp_path / "cv2.py").write_text(OPENCV)
    notebook.kernel(f"import sys\nsys.path.insert(0, {str(tmp_path)!r})")
    code = """
import cv2
for other in (2, 1): apply_surroundings(surroundings, rank=other, nprocs=3)
first, second, again = cv2.seeds
result = abs(second - first) > 1, again == first, 0 <= first < 2**31
"""
    assert notebook.worker(code, rank=1) == (True, True, True)


def test_a_library_that_the_notebook_has_not_imported_gets_what_random_drew(notebook):
    code = (
        "from nbshm.notebook.seeds import draw_seeds as d\ns = d()\nresult = s.random == s.torch == s.numpy"
    )
    assert notebook.kernel("", code) is True


@pytest.mark.parametrize(
    ("asked", "own", "threads"),
    [(None, None, 2), (3, None, 3), (None, "5", 5), (3, "5", 3), (None, "4,2", None), (None, "0", None)],
)
def test_threads_are_what_was_asked_for_else_the_persons_own_else_the_share(asked, own, threads):
    assert threads_per_worker(asked, 2, {} if own is None else {"OMP_NUM_THREADS": own}) == threads


def test_the_blas_and_later_libraries_get_the_workers_share_of_threads(notebook):
    notebook.kernel("")
    code = (
        "import os, threadpoolctl\n"
        "pools = [pool['num_threads'] for pool in threadpoolctl.threadpool_info()]\n"
        "result = os.environ['OMP_NUM_THREADS'], set(pools)"
    )
    before = "import numpy, threadpoolctl\nthreadpoolctl.threadpool_limits(7)"
    assert notebook.worker(code, before=before) == ("2", {2})


def test_libraries_with_threads_of_their_own_get_the_workers_share(notebook, tmp_path):
    (tmp_path / "cv2.py").write_text(OPENCV)
    path = f"import os, sys\nsys.path.append({str(tmp_path)!r})"
    notebook.kernel(f"{path}\nos.environ['POLARS_MAX_THREADS'] = '7'")
    names = ["POLARS_MAX_THREADS", "RAYON_NUM_THREADS"]
    code = f"{path}\nimport cv2\nresult = *(os.environ[name] for name in {names}), cv2.threads"
    assert notebook.worker(code) == ("7", "2", [2])


def test_libraries_of_a_forked_kernel_keep_the_threads_that_they_have_started(notebook, tmp_path):
    (tmp_path / "cv2.py").write_text(OPENCV)
    (tmp_path / "polars.py").write_text("")
    before = f"import os, sys\nsys.path.append({str(tmp_path)!r})\nimport cv2, polars"
    notebook.kernel(before)
    assert notebook.worker("result = 'POLARS_MAX_THREADS' in os.environ, cv2.threads", before=before) == (
        False,
        [],
    )
