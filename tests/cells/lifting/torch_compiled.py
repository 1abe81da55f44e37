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
patched = torch.nn.Linear(2, 1)
patched.forward = torch.compile(patched.forward, backend="eager")
step = torch.compile(torch.optim.SGD(patched.parameters(), lr=1).step, backend="eager")
of_torch = torch.compile(torch.nn.functional.relu, backend="eager")
torch.nn.init.zeros_(patched.bias)
@torch.jit.script
def scripted(x: torch.Tensor, n: int) -> torch.Tensor:
    for i in range(n):
        x = x + i
    return x
# %%
%%parallel out=back
zero = torch.zeros(1)
assert by_default is not wave and by_default._torchdynamo_orig_callable is wave
assert patched(torch.zeros(1, 2)).shape == (1, 1) and of_torch(torch.ones(1)).item() == 1
patched.bias.grad = torch.ones(1)
if rank == 0:
    step()
back = fast(zero).item(), above(zero).item(), scripted(zero, 4).item(), tuple(module(torch.zeros(1, 2)).shape), fast
# %%
assert patched.bias.item() == -1
assert all(b[:4] == (1.0, 2.0, 6.0, (1, 1)) and b[4](torch.zeros(1)).item() == 1 for b in back), back
