"""One file per bench: what is measured, and how it is reported."""
