# reads: get_ipython where
# binds:
get_ipython().run_cell_magic('bash', '--out {where}', 'for x in {1..3}; do echo $y {z}; done\n')
