# reads: get_ipython x
# binds: y z
get_ipython().run_cell_magic('time', '', '%%capture z\ny = x\n')
