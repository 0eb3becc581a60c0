"""Benches, the demo and explanations: recall of edited copies, visual quality and speed."""
