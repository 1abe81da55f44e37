# reads: nprocs out range rank sum total
# binds: Tmp inner only_here parts total
# attributes: Tmp.v
total += rank
only_here = total
parts = [i * rank for i in range(nprocs)]
def inner(): return only_here + sum(parts)
class Tmp: v = inner()
out[rank] = Tmp.v
del parts
