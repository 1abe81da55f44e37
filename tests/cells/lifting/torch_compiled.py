import torch
def wave(x):
    return torch.sin(x) + shift
shift = 1
fast = torch.compile(wave, backend="eager", fullgraph=True)
by_default = torch.compile(wave)
@torch.compile(backend="eager")
def above(x):
    return torch.cos(x) + shift
module = torch.compile(torch.nn.Linear(2, 1), backend="eager")
@torch.jit.script
def scripted(x: torch.Tensor, n: int) -> torch.Tensor:
    for i in range(n):
        x = x + i
    return x
# %%
%%parallel out=back
zero = torch.zeros(1)
assert by_default is not wave and by_default._torchdynamo_orig_callable is wave
back = fast(zero).item(), above(zero).item(), scripted(zero, 4).item(), tuple(module(torch.zeros(1, 2)).shape), fast
# %%
assert all(b[:4] == (1.0, 2.0, 6.0, (1, 1)) and b[4](torch.zeros(1)).item() == 1 for b in back), back
