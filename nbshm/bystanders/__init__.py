"""Small processes beside the kernel, run as files by a bare interpreter: they import nothing of nbshm."""
