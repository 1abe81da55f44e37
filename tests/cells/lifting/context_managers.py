import contextlib
log = []
@contextlib.contextmanager
def logged(name, *, end="end"):
    log.append(name)
    try:
        yield name.upper()
    finally:
        log.append(end)
class Timed(contextlib.ContextDecorator):
    def __enter__(self):
        log.append("in")
    def __exit__(self, *error):
        log.append("out")
@logged("a", end="z")
def work(x):
    return x + 1
@Timed()
def timed(x):
    return x + 2
waiting = logged("later")
# %%
%%parallel out=back
with waiting as name:
    results = work(rank), timed(rank), name
with logged("b") as name:
    back = results, name, list(log)
# %%
for rank, b in enumerate(back):
    assert b == ((rank + 1, rank + 2, "LATER"), "B", ["later", "a", "z", "in", "out", "end", "b"]), b
assert log == [] and work(1) == 2
