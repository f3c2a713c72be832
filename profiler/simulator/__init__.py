"""A discrete-event simulator of training jobs: traces of which every delay's cause is known."""
