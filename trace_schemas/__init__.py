"""What crosses the layers: recordings, notices, reports, errors, and the SQL package."""
