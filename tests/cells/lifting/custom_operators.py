import torch
SCALE = 2
@torch.library.custom_op("nbshm_tests::scaled", mutates_args=())
def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * SCALE
@scaled.register_kernel("cuda")
def _(x):
    return x
@scaled.register_fake
def _(x):
    return torch.empty_like(x)
def backward(ctx, gradient):
    return gradient * SCALE
scaled.register_autograd(backward, setup_context=lambda ctx, inputs, output: None)
@scaled.register_vmap
def _(info, in_dims, x):
    return scaled(x), in_dims[0]
scaled.register_autocast("cpu", torch.bfloat16)
@torch.library.custom_op("nbshm_tests::fill", mutates_args={"x"})
def fill(x: torch.Tensor, value: float) -> None:
    x.fill_(value)
filled, plain = torch.zeros(2), scaled
# %%
%%parallel nprocs=2 out=back
x = torch.ones(2, requires_grad=True)
scaled(x).sum().backward()
fill(filled[rank:rank + 1], rank + 1.0)
with torch.autocast("cpu"):
    narrow = scaled(torch.ones(1)).dtype
compiled = torch.compile(scaled, backend="eager")(torch.ones(1)).item()
assert plain is scaled and torch.ops.nbshm_tests.scaled(torch.ones(1)).item() == 2
back = x.grad.tolist(), torch.vmap(scaled)(torch.ones(2, 1)).tolist(), narrow, compiled, scaled
# %%
assert filled.tolist() == [1, 2], filled
for *numbers, operator in back:
    assert numbers == [[2, 2], [[2], [2]], torch.bfloat16, 2] and operator is scaled, numbers
assert scaled(torch.ones(1)).item() == 2
