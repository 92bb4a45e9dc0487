"""The Mondrian forest: `MondrianForestClassifier`."""
