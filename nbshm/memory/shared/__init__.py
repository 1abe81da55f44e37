"""Shared memory itself: pages, segments, spares, copying, and what there is room for."""
