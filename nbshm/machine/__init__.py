"""What the machine has, and how much of it this process may use."""
