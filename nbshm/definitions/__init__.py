"""Text: what a cell needs and how it is written down."""
