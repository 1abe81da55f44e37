import functools
class Row:
    seen = []
    def __init__(self, x):
        self.x = x
    def text(self):
        return "old %s" % self.x
    @functools.cached_property
    def shout(self):
        """Say it loud."""
        return self.text().upper()
class Derived(Row):
    pass
old_seen, old_text = Row.seen, Row.text
before, OldRow, derived = Row(1), Row, Derived(2)
class Row:
    def __init__(self, x):
        self.x = x
    def text(self):
        return "new %s" % self.x
after = Row(2)
# %%
%%parallel out=back
assert before.shout == "OLD 1" and vars(before)["shout"] and OldRow.shout.__doc__ == "Say it loud."
assert before.text() == "old 1" and after.text() == "new 2" and type(before) is OldRow and type(after) is Row
assert isinstance(derived, OldRow) and derived.text() == "old 2" and not isinstance(before, Row)
OldRow.seen.append(rank)
back = before, after, OldRow(5), derived, Derived(7)
# %%
for b, a, o, d, e in back:
    assert type(b) is OldRow and type(a) is Row and type(o) is OldRow and o.text() == "old 5"
    assert b.shout == "OLD 1" and o.shout == "OLD 5"
    assert type(d) is Derived and type(e) is Derived
assert OldRow.seen is old_seen and old_seen == [] and OldRow.text is old_text
