# reads: get_ipython length load rank step view
# binds: hidden info listing out words x
get_ipython().run_cell_magic('time', '', 'x = load()\nwords = !echo {rank} $x\nfor out in words:\n    !ls $view\n    %time hidden = x\nlisting, info = %sx ls {length}\nstep(x)\n')
