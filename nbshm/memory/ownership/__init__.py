"""Whose memory it is: what of the notebook holds it, and where it lies, found without disturbing either."""
