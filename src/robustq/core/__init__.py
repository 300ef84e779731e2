"""How far a prediction is from flipping."""
