"""Speed and memory of onlineforest, side by side with what could be used instead.

python -m benchmarks --quick
ONLINEFOREST_DATA=/path/to/data python -m benchmarks
"""
