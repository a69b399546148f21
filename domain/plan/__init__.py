"""The plan: its entities, the rules of claims and phases, readiness and the order of tasks."""
