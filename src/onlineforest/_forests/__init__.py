"""The estimators, and the core forests behind them."""
