"""The order-free forest: `OnlineForestClassifier` and `OnlineForestRegressor`."""
