"""What kernel and workers say to each other, and what both hold: used on either side of the wall."""
