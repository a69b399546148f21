"""The store in memory: the reference that every other store must agree with."""
