def sum(values):
    return "my sum"
def print_all(*values):
    return sum(values), max, list(map(str, values))
max = 5
id = lambda x: "my id"
class dict(dict):
    def extra(self):
        return "extra"
def open(name):
    return "my open " + name
input = [1]
# %%
%%parallel out=back
back = sum([1]), print_all(1), id(3), dict(a=1).extra(), dict(a=1), open("x"), input, type(dict(a=1)) is dict
# %%
for one in back:
    assert one == ("my sum", ("my sum", 5, ["1"]), "my id", "extra", {"a": 1}, "my open x", [1], True), one
    assert type(one[4]) is dict
del sum, max, id, dict, open, input
