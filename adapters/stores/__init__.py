"""Open, probe and check stores by their URLs."""
