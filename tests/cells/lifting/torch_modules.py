import torch
from torch import nn
class Net(nn.Module):
    hidden = 4
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, self.hidden)
        self.register_forward_hook(hook)
    @torch.no_grad()
    def forward(self, x):
        return act(self.layer(x))
def hook(module, inputs, output):
    return output + 1
act = nn.ReLU()
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, g):
        return 2 * ctx.saved_tensors[0] * g
net, square = Net(), Square.apply
class Data(torch.utils.data.Dataset):
    def __len__(self): return 4
    def __getitem__(self, i): return torch.tensor([float(i)])
# %%
%%parallel out=back
x = torch.tensor(3.0, requires_grad=True)
Square.apply(x).backward()
y = torch.tensor(3.0, requires_grad=True)
square(y).backward()
back = net(torch.zeros(1, 2)).min().item() >= 1, x.grad.item(), y.grad.item(), [b.flatten().tolist() for b in torch.utils.data.DataLoader(Data(), 2, num_workers=1)]
# %%
assert all(b == (True, 6.0, 6.0, [[0.0, 1.0], [2.0, 3.0]]) for b in back), back
