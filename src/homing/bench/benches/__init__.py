"""The benches: one file each; `speed.py` has the class `SpeedBench`, whose command is `homing bench speed`."""
