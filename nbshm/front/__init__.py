"""IPython's side of the door: the magics, with what their help says, Tab offers and `%shm_status` tells."""
