counter = 0
def bump(by=1):
    global counter, fresh_name
    counter += by
    fresh_name = "set"
    return counter
def read():
    return fresh_name, counter
def clear():
    global counter
    del counter
def new_list():
    global made_global
    made_global = [1]
# %%
%%parallel out=back
counter = 10
bump()
bump(rank)
new_list()
back = counter, read(), made_global
clear()
assert "counter" not in globals()
# %%
assert [b[0] for b in back] == [11 + r for r in range(len(back))], back
assert counter == 0 and "fresh_name" not in globals()
