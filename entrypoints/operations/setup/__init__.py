"""`setup`, `onboard` and `plugin path`."""
