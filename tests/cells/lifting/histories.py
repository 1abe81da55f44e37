[1, 2]
# %%
number = max(Out)
exec(f"def by_number(): return _{number}")
_
# %%
%%parallel out=back
back = _, by_number(), Out.get(0)
# %%
assert all(b == ([1, 2], [1, 2], None) for b in back), back
