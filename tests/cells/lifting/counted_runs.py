import functools, pathlib, tempfile
log = pathlib.Path(tempfile.mkdtemp()) / "log"
def note(what):
    with log.open("a") as file:
        file.write(what + "\n")
    return what
def decorator(f):
    note("decorator")
    return f
note("statement")
@decorator
def one(x=note("default")):
    return x
@functools.lru_cache
def two(y=note("default")):
    return y
class Body:
    note("body")
    attribute = note("attribute")
    def method(self, z=note("default")):
        return z
@decorator
class Decorated:
    def method(self): ...
lines = log.read_text().split()
log.write_text("")
# %%
%%parallel nprocs=1 out=back
back = one(), two(), Body.attribute, Body().method(), Decorated()
# %%
assert lines == ["statement", "default", "decorator", "default", "body", "attribute", "default", "decorator"]
assert back[0][:4] == ("default", "default", "attribute", "default"), back
assert log.read_text().split() == ["body"], log.read_text()
