import numpy as np
class Summed:
    grid = np.ones(4)
    names: list = []
    total = 1
    limit: int = 5
    for _number in range(4):
        grid[_number] += _number
        names.append(_number)
    grid *= 2
    total += 1
    class Part:
        seen = {"a": 1}
        seen["b"] = len(seen)
    del _number
Summed.limit = 6
# %%
%%parallel out=back
back = Summed.names, Summed.total, Summed.Part.seen, Summed.limit, hasattr(Summed, "_number"), Summed.grid.tolist()
# %%
want = [0, 1, 2, 3], 2, {"a": 1, "b": 1}, 6, False, [2, 4, 6, 8]
assert Summed.grid.tolist() == want[-1] and Summed.names == want[0]
assert all(each == want for each in back), back
