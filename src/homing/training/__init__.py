"""Learning what activation and search stand on."""
