# reads: data get_ipython print
# binds: captured y
get_ipython().run_cell_magic('capture', 'captured --no-stderr', 'y = data\n')
print(captured, y)
