# reads: f folder fun get_ipython pause print rank result x
# binds: best result timed
# perhaps: result
# attributes: x.shape
get_ipython().run_line_magic('time', 'timed = f(x)')
best = get_ipython().run_line_magic('timeit', '-o -q -n1 -r 1 result = f(timed, x.shape)')
get_ipython().run_line_magic('cd', '{folder}/{rank:02d}')
get_ipython().run_line_magic('lprun', '-f fun pause(timed)')
print(timed, best, result)
