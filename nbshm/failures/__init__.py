"""What became of a rank that failed: as data, in words, and as errors."""
