"""From files to the model: sources, the canonical trace, the trace processor, steps and regions."""
