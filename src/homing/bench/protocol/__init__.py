"""The steps that benches share: describe, release, edit, and search among distractors."""
