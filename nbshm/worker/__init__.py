"""The child's side of the wall: what runs in a worker."""
