"""What knows torch: how tensors travel, and how their memory is moved, shared and lent.

Where a worker is sent tensors without having imported torch, importing any of these rooms is what imports it.
What is to be done then uses others of them, so it comes before the first.
"""

import torch  # noqa: F401
