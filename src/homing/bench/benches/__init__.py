"""The benches: one file each; the name of a file is that of its command, and its class has the same name."""
