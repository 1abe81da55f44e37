"""The state of libraries that a notebook may have changed, and that its workers take over.

Each library's `read` stands beside its `write`: one is called in the kernel with the library that the
notebook has imported, the other in a worker when that has imported it too. Nothing is imported for it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeAlias

import cloudpickle

from nbshm.attributes import followed
from nbshm.notebook.colormaps import register_colormaps, registered_colormaps

State: TypeAlias = dict[str, Any]

INLINE = "module://matplotlib_inline.backend_inline"
# They draw into files. Any other back end opens windows, or talks to a front end that a worker doesn't have.
_FILE_BACKENDS = frozenset({"agg", "cairo", "pdf", "pgf", "ps", "svg", "template"})
_BACKEND_SETTINGS = frozenset({"backend", "backend_fallback"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """How the state of a library is read and written; both get the imported library."""

    read: Callable[[ModuleType], State]
    write: Callable[[ModuleType, State], None]


def read_libraries() -> dict[str, bytes]:
    """Read the state of those libraries that are imported here, by name, ready for `write_library`."""
    return {
        name: cloudpickle.dumps(library.read(sys.modules[name]))
        for name, library in LIBRARIES.items()
        if name in sys.modules
    }


def write_library(name: str, module: ModuleType, state: bytes) -> None:
    """Put a library, imported here, into the state that was read elsewhere."""
    LIBRARIES[name].write(module, cloudpickle.loads(state))


def worker_backend(backend: str | None) -> str:
    """Choose a worker's matplotlib back end: the notebook's if it draws into files, else figures inline."""
    return backend if backend is not None and backend.lower() in _FILE_BACKENDS else INLINE


_PRINTING = ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")  # what `set_printoptions` takes
# What tells of each of torch's switches, and what sets it. Not all of them are in every torch.
_SWITCHES = {
    "get_default_dtype": "set_default_dtype",
    # `use_deterministic_algorithms` would import the compiler, for two seconds, only to tell it too.
    "get_deterministic_debug_mode": "set_deterministic_debug_mode",
    "is_grad_enabled": "set_grad_enabled",
    "is_warn_always_enabled": "set_warn_always",
    "multiprocessing.get_sharing_strategy": "multiprocessing.set_sharing_strategy",
    "_C._is_multithreading_enabled": "autograd.set_multithreading_enabled",
    "sparse.check_sparse_tensor_invariants.is_enabled": "_C._set_check_sparse_tensor_invariants",
    "__future__.get_overwrite_module_params_on_conversion": (
        "__future__.set_overwrite_module_params_on_conversion"
    ),
    "__future__.get_swap_module_params_on_conversion": "__future__.set_swap_module_params_on_conversion",
    "backends.mha.get_fastpath_enabled": "backends.mha.set_fastpath_enabled",
    "backends.cuda.flash_sdp_enabled": "backends.cuda.enable_flash_sdp",
    "backends.cuda.mem_efficient_sdp_enabled": "backends.cuda.enable_mem_efficient_sdp",
    "backends.cuda.math_sdp_enabled": "backends.cuda.enable_math_sdp",
    "backends.cuda.cudnn_sdp_enabled": "backends.cuda.enable_cudnn_sdp",
}
# Those that are attributes, in an order in which they can be set.
_ATTRIBUTES = (
    "backends.cudnn.enabled",
    "backends.cudnn.deterministic",
    "backends.cudnn.benchmark",
    "backends.mkldnn.enabled",
    "backends.cuda.matmul.allow_fp16_reduced_precision_reduction",
    "backends.cuda.matmul.allow_bf16_reduced_precision_reduction",
    "backends.opt_einsum.strategy",  # only while it is enabled
    "backends.opt_einsum.enabled",
    "utils.deterministic.fill_uninitialized_memory",
    "distributions.Distribution._validate_args",  # which `set_default_validate_args` sets
)


def _read_torch(torch: ModuleType) -> State:
    return {
        "device": _default_device(torch),
        "switches": {path: tell() for path in _SWITCHES if (tell := followed(torch, path.split(".")))},
        "attributes": {path: followed(torch, path.split(".")) for path in _ATTRIBUTES},
        "precision": dict(_precisions(torch)),
        "anomalies": (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()),
        "print": {name: getattr(torch._tensor_str.PRINT_OPTS, name) for name in _PRINTING},  # noqa: SLF001  # no public door
    }


def _write_torch(torch: ModuleType, state: State) -> None:
    if state["device"] is not None:
        torch.set_default_device(state["device"])
    for path, value in state["switches"].items():
        followed(torch, _SWITCHES[path].split("."))(value)
    for path, value in state["attributes"].items():
        *owner, name = path.split(".")
        if followed(torch, path.split(".")) != value:
            setattr(followed(torch, owner), name, value)
    for path, value in state["precision"].items():
        _set_precision(torch, path, value)
    torch.autograd.set_detect_anomaly(*state["anomalies"])
    torch.set_printoptions(**state["print"])


def _read_dynamo(dynamo: ModuleType) -> State:
    stance = followed(dynamo, ("eval_frame", "_stance"))  # it came with torch 2.6
    if stance is None:
        return {}
    return {
        "stance": stance.stance,
        "skip_guard_eval_unsafe": stance.skip_guard_eval_unsafe,
        "force_backend": stance.backend,
    }


def _write_dynamo(dynamo: ModuleType, state: State) -> None:
    if state:
        dynamo.set_stance(**state)


def _read_inductor(config: ModuleType) -> State:
    return {"deterministic": getattr(config, "deterministic", None)}  # it came with torch 2.9


def _write_inductor(config: Any, state: State) -> None:
    if state["deterministic"] is not None:
        config.deterministic = state["deterministic"]


def _default_device(torch: ModuleType) -> str | None:
    """Return the default device, None for the CPU: a device that is set makes each torch function slower."""
    if not hasattr(torch, "get_default_device"):  # it came with torch 2.3
        return None
    device = torch.get_default_device()
    return None if device.type == "cpu" else str(device)


_PRECISIONS = ("cuda.matmul", "cudnn.conv", "cudnn.rnn", "mkldnn.matmul", "mkldnn.conv", "mkldnn.rnn")


def _precisions(torch: ModuleType) -> Iterator[tuple[str, str]]:
    """Read the precisions of float32 arithmetic, under "" if they were set as a whole."""
    try:
        yield "", torch.get_float32_matmul_precision()
    except RuntimeError:  # from 2.9 on torch refuses to answer if they were set one by one
        for path in _PRECISIONS:
            backend = _backend(torch, path)
            if backend is not None and backend.fp32_precision != "none":
                yield path, backend.fp32_precision


def _set_precision(torch: ModuleType, path: str, value: str) -> None:
    if path:
        _backend(torch, path).fp32_precision = value
    elif torch.get_float32_matmul_precision() != value:
        torch.set_float32_matmul_precision(value)


def _backend(torch: ModuleType, path: str) -> Any:
    found = followed(torch.backends, path.split("."))
    return found if hasattr(found, "fp32_precision") else None


def _read_numpy(numpy: ModuleType) -> State:
    return {"print": numpy.get_printoptions(), "errors": numpy.geterr()}


def _write_numpy(numpy: ModuleType, state: State) -> None:
    numpy.set_printoptions(**state["print"])
    numpy.seterr(**state["errors"])


def _read_pandas(pandas: ModuleType) -> State:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an option that is on its way out says so to whoever reads it
        return dict(_options(pandas.options, ""))


def _write_pandas(pandas: ModuleType, state: State) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here = dict(_options(pandas.options, ""))
        for name, value in _changed(state, here).items():
            pandas.set_option(name, value)


def _options(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Walk through `pandas.options`, whose groups are attributes with attributes."""
    for name in dir(group):
        value = getattr(group, name)
        if type(value) is type(group):
            yield from _options(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _read_matplotlib(matplotlib: ModuleType) -> State:
    # Asking in the ordinary way for a back end that nobody has chosen would choose and load one.
    backend = dict.get(matplotlib.rcParams, "backend")
    default = matplotlib.rcParamsDefault
    names = [name for name in matplotlib.rcParams if name not in _BACKEND_SETTINGS]
    return {
        "backend": backend if isinstance(backend, str) else None,
        "changed": {n: matplotlib.rcParams[n] for n in names if matplotlib.rcParams[n] != default[n]},
        "colormaps": registered_colormaps(matplotlib),
    }


def _write_matplotlib(matplotlib: ModuleType, state: State) -> None:
    matplotlib.use(worker_backend(state["backend"]))
    register_colormaps(matplotlib, state["colormaps"])  # settings may name them
    matplotlib.rcParams.update(state["changed"])


_INLINE_SETTINGS = ("figure_formats", "print_figure_kwargs", "close_figures", "rc")


def _read_inline(config: ModuleType) -> State:
    """Read what `%config InlineBackend` sets, where that is there yet."""
    kind = config.InlineBackend
    return {name: getattr(kind.instance(), name) for name in _INLINE_SETTINGS} if kind.initialized() else {}


def _write_inline(config: ModuleType, state: State) -> None:
    for name, value in state.items():
        setattr(config.InlineBackend.instance(), name, value)


def _read_decimal(decimal: ModuleType) -> State:
    return {"context": decimal.getcontext()}


def _write_decimal(decimal: ModuleType, state: State) -> None:
    decimal.setcontext(state["context"])


def _read_xarray(xarray: ModuleType) -> State:
    return dict(xarray.get_options())


def _write_xarray(xarray: ModuleType, state: State) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as for pandas
        xarray.set_options(**_changed(state, xarray.get_options()))


def _read_sklearn(sklearn: ModuleType) -> State:
    return dict(sklearn.get_config())


def _write_sklearn(sklearn: ModuleType, state: State) -> None:
    sklearn.set_config(**_changed(state, sklearn.get_config()))


def _changed(state: State, here: Mapping[str, Any]) -> State:
    """Return the options that are different here; to set any may check much."""
    return {name: value for name, value in state.items() if name in here and here[name] != value}


_MPMATH = ("mp.prec", "mp.pretty", "mp.trap_complex", "iv.prec")  # `dps` is `prec` in other words


def _read_mpmath(mpmath: ModuleType) -> State:
    return {path: followed(mpmath, path.split(".")) for path in _MPMATH}


def _write_mpmath(mpmath: ModuleType, state: State) -> None:
    for path, value in state.items():
        context, name = path.split(".")
        setattr(getattr(mpmath, context), name, value)


def _read_cvxpy(utils: ModuleType) -> State:
    return {"count": utils.ID_COUNTER.count}


def _write_cvxpy(utils: ModuleType, state: State) -> None:
    utils.ID_COUNTER.count = state["count"]


LIBRARIES = {
    "torch": Library(read=_read_torch, write=_write_torch),
    "torch._dynamo": Library(read=_read_dynamo, write=_write_dynamo),
    "torch._inductor.config": Library(read=_read_inductor, write=_write_inductor),
    "numpy": Library(read=_read_numpy, write=_write_numpy),
    "pandas": Library(read=_read_pandas, write=_write_pandas),
    "matplotlib": Library(read=_read_matplotlib, write=_write_matplotlib),
    "matplotlib_inline.config": Library(read=_read_inline, write=_write_inline),
    "decimal": Library(read=_read_decimal, write=_write_decimal),
    "xarray": Library(read=_read_xarray, write=_write_xarray),
    "sklearn": Library(read=_read_sklearn, write=_write_sklearn),
    "mpmath": Library(read=_read_mpmath, write=_write_mpmath),
    "cvxpy.lin_ops.lin_utils": Library(read=_read_cvxpy, write=_write_cvxpy),
}
