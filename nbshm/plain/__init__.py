"""Plain multiprocessing from cells: what the notebook lends it while the extension is loaded."""
