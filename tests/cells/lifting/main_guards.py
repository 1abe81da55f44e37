def run():
    return __name__
if __name__ == "__main__":
    started = True
    def guarded():
        return "guarded"
# %%
%%parallel out=back
back = []
if __name__ == "__main__":
    back = run(), guarded(), "__file__" in globals(), started
# %%
assert all(b == ("__main__", "guarded", False, True) for b in back), back
