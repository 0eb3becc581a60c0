"""A collection whose references live in Lance datasets: in a folder, or in a bucket that many machines reach."""
