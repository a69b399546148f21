"""Areas, settings, identities, and the rules that decide where a store is."""
