"""Other online forests that the experiments compare with."""
