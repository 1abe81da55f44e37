# reads: nn
# binds: Net helper width
# attributes: nn.Module
class Net(nn.Module):
    def forward(self, x):
        return helper(x) * width
def helper(x): return x
width = 2
Net().forward(1)
