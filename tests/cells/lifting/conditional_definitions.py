from typing import TYPE_CHECKING
import sys
if TYPE_CHECKING:
    import nowhere
    def chosen(): return "checking"
else:
    def chosen():
        return "running"
try:
    import nowhere_at_all
except ImportError:
    nowhere_at_all = None
    def fallback(x):
        """Two
    lines."""
        return x, chosen()
if sys.version_info >= (3,):
    class Modern:
        text = """
left"""
        def get(self):
            return self.text
    if True:
        def deeper(): return Modern().get()
with open("/dev/null"):
    def within(): return "with"
for k in (1, 2):
    def looped(x, k=k):
        return x * k
# %%
%%parallel out=back
back = chosen(), fallback(1), fallback.__doc__, Modern().get(), deeper(), within(), looped(2), Modern(), nowhere_at_all
# %%
for b in back:
    assert b[:7] == ("running", (1, "running"), "Two\n    lines.", "\nleft", "\nleft", "with", 4), b
    assert type(b[7]) is Modern
