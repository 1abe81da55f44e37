"""Values: how each travels to the workers, and whose memory it is."""
