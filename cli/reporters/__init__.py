"""One renderer a format. They read the report and compute nothing but sums for display."""
