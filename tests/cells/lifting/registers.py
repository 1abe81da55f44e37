import copyreg, torch
from torch.distributions import Normal, kl_divergence, register_kl
from torch.utils.data import default_collate
from torch.utils.data._utils.collate import default_collate_fn_map
class Mine(Normal): pass
@register_kl(Mine, Normal)
def closeness(p, q): return torch.tensor(FAR)
FAR = 42.
class Graph:
    def __init__(self, x): self.x = x
default_collate_fn_map[Graph] = lambda batch, *, collate_fn_map=None: Graph(sum(each.x for each in batch))
class Handle:
    def __init__(self, number): self.number = number
    def __reduce__(self): raise TypeError
copyreg.pickle(Handle, lambda handle: (Handle, (handle.number + 1,)))
p, handle = Mine(0., 1.), Handle(1)
# %%
%%parallel nprocs=2 out=back
back = kl_divergence(p, Normal(0., 1.)).item(), default_collate([Graph(1), Graph(2)]).x, handle
# %%
assert [(a, b, h.number) for a, b, h in back] == [(42, 3, 3)] * 2, back
