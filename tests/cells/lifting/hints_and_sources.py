import inspect
# A comment above.
def sourced(x,
            y=[1]):
    # inside
    return x  # at the end
class Sourced:
    a = 1
    def method(self):
        return 1
other = lambda: 5
# %%
%%parallel out=back
back = inspect.getsource(sourced), inspect.getsource(Sourced.method), inspect.getsource(other), inspect.getsourcelines(sourced)[1], sourced.__code__.co_firstlineno
# %%
for b in back:
    assert b[0] == inspect.getsource(sourced) and b[1] == inspect.getsource(Sourced.method), b
    assert b[2].startswith("other = lambda") and b[3:] == (inspect.getsourcelines(sourced)[1], sourced.__code__.co_firstlineno), b
