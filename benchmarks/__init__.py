"""Speed and memory of onlineforest, compared with scikit-learn and River.

python -m benchmarks --quick
ONLINEFOREST_DATA=/path/to/data python -m benchmarks
"""
