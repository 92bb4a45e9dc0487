"""Model files: container of arrays, encoding of metadata, atomic replacement. Knows no forest."""
