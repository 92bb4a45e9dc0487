"""Tables in files, read in batches: CSV and Parquet. Knows no forest."""
