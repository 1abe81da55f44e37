import numpy as np
class Wrapper:
    def __init__(self, inner): self.inner, self.table = inner, np.zeros(2)
    def __getattr__(self, name): return getattr(self.inner, name)
wrapper, twice = Wrapper([1, 2]), Wrapper(Wrapper("text"))
# %%
%%parallel nprocs=2 out=back
assert wrapper.index(2) == 1 and twice.upper() == "TEXT"
wrapper.table[rank] = 1
back = wrapper
# %%
assert wrapper.table.tolist() == [1, 1] and all(type(b) is Wrapper and b.inner == [1, 2] for b in back)
