"""Training of the learned classifier, on simulated jobs of which the truth is known."""
