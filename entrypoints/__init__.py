"""How people and programs get in: the one layer that may import all others."""
