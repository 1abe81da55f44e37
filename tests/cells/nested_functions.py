# reads: G H d_is_not_here e outermost print
# binds: H make
def make(a):
    b = 1
    def inner(c):
        nonlocal b
        b = a + c + G
        class Local(outermost):
            d = b
            e = d
            def method(self): return d_is_not_here(e)
        def deepest():
            global H
            H = c
            return H
        return deepest, Local
    H = 2
    return inner, H, lambda b: print(a, b)
