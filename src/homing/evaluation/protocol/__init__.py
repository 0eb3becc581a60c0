"""What every bench does: photos are described, released, edited, and searched for among distractors."""
