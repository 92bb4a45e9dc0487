"""Read CSV, JSON lines and Parquet files in batches. Knows nothing of forests."""
