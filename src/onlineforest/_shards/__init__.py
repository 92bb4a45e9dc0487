"""Forests whose shards live in other processes. Knows no Ray and no scikit-learn."""
