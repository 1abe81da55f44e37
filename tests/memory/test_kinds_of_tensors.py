"""Each kind of tensor in a real kernel, written to from two ranks; and those that are refused."""

from __future__ import annotations

import pytest
import torch
from kernels import Kernel
from kinds import Kind, problems_of

SETUP = """
class Tagged(torch.Tensor): pass
class Seen(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})
class Loud(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise RuntimeError("looked at")
class Weight(nn.Parameter): pass
class Own(torch.Tensor):
    def __reduce_ex__(self, protocol): return remade, (self.as_subclass(torch.Tensor),)
def remade(tensor): return tensor.as_subclass(Own)
Pair = collections.namedtuple("Pair", "first second")
@dataclasses.dataclass
class Box:
    t: object
class Slotted:
    __slots__ = ("t",)
def slotted():
    made = Slotted()
    made.t = torch.zeros(3)
    return made
class Dictionary:
    def __init__(self, **tensors): self._tensors = tensors
    def __getitem__(self, key): return self._tensors[key]
    def __getattr__(self, key):
        try: return self.__dict__["_tensors"][key]
        except KeyError: raise AttributeError(key)
class Temporaries:
    def __init__(self): self.t = torch.zeros(3)
    def __getstate__(self): return {"t": self.t, "made": [torch.full((999,), float(n)) for n in range(50)]}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)
        self.b.weight = self.a.weight
        self.register_buffer("kept", torch.zeros(3))
        self.register_buffer("passing", torch.zeros(3), persistent=False)
        self.tail = self.passing[1:]
        self.many = nn.ParameterList([nn.Parameter(torch.zeros(3))])
        self.named = nn.ParameterDict({"k": nn.Parameter(torch.zeros(3))})
        self.calls = torch.zeros(3)
        self.register_forward_hook(self.count)
    def count(self, *_): self.calls[rank] = 1
    def forward(self, x): return self.b(self.a(x))
rank = 0
class Lookahead(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {})
        self.inner, self.calls = torch.optim.SGD(self.param_groups, lr=0.5), torch.zeros(3)
        self.register_step_post_hook(lambda *_: self.calls[rank].add_(1))
    def step(self): self.inner.step()
def scheduled():
    net = nn.Linear(2, 1, bias=False)
    net.weight.data.zero_()
    optimizer = Lookahead([net.weight])
    return net.weight, optimizer, torch.optim.lr_scheduler.ConstantLR(optimizer.inner)
def step(weight, optimizer, scheduler):
    weight.grad = torch.zeros(1, 2)
    weight.grad[0, rank] = -1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.step()
        scheduler.step()
def trained():
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=torch.tensor(0.1))
    net(torch.ones(2)).sum().backward()
    optimizer.step()
    net.calls.zero_()
    return net, optimizer
class Computing(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))
        self.other = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3))
def computed():
    module = Computing()
    return module, torch.optim.SGD(module.parameters(), lr=0.1)
def hooked():
    leaf = torch.zeros(3, requires_grad=True)
    leaf.register_hook(double)
    leaf.register_post_accumulate_grad_hook(shift)
    return leaf
def double(grad): return grad * 2
def shift(leaf): leaf.grad += 1
def tagged(tensor, **attributes):
    vars(tensor).update(attributes)
    return tensor
def first(box):
    if hasattr(box, "t"): return box.t
    if hasattr(box, "values"): return next(iter(box.values()))
    return next(iter(box))
def with_grad(leaf):
    leaf.grad = torch.zeros(3)
    return leaf
def inferred():
    with torch.inference_mode(): return torch.zeros(3)
def conjugated():
    base = torch.zeros(3, dtype=torch.complex64)
    return base, base.conj(), base.conj().imag
def viewed():
    base = torch.zeros(6)
    return base[:4], base[1:], base.view(2, 3).t(), base.as_strided((4, 3), (1, 1))
def quantized(dtype):
    return torch.quantize_per_channel(torch.zeros(3, 4), torch.ones(3), torch.zeros(3), 0, dtype)
def not_memory(): return torch.Size([1]), torch.float8_e5m2, torch.device("cpu"), torch.jagged
def written(net):
    parts = net.many[0], net.named["k"], net.kept, net.passing, net.calls
    return all(part.tolist() == [1, 1, 0] for part in parts) and net.tail.tolist() == [1, 0]
def plain(tensor): return tensor.detach().as_subclass(torch.Tensor)
def quiet(tensor):
    with torch._C.DisableTorchFunctionSubclass(): return tensor.as_subclass(torch.Tensor)
"""

DTYPES = sorted(
    {str(value).removeprefix("torch.") for value in vars(torch).values() if isinstance(value, torch.dtype)}
    - {"qint8", "qint32", "quint8", "quint4x2", "quint2x4"}
)
EVERY_DTYPE = [
    Kind(
        name=f"torch.{name}",
        make=f"torch.zeros(32, dtype=torch.uint8).view(torch.{name})",
        arrives=f"it.dtype is torch.{name}",
        write="it.view(torch.uint8)[rank] = 1",
        holds="it.view(torch.uint8)[:3].tolist() == [1, 1, 0]",
    )
    for name in DTYPES
]

BOXES = [
    "[{}]",
    "({},)",
    "{{'a': {}}}",
    "{{{}}}",
    "Pair({}, 1)",
    "Box({})",
    "slotted()",
    "collections.deque([{}])",
    "collections.OrderedDict(a={})",
    "collections.defaultdict(list, a={})",
    "collections.UserDict(a={})",
    "collections.ChainMap({{'a': {}}})",
    "types.SimpleNamespace(t={})",
    "types.MappingProxyType({{'a': {}}})",
    "[[({},)]][0][0]",
]
IN_A_BOX = [
    Kind(
        name=f"in {box}",
        make=box.format("torch.zeros(3)"),
        write="first(it)[rank] = 1",
        holds="first(it).tolist() == [1, 1, 0]",
    )
    for box in BOXES
]

SPARSE = [
    Kind(
        name=layout,
        make=f"torch.eye(4).to_sparse(layout=torch.{layout}{blocks})",
        arrives=f"it.layout is torch.{layout} and it.shape == (4, 4)",
        write="it.values().view(-1)[rank] = 7",
        holds="it.values().view(-1)[:2].tolist() == [7, 7] and it.to_dense()[0, 0] == 7",
    )
    for layout, blocks in [
        ("sparse_coo", ""),
        ("sparse_csr", ""),
        ("sparse_csc", ""),
        ("sparse_bsr", ", blocksize=(2, 2)"),
        ("sparse_bsc", ", blocksize=(2, 2)"),
    ]
]

NO_GRAD = "with torch.no_grad(): it[rank] = 1"
LIST = "it.tolist() == [1, 1, 0]"

KINDS = [
    *EVERY_DTYPE,
    *IN_A_BOX,
    *SPARSE,
    Kind(
        name="sparse, uncoalesced, a leaf",
        make="torch.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (2, 3), requires_grad=True)",
        arrives="not it.is_coalesced() and it.requires_grad and it.is_leaf",
        write="it.detach()._values()[rank] = 7",
        holds="it.detach()._values().tolist() == [7, 7]",
    ),
    Kind(
        name="sparse, hybrid",
        make="torch.sparse_coo_tensor([[0, 1]], torch.zeros(2, 3), (2, 3))",
        write="it._values()[rank] = 7",
        holds="it._values().eq(7).all()",
    ),
    Kind(
        name="sparse, empty",
        make="torch.sparse_coo_tensor(size=(3, 3))",
        write="",
        holds="it.shape == (3, 3)",
    ),
    Kind(
        name="a sparse parameter",
        make="nn.Parameter(torch.eye(2).to_sparse())",
        arrives="type(it) is nn.Parameter and it.requires_grad",
        write="it.detach()._values()[rank] = 7",
        holds="it.detach()._values().tolist() == [7, 7]",
    ),
    Kind(name="no elements", make="torch.zeros(0, 4)", write="", holds="it.shape == (0, 4)"),
    Kind(name="no dimensions", make="torch.zeros(4)[2]", write="it.fill_(3)", holds="it.item() == 3"),
    Kind(
        name="views of one storage",
        make="viewed()",
        arrives="it[2].stride() == (1, 3)",
        write="it[0][1 + rank] = 5",
        holds="[it[1][0].item(), it[2][1, 0].item(), it[3][1, 1].item()] == [5, 5, 5]",
    ),
    Kind(
        name="expanded",
        make="torch.zeros(3, 1).expand(3, 5)",
        arrives="it.stride() == (1, 0)",
        write="it[rank, 0] = 1",
        holds="it[:, 4].tolist() == [1, 1, 0]",
    ),
    Kind(
        name="channels last",
        make="torch.zeros(1, 2, 3, 3).to(memory_format=torch.channels_last)",
        arrives="it.is_contiguous(memory_format=torch.channels_last)",
        write="it[0, rank] = 1",
        holds="it.eq(1).all()",
    ),
    Kind(
        name="conjugate and negative",
        make="conjugated()",
        arrives="it[1].is_conj() and it[2].is_neg()",
        write="it[0][rank] = 1 + 2j",
        holds="it[1][1] == 1 - 2j and it[2].tolist() == [-2, -2, 0]",
    ),
    Kind(
        name="quantized",
        make="torch.quantize_per_tensor(torch.zeros(3), 0.5, 1, torch.qint8)",
        arrives="(it.q_scale(), it.q_zero_point()) == (0.5, 1)",
        write="it[rank] = 1.0",
        holds="it.dequantize().tolist() == [1, 1, 0]",
    ),
    Kind(
        name="quantized by channel",
        make="quantized(torch.quint8)",
        arrives="it.q_per_channel_axis() == 0",
        write="",
        holds="it.dequantize().eq(0).all()",
    ),
    Kind(name="two elements a byte", make="quantized(torch.quint4x2)", write="", holds="it.shape == (3, 4)"),
    Kind(
        name="nested",
        make="torch.nested.nested_tensor([torch.zeros(2, 3), torch.zeros(1, 3)])",
        write="it.unbind()[0][rank] = 4",
        holds="it.unbind()[0].eq(4).all() and it.unbind()[1].eq(0).all()",
    ),
    Kind(
        name="jagged",
        make="torch.nested.nested_tensor([torch.zeros(2, 3), torch.zeros(1, 3)], layout=torch.jagged)",
        write="it.values()[rank] = 4",
        holds="it.unbind()[0].eq(4).all() and it.unbind()[1].eq(0).all()",
    ),
    Kind(
        name="packed sequence",
        make="nn.utils.rnn.pack_sequence([torch.zeros(3), torch.zeros(2)])",
        arrives="type(it) is nn.utils.rnn.PackedSequence",
        write="it.data[rank] = 1",
        holds="it.data.tolist() == [1, 1, 0, 0, 0]",
    ),
    Kind(
        name="attributes",
        make="tagged(torch.zeros(3), tag=[1], other=torch.zeros(3))",
        arrives="it.tag == [1]",
        write="it[rank] = it.other[rank] = 1",
        holds="it.tolist() == it.other.tolist() == [1, 1, 0]",
    ),
    Kind(
        name="a class",
        make="tagged(torch.zeros(3).as_subclass(Tagged), tag=[1])",
        arrives="type(it) is Tagged and it.tag == [1]",
        holds=LIST,
    ),
    Kind(
        name="a class that intercepts",
        make="torch.zeros(3).as_subclass(Seen)",
        arrives="type(it) is Seen",
        holds=LIST,
    ),
    Kind(
        name="a class that lets nobody look",
        make="torch.zeros(3).as_subclass(Loud)",
        arrives="type(it) is Loud",
        write="quiet(it)[rank] = 1",
        holds="quiet(it).tolist() == [1, 1, 0]",
    ),
    Kind(
        name="a class with a grad",
        make="with_grad(torch.zeros(3).as_subclass(Tagged).requires_grad_())",
        arrives="it.is_leaf and it.requires_grad",
        write="it.grad[rank] = 1",
        holds="plain(it.grad).tolist() == [1, 1, 0]",
    ),
    Kind(
        name="a class that pickles itself",
        make="remade(torch.zeros(3))",
        arrives="type(it) is Own",
        holds=LIST,
    ),
    Kind(
        name="a parameter",
        make="tagged(nn.Parameter(torch.zeros(3)), tag=[1])",
        arrives="type(it) is nn.Parameter and it.tag == [1]",
        write=NO_GRAD,
        holds=LIST,
    ),
    Kind(
        name="a class of parameters",
        make="tagged(Weight(torch.zeros(3), requires_grad=False), tag=[1])",
        arrives="type(it) is Weight and it.tag == [1] and not it.requires_grad",
        write=NO_GRAD,
        holds=LIST,
    ),
    Kind(name="a buffer", make="nn.Buffer(torch.zeros(3))", arrives="isinstance(it, nn.Buffer)", holds=LIST),
    Kind(
        name="a parameter to come",
        make="nn.LazyLinear(3)",
        write="",
        holds="type(it.weight) is nn.UninitializedParameter",
    ),
    Kind(
        name="a grad",
        make="with_grad(nn.Parameter(torch.zeros(3)))",
        write="it.grad[rank] = 1",
        holds="it.grad.tolist() == [1, 1, 0]",
    ),
    Kind(
        name="no grad yet",
        make="torch.zeros(3, requires_grad=True)",
        arrives="it.is_leaf and it.requires_grad",
        write="(it * 2).sum().backward(); assert it.grad.tolist() == [2, 2, 2]; it.grad = None",
        holds="it.grad is None",
    ),
    Kind(
        name="hooks",
        make="hooked()",
        write="(it * 1).sum().backward(); assert it.grad.tolist() == [3, 3, 3]; it.grad = None\n"
        "it.register_hook(double); it.sum().backward(); assert it.grad[0] == 5; it.grad = None",
        holds="it.is_leaf",
    ),
    Kind(
        name="an optimizer with attributes and hooks, and a scheduler",
        make="scheduled()",
        arrives="it[2].optimizer is it[1].inner and it[1].param_groups[0]['params'][0] is it[0]",
        write="step(*it)",
        holds="it[1].calls.tolist() == [1, 1, 0] and it[0].gt(0).all()",
    ),
    Kind(
        name="a model and its optimizer",
        make="trained()",
        arrives="it[0].a.weight is it[0].b.weight is it[1].param_groups[0]['params'][0]",
        write="net, optimizer = it; net(torch.ones(2))\n"
        "with torch.no_grad(): net.many[0][rank] = net.named['k'][rank] = 1\n"
        "net.kept[rank] = net.passing[rank] = 1; net.a.weight.grad[rank] = 9\n"
        "optimizer.state[net.a.bias]['exp_avg'][rank] = 4; optimizer.param_groups[0]['lr'].fill_(0.5)",
        holds="written(it[0]) and it[0].b.weight.grad.eq(9).all()"
        " and it[1].state[it[0].a.bias]['exp_avg'].tolist() == [4, 4]"
        " and it[1].param_groups[0]['lr'] == 0.5"
        " and it[0].a.weight is it[0].b.weight and 'passing' not in it[0].state_dict()",
    ),
    Kind(
        name="modules with computed parameters",
        make="computed()",
        arrives="type(it[0].linear).__name__ == 'ParametrizedLinear'"
        " and it[1].param_groups[0]['params'][0] is it[0].linear.bias",
        write="norms = it[0].linear.parametrizations.weight\n"
        "with torch.no_grad(): norms.original1[rank] = 5; norms.original0[rank] = 2\n"
        "it[0].other.parametrizations.weight[0]._u[rank] = 1",
        holds="(it[0].linear.weight[:2].norm(dim=1) - 2).abs().max() < 1e-5"
        " and it[0].linear.parametrizations.weight.original1[:2].eq(5).all()"
        " and it[0].other.parametrizations.weight[0]._u[:2].tolist() == [1, 1]",
    ),
    Kind(
        name="temporaries of __getstate__",
        make="Temporaries()",
        arrives="all(t.eq(n).all() for n, t in enumerate(it.made))",
        write="it.t[rank] = 1",
        holds="it.t.tolist() == [1, 1, 0]",
    ),
    Kind(
        name="a dictionary of tensors",
        make="Dictionary(x=torch.zeros(3))",
        write="it['x'][rank] = 1",
        holds="it.x.tolist() == [1, 1, 0]",
    ),
    Kind(
        name="a generator",
        make="torch.Generator().manual_seed(7)",
        write="",
        holds="it.clone_state().initial_seed() == 7",
    ),
    Kind(
        name="what is not memory",
        write="",
        make="not_memory()",
        holds="it == not_memory() and type(it[0]) is torch.Size",
    ),
    Kind(
        name="storages",
        make="(torch.zeros(3).untyped_storage(), torch.zeros(3).storage())",
        write="it[0][rank] = it[1][rank] = 1",
        holds="list(it[0])[:3] == list(it[1]) == [1, 1, 0]",
    ),
    Kind(name="made in inference mode", make="inferred()", holds=LIST),
    Kind(
        name="a distribution",
        make="torch.distributions.Normal(torch.zeros(3), torch.ones(3))",
        write="it.loc[rank] = 1",
        holds="it.loc.tolist() == [1, 1, 0]",
    ),
    Kind(
        name="a dataset",
        make="torch.utils.data.TensorDataset(torch.zeros(3))",
        write="it.tensors[0][rank] = 1",
        holds="it.tensors[0].tolist() == [1, 1, 0]",
    ),
]


@pytest.fixture(scope="module")
def problems(shared_notebook: Kernel) -> dict[str, str]:
    return problems_of(shared_notebook, KINDS, setup=SETUP)


@pytest.mark.parametrize("name", [kind.name for kind in KINDS])
def test_each_kind_of_tensor_is_shared(problems: dict[str, str], name: str) -> None:
    assert name not in problems, problems[name]
    assert f"{name} in rank 0" not in problems, problems[f"{name} in rank 0"]


REFUSED = """
from torch import nn
from torch.nn.utils import prune
graph = torch.ones(2, requires_grad=True) * 2
history = {"loss": [graph]}
leaf = torch.ones(2, requires_grad=True)
(leaf ** 3).sum().backward(create_graph=True)
meta, private = torch.empty(3, device="meta"), torch.zeros(2, 2).to_mkldnn()
raw = torch.empty(3, dtype=torch.qint8)
pruned = nn.ModuleDict({"one": nn.Sequential(nn.Linear(2, 2))})
prune.l1_unstructured(pruned["one"][0], "weight", 0.5)
class Recurrent(nn.Module):
    def __init__(self, last):
        super().__init__()
        self.cell = nn.Linear(2, 2)
        self.cell.last = last
recurrent = Recurrent(graph)
def keep(x):
    global inner
    inner = x
    return x.sum()
torch.func.vmap(keep)(torch.zeros(2, 3)); batched = inner
torch.func.grad(keep)(torch.zeros(3)); wrapped = inner
from torch._subclasses.fake_tensor import FakeTensorMode
with FakeTensorMode(): fake = torch.empty(3)
def closed():
    held = graph
    return lambda: held
by_closure = closed()
"""
GRAPH = "it is part of an autograd graph, which can't cross processes"
INNER = "it belongs to a transform of torch.func, outside of which it has no data"
INSIDE = "Make it inside the cell."


@pytest.fixture(scope="module")
def refusing(shared_notebook: Kernel) -> Kernel:
    shared_notebook.run("import torch, warnings; warnings.simplefilter('ignore')\n" + REFUSED).check()
    return shared_notebook


@pytest.mark.parametrize(
    ("name", "path", "reason", "remedy"),
    [
        ("graph", "graph", GRAPH, "Use graph.detach()."),
        ("history", "history['loss'][0]", GRAPH, "Use history['loss'][0].detach()."),
        (
            "pruned",
            "pruned['one'][0].weight",
            GRAPH,
            "Use pruned['one'][0].weight = pruned['one'][0].weight.detach().",
        ),
        (
            "recurrent",
            "recurrent.cell.last",
            GRAPH,
            "Use recurrent.cell.last = recurrent.cell.last.detach().",
        ),
        ("by_closure", "by_closure (its closure)", GRAPH, "Use its detach()."),
        ("leaf", "leaf", f"its grad{GRAPH[2:]}", "Use leaf.grad.detach_()."),
        ("meta", "meta", "it is a meta tensor, which has no data", INSIDE),
        ("fake", "fake", "it is a fake tensor, which has no data", INSIDE),
        ("private", "private", "its layout is private to MKL-DNN", "Use private.to_dense()."),
        (
            "raw",
            "raw",
            "it is of torch.qint8 without a quantizer",
            "Make it with torch.quantize_per_tensor().",
        ),
        ("batched", "batched", INNER, "Use what the transform returns."),
        ("wrapped", "wrapped", INNER, "Use what the transform returns."),
    ],
)
def test_what_cannot_be_shared_is_refused_by_its_name(
    refusing: Kernel, name: str, path: str, reason: str, remedy: str
) -> None:
    reply = refusing.run(f"%%parallel nprocs=2\n{name}")
    assert reply.error is not None, reply.text
    assert reply.error[0] == "CannotSend"
    assert reply.error[1] == f"cannot share '{path}': {reason} (used by line 2 of this cell). {remedy}"
    assert not reply.streams, "nothing may be said of ranks: none was started"


def test_ranks_do_not_warn_of_tensors_that_the_notebook_has_made(shared_notebook: Kernel) -> None:
    shared_notebook.run(
        "import torch, warnings\nwarnings.simplefilter('ignore')\n"
        "few, many = torch.eye(4).to_sparse_csr(), torch.nested.nested_tensor([torch.zeros(2)])\n"
        "half = torch.zeros(2, dtype=torch.complex32)\n"
        "warnings.simplefilter('default')"
    ).check()
    assert shared_notebook.run("%%parallel nprocs=2\nfew, many, half;").check().text == ""


def test_a_loader_that_keeps_its_workers_travels_without_them(shared_notebook: Kernel) -> None:
    shared_notebook.run(
        "import torch\nfrom torch.utils.data import DataLoader, TensorDataset\n"
        "data = TensorDataset(torch.zeros(8))\n"
        "loader = DataLoader(data, 2, num_workers=1, persistent_workers=True)\n"
        "list(loader)"
    ).check()
    reply = shared_notebook.run("%%parallel nprocs=2\nsum(len(rows) for rows, in loader)").check()
    assert reply.result == {"text/plain": "[8, 8]"}
    assert shared_notebook.value("loader._iterator is not None and len(list(loader)) == 4") is True
    shared_notebook.run("del loader").check()


HOGWILD = """
model = nn.Linear(1, 1, bias=False)
nn.init.zeros_(model.weight)
lock = torch.multiprocessing.get_context("spawn").Lock()
nn.Linear(2, 1)(torch.ones(2)).sum().backward()  # autograd has threads in the notebook from now on
grads, count = torch.zeros(2), torch.zeros(1, dtype=torch.int64)
"""


def test_ranks_that_train_one_model_under_a_lock_lose_no_step(shared_notebook: Kernel) -> None:
    shared_notebook.run("import torch\nfrom torch import nn\n" + HOGWILD).check()
    shared_notebook.run(
        "%%parallel nprocs=2\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.125)\n"
        "for _ in range(50):\n"
        "    with lock:\n"
        "        optimizer.zero_grad()\n"
        "        model(torch.ones(1, 1)).sum().backward()\n"
        "        optimizer.step()\n"
        "        count += 1\n"
        "grads[rank] = model.weight.grad.item()"
    ).check()
    shared_notebook.run(
        "assert (model.weight.item(), count.item(), grads.tolist()) == (-12.5, 100, [1, 1])\n"
        "assert model.weight.grad is None"
    ).check()
