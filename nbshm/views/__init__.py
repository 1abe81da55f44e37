"""The same events as text, as a static page and as a live widget."""
