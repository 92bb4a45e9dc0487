"""Read CSV and Parquet files in batches. Knows nothing of forests."""
