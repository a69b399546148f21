"""Commands of the plan."""
