# reads: big get_ipython print use y
# binds: x y
# perhaps: y
get_ipython().run_cell_magic('timeit', '-n 2 x = big', 'y = x\nuse(y)\n')
print(y)
