# reads: flag holder old print
# binds: cache new old
# attributes: holder.part
del old, holder.part, holder[0]
new = 1
del new
print(new, old)
if flag:
    cache = 1
    del cache
