# reads: get_ipython something strange
# binds:
get_ipython().run_cell_magic('time', '', 'something ?strange for\n')
