"""N workers, started together, supervised, always ended."""
