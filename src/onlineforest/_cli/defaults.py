"""Names and defaults that the help of commands shows.

Imports nothing: scikit-learn takes longer to import than the help to print.
"""

NAMES = {"order-free": "order-free", "mondrian": "Mondrian"}  # of kinds of forests, in sentences
DEFAULT_KIND = "order-free"
DEFAULT_BATCH_SIZE = 100  # of learning
