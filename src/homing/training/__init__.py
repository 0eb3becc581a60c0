"""Training of descriptor networks and codebooks."""
