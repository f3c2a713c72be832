"""From the model to the answer: facts, the time budget, verdicts, diagnoses and fixes."""
