"""Use cases of the plan: claims, reviews, proposals, dependencies, the board."""
